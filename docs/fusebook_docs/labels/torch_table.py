"""What PyTorch does and what is done here stand in the right cells.

Each row of the table on `PAGE` is one of `docs/claims.toml`:

    [[difference]]
    what = "time to compile"
    torch = "grows with the number of parameters"
    here = "does not depend on it"
    holds = ["us('compile', '1000 tensors', 'cold') < ..."]

whose words begin the cells, and whose conditions (comparisons.py) are those under which
what is said of this library is true.
"""

import re
import tomllib

from ..claims import FILE
from ..errors import BookError
from . import comparisons

PAGE = "docs/background/from_pytorch.rst"
_TABLE = re.compile(r"^\.\. list-table::\n(?:   .*\n|\n)+", re.M)
_ROW = re.compile(r"^   \* - (.*(?:\n       .*)*)\n     - (.*(?:\n       .*)*)\n"
                  r"     - (.*(?:\n       .*)*)$", re.M)
_HEAD = ("what", "PyTorch", "here")


def in_prose(book, text):
    if str(text.path) != PAGE:
        return
    listed = {each["what"]: each for each in tomllib.loads(
        (book.root / FILE).read_text(encoding="utf-8"))["difference"]}
    rows = [row for table in _TABLE.finditer(text.whole)
            for row in _ROW.finditer(text.whole, table.start(), table.end())]
    for number, row in enumerate(rows):
        line = text.line(row.start())
        what, torch, here = (" ".join(cell.split()) for cell in row.groups())
        for problem in ([] if number else _head(what, torch, here)) or (
                _of_row(book, listed.pop(what, None), torch, here) if number else ()):
            yield BookError(f"{what!r}: {problem}", text.path, line)
    for what in listed:
        yield BookError(f"no row says {what!r}, which is in {FILE}", text.path, 1)


def _head(*cells):
    return [] if cells == _HEAD else [f"the columns are {', '.join(_HEAD)}"]


def _of_row(book, bound, torch, here):
    if bound is None:
        yield f"{FILE} does not say, under [[difference]], what holds"
        return
    for said, cell, of in ((bound["torch"], torch, "PyTorch"),
                           (bound["here"], here, "this library")):
        if not cell.startswith(said):
            yield f"{cell!r} is not what {of} does: {said!r}"
    for condition in bound["holds"]:
        if not comparisons.holds(book, condition):
            yield f"{condition} does not hold"
