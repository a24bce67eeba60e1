"""Which of several texts two words stand beside.

Texts that were swapped are noticed by their words: each has more in common with what it
was written for. A word counts the more, the fewer texts have it; that it is short, or
stands in every text, makes it worth nothing.
"""

import math
import re
from collections import Counter
from itertools import combinations

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]+")
_PART = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_ENDINGS = ("ing", "ied", "ies", "ed", "er", "e")
_COMMON = """and the has have for its are was with not but that this how what which one
    own more than all any now does from into they them when where why can may there many
    then make makes each every much still what becomes""".split()
_NEGATED = re.compile(r"\bnon-\w+")
_MARKUP = re.compile(r":\w+:`([^`<]*)(?:<[^>]*>)?`")


def words(text):
    """The stems of its words; of a name in code, of its parts."""
    text = _NEGATED.sub(" ", _MARKUP.sub(r"\1", text))
    found = (part.lower() for word in _WORD.findall(text.replace("_", " "))
             for part in _PART.findall(word))
    return {stem(word) for word in found if len(word) > 2} - _STEMS


def stem(word):
    if word.endswith("s") and not word.endswith("ss") and len(word) > 3:
        word = word[:-1]
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[:-len(ending)]
    return word


_STEMS = {stem(word) for word in _COMMON}


def swapped(pairs, others=()):
    """Pairs of places (i, j) of [(around, what stands there)], in words, where each
    would fit better at the place of the other. `others` tell how rare words are."""
    texts = [what for _, what in pairs] + list(others)
    count = Counter(word for text in texts for word in text)

    def fit(around, what):
        shared = sum(math.log(1 + len(texts) / count[word]) for word in around & what)
        return shared / math.sqrt(1 + len(what))

    for (i, (a, x)), (j, (b, y)) in combinations(enumerate(pairs), 2):
        if a != b and x != y and fit(a, x) + fit(b, y) <= fit(a, y) + fit(b, x):
            yield i, j
