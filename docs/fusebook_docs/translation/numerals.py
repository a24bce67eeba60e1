"""Numbers of a translation are those of its original.

Numbers that are bound stand in roles, which checks.py compares. What else counts, in
characters (三种, 十二分之一) or digits, has to be said by the English text as well: as a
number word, an ordinal, a fraction, or as "both" and "twice".
"""

import re

from .. import numbers

_MARKUP = re.compile(r":[\w:-]+:`[^`]*`|``[^`]*``|`[^`]*`(?:__?)?|\{\w*\}")
_DIGITS = dict(zip("零一二三四五六七八九", range(10), strict=True)) | {"两": 2}
_TENS = {"十": 10, "百": 100, "千": 1000}
_NUMERAL = re.compile(r"[零一二三四五六七八九两十百千万]+|\d+(?:\.\d+)*")
# What has a numeral in it and counts nothing.
_NAMES = re.compile(r"[二八十](?:六)?进制")
_WORDS = {"both": 2, "twice": 2, "thrice": 3, "half": 2, "halves": 2, "double": 2,
          "pair": 2, "second": 2, "either": 2, "neither": 2, "quarter": 4}
_ORDINALS = ("third fourth fifth sixth seventh eighth ninth tenth eleventh "
             "twelfth").split()
_WORDS |= {word: number for number, word in enumerate(_ORDINALS, 3)}


def wrong(original, translation):
    """Numbers that a translation says and its original does not, in words."""
    said = _said(_MARKUP.sub(" ", original))
    plain = _NAMES.sub(" ", _MARKUP.sub(" ", translation))
    for match in _NUMERAL.finditer(plain):
        worth = _worth(match[0])
        if worth not in (0, 1) and worth not in said:
            yield f"says {match[0]!r}, which the original does not say"


def _said(text):
    """What the English text counts."""
    found = {match[0] for match in re.finditer(r"\d+(?:\.\d+)+", text)}
    found |= {float(match[0]) for match in re.finditer(r"\d+", text)}
    found |= {numbers.worth(match[0])[0] for match in numbers.in_words(text)}
    return found | {_WORDS[word] for word in re.findall(r"[a-z]+", text.lower())
                    if word in _WORDS}


def _worth(numeral):
    if numeral[0].isascii():
        return numeral if "." in numeral else float(numeral)
    total, part, digit = 0, 0, 0
    for character in numeral:
        if character == "万":
            total, part, digit = (total + part + digit or 1) * 10000, 0, 0
        elif character in _TENS:
            part, digit = part + (digit or 1) * _TENS[character], 0
        else:
            digit = _DIGITS[character]
    return float(total + part + digit)
