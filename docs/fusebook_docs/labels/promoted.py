"""The table of types that meet says what the library does with them.

Each row of a table with the columns operands and result is compared with the pairs of
`TABLE`, which a test compares with the library.
"""

import re

from ..errors import BookError

TABLE = "tests/programs/promotion_test.cpp"
_TABLE = re.compile(r"^   \* - operands\n     - result\n((?:   .*\n)+)", re.M)
_ROW = re.compile(r"^   \* - (.*)\n     - (.*)\n", re.M)
_PAIR = re.compile(r"\{(b?f\d\d|i16), (b?f\d\d|i16), (b?f\d\d|i16)\}")
_GROUPS = {"any other": lambda name: True,
           "16 bits": lambda name: name.endswith("16"),
           "other 16 bits": lambda name: name.endswith("16")}


def in_prose(book, text):
    return text.errors(_of_tables(book, text.whole))


def _of_tables(book, whole):
    for table in _TABLE.finditer(whole):
        for row in _ROW.finditer(table[1]):
            message = _wrong(_pairs(book), row[1].replace("`", ""),
                             row[2].replace("`", ""))
            if message:
                yield table.start(1) + row.start(), message


def _wrong(pairs, operands, result):
    one, _, other = operands.partition(" and ")
    if operands == "both the same":
        meant = {(a, b): each for (a, b), each in pairs.items() if a == b}
        right = result == "that type" and all(a == each for (a, _), each in meant.items())
    else:
        fits = _GROUPS.get(other, lambda name: name == other)
        meant = {(a, b): each for (a, b), each in pairs.items()
                 if a == one and a != b and fits(b)}
        right = meant and all(each == result for each in meant.values())
    if right:
        return None
    known = ", ".join(f"{a} and {b} give {each}" for (a, b), each in meant.items())
    return f"{operands!r} gives {result!r}, but {known or 'there is no such pair'} ({TABLE})"


def _pairs(book):
    found = _PAIR.findall((book.root / TABLE).read_text(encoding="utf-8"))
    if not found:
        raise BookError("there is no pair {f16, f32, f32}", TABLE)
    return {(_name(a), _name(b)): _name(c) for a, b, c in found}


def _name(short):
    return re.sub("^(b?)f", r"\1float", short).replace("i", "int")
