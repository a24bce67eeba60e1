"""Search in Chinese, which has no blanks between words.

Both the index and a query are cut into pairs of neighbouring characters, so that
any piece of a sentence is found. English words in between stay whole.
"""

import re

from sphinx.search import languages
from sphinx.search.en import SearchEnglish

_HAN = "\u3400-\u9fff\uf900-\ufaff"
_WORDS = re.compile(rf"[{_HAN}]+|[^\W{_HAN}]+")

# The same, for the query.
_SPLITTER = """
function splitQuery(query) {
  const found = [];
  for (const word of query.match(/[HAN]+|[\\p{L}\\p{N}_]+/gu) || []) {
    for (const piece of word.match(/[HAN]+|[^HAN]+/gu)) {
      if (!/[HAN]/.test(piece) || piece.length === 1) found.push(piece);
      else for (let i = 0; i + 1 < piece.length; ++i)
        found.push(piece.slice(i, i + 2));
    }
  }
  return found;
}
""".replace("HAN", "\\u3400-\\u9fff\\uf900-\\ufaff")


def split(text):
    """English words, pairs of Chinese characters, and each of these, for who looks for
    a single one."""
    found = []
    for word in _WORDS.findall(text):
        if re.match(rf"[{_HAN}]", word):
            found += [*(word[i:i + 2] for i in range(len(word) - 1)), *word]
        else:
            found.append(word)
    return found


class SearchChinese(SearchEnglish):
    lang = "zh"
    language_name = "Chinese"
    js_splitter_code = _SPLITTER

    def split(self, input):
        return split(input)


def setup(app):
    languages["zh"] = SearchChinese
