"""Numbers in English text: where they stand, and what they are worth."""

import re
from dataclasses import dataclass

_SMALL = ("zero one two three four five six seven eight nine ten eleven twelve "
          "thirteen fourteen fifteen sixteen seventeen eighteen "
          "nineteen").split()
_TENS = dict(zip("twenty thirty forty fifty sixty seventy eighty "
                 "ninety".split(), range(20, 100, 10), strict=True))
_WORTH = {**{word: n for n, word in enumerate(_SMALL)}, **_TENS, "dozen": 12}
_GROUPS = {"hundred": 100, "thousand": 10**3, "million": 10**6,
           "billion": 10**9}

NUMERAL = r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?"
_WORD = "|".join(sorted([*_WORTH, *_GROUPS], key=len, reverse=True))
_WORDS = rf"\b(?:(?:a|an)\s+(?=(?:hundred|thousand|million|billion|dozen)\b)" \
         rf"|)(?:{_WORD})(?:[-\s]+(?:{_WORD}))*\b"
UNITS = ("bytes?|bits?|[kKMGT]i?B|us|ms|ns|(?:micro|milli|nano)?seconds?|"
          "minutes?|hours?|percent|ulps?|GB/s")

# Digits anywhere but in a name ("float32", "x86"), with what is written on.
_DIGITS = re.compile(r"(?<![\w.])\d[\d.,/^e]*(?:(?<=e)[-+]\d+)?\w*%?")
_IN_WORDS = re.compile(_WORDS, re.IGNORECASE)
_BEFORE_UNIT = re.compile(rf"\b(?:one|half an?)\s+(?:{UNITS})\b")
# What compares by a factor, or says roughly how many.
_FACTOR = re.compile(
    r"\b(?:twice|thrice|double|triple|half|(?:a\s+)?(?:third|quarter|fifth|tenth))"
    r"\s+(?:as|the\s+(?:time|speed|cost|bytes|traffic|memory|launches))\b"
    r"|\b(?:two|three|four|five|ten|hundred|thousand)-?fold\b"
    r"|\b(?:dozens|hundreds|thousands|millions|billions)\b", re.IGNORECASE)
# What has versions, which versions.py looks up.
VERSIONED = ("PyTorch", "Python", "Debian", "Ubuntu", "CUDA", "NVRTC", "CMake", "C++")
# What has digits or number words in it and counts nothing.
_NAMES = re.compile(
    rf"\b(?:{'|'.join(map(re.escape, VERSIONED))})\s?\d+(?:\.\d+)*|\bPT2\b|\bZeRO(?:-\d)?\b|\bGPT-2\b"
    r"|\b\d+-(?:d|D|bit)\b|\b(?:8|16|32|64)[ -]bits?\b"  # types and formats
    r"|\b[Tt]he(?:se)?\s+two\b"  # both of what was just named
    r"|\b(?:an|the|this|that|each|every|no|other|which|any)\s+one\b"
    r"|\b[Oo]ne\b(?!-)|\b[Zz]ero\b")


@dataclass(frozen=True)
class Found:
    """A number that stands in a text."""

    start: int
    text: str


def bare(text):
    """Every number in `text`, in order: digits, words from two up, smaller ones
    before a unit, and factors ("twice as", "tenfold", "dozens"). Versions, names of types and "the two" are none."""
    named = [match.span() for match in _NAMES.finditer(text)]
    found = {}
    for pattern in (_FACTOR, _BEFORE_UNIT, _DIGITS, _IN_WORDS):
        for match in pattern.finditer(text):
            inside = any(a <= match.start() and match.end() <= b
                         for a, b in named)
            kept = found.values()
            covered = any(f.start <= match.start() < f.start + len(f.text)
                          for f in kept)
            if covered or inside and pattern in (_DIGITS, _IN_WORDS):
                continue
            found[match.start()] = Found(match.start(),
                                         match[0].rstrip(".,/"))
    return [found[start] for start in sorted(found)]


def in_words(text):
    """Every number in words, one and zero as well."""
    return _IN_WORDS.finditer(text)


def worth(text):
    """The one number in `text` as (value, decimals), or None.

    `decimals` is how many digits stand behind the point. "a thousand tensors"
    is worth 1000, "28 bytes" 28, "1.5x" 1.5.
    """
    digits = re.search(rf"(?<![\w.]){NUMERAL}", text)
    if digits:
        plain = digits[0].replace(",", "")
        point = re.search(r"\.(\d+)", plain)
        exponent = re.search(r"e([-+]?\d+)", plain)
        decimals = (len(point[1]) if point else 0) - (
            int(exponent[1]) if exponent else 0)
        return float(plain), decimals
    words = _IN_WORDS.search(text)
    return (float(_of_words(words[0])), 0) if words else None


def _of_words(text):
    total, group = 0, 0
    for word in re.findall(r"[a-z]+", text.lower()):
        if word in _GROUPS:
            group = max(group, 1) * _GROUPS[word]
            if _GROUPS[word] > 100:
                total, group = total + group, 0
        elif word in _WORTH:
            group += _WORTH[word]
    return total + group


def says(text, value):
    """Whether `text` gives `value`, exactly or rounded to its own digits."""
    found = worth(text)
    if found is None:
        return False
    number, decimals = found
    if number == value:
        return True
    return abs(decimals) < 300 and decimals > 0 and (
        abs(number - value) <= 0.5 * 10.0**-decimals * (1 + 1e-9))
