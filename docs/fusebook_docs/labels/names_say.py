"""A name that says what it holds stands beside words for that.

The end of a name in code tells of a unit or of a square (`_SAY`). Where a page names one
in code, the words since the last stop or name say the same; where they say it, a name
that has such a sister (`exp_avg` of `exp_avg_sq`) is not meant. The `///` comment of a
declaration has the unit of the declared name. Devices are counted from zero, so `cuda:1`
is the second.
"""

import re
from functools import cache

from ..errors import errors_in

_SAY = {"_sq": r"squared?s?", "_us": r"microseconds?|us", "_ms": r"milliseconds?|ms",
        "_ns": r"nanoseconds?|ns"}
_TIMES = ("_us", "_ms", "_ns")
_NAME = re.compile(r"`{1,2}([A-Za-z]\w*)`{1,2}")
_STOP = re.compile(r"[;.:?!()]\s|\n\s*\n|\n\s*- |`{1,2}[A-Za-z]\w*`{1,2}")
_NUMBERED = re.compile(r"`(cuda):(\d)`+\s+is\s+the\s+(\w+)\s+GPU")
_ORDINALS = ("first", "second", "third", "fourth")
# A comment, and the name that is declared behind it.
_DECLARED = re.compile(r"((?:^ *///(?!<).*\n)+)(?: *(?:template|//).*\n)*"
                       r"(?:[^;{(=\n]|\n(?! *///))*?\b(\w+_(?:us|ms|ns))\b\s*[;({=]", re.M)
_BEHIND = re.compile(r"\b(\w+_(?:us|ms|ns))\b[^;\n]*; *(///<.*(?:\n *///<.*)*)")
_FOLDERS = ("common", "kernels")


def in_prose(book, text):
    return text.errors(_wrong(book, text.whole))


def in_markdown(book, show, text):
    return errors_in(show, text, _wrong(book, text))


def _wrong(book, whole):
    stops = [0, *(each.end() for each in _STOP.finditer(whole))]
    for each in _NAME.finditer(whole):
        words = whole[max(at for at in stops if at <= each.start()):each.start()]
        if each[1].endswith("_sq") and not re.search(rf"\b(?:{_SAY['_sq']})\b", words):
            yield each.start(), f"nothing before {each[1]} says that it is a square"
        elif f"{each[1]}_sq" in _squares(book.root) and re.search(
                rf"\b(?:{_SAY['_sq']})\b", words):
            yield each.start(), f"{each[1]} is no square: that is {each[1]}_sq"
    for each in _NUMBERED.finditer(whole):
        wanted = _ORDINALS[int(each[2])]
        if each[3] in _ORDINALS and each[3] != wanted:
            yield each.start(), f"{each[1]}:{each[2]} is the {wanted}: they count from zero"


def of_headers(book):
    for folder in _FOLDERS:
        for path in sorted((book.root / folder).rglob("*.h")):
            yield from of_header(book, path, path.read_text(encoding="utf-8"))


def of_header(book, path, source):
    """Units of time in the comment of a name that has one."""
    return errors_in(str(book.show(path)), source, _units(source))


def _units(source):
    found = [(each.start(1), each[2], each[1]) for each in _DECLARED.finditer(source)]
    found += [(each.start(2), each[1], each[2]) for each in _BEHIND.finditer(source)]
    for start, name, comment in found:
        plain = re.sub(r"`[^`]*`", "", comment)
        said = {end for end in _TIMES if re.search(rf"\b(?:{_SAY[end]})\b", plain)}
        if said and name[-3:] not in said:
            yield start, (f"{name} is in {_SAY[name[-3:]].partition('?')[0]}, which is "
                          "not the unit that its comment names")


@cache
def _squares(root):
    """What optimizers keep squares of."""
    return {name for path in (root / "common").rglob("*.h") for name in re.findall(
        r'"(\w+_sq)"', path.read_text(encoding="utf-8"))} | {"exp_avg_sq"}
