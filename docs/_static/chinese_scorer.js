// How search results are ordered in Chinese: as Sphinx does, but a page whose title has
// the words comes before one that only has their characters.
"use strict";

var Scorer = {
  score: function (result) {
    const [, title, anchor, , score] = result;
    const query = new URLSearchParams(window.location.search).get("q") || "";
    const words = query.trim().toLowerCase();
    const has = words && !anchor && title.toLowerCase().includes(words);
    return score + (has ? 3 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
