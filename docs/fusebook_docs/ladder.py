"""The ladder of fusion that `print_ladder` prints, read back and drawn.

A rung is one way to run the same step: how many launches it is, the bytes that
it moves, its time, and a grid that says which launch did which operation for
which tensor.
"""

import html
import re
from dataclasses import dataclass

from .errors import BookError
from .values import Value
from .words import many, say

_HEAD = re.compile(r"(\w+): (\d+) launch(?:es)?, ([\d.]+) MB, @\{(\w+)\}")
_TENSORS = re.compile(r"launch((?:\s+(?:tensor \d+|\.\.\.))+)")
_ROW = re.compile(r"\w+((?:\s+(?:\d+|\.\.\.))+)")

_WIDTH, _BARS, _LONGEST = 360, 92, 192  # where bars begin, how long one may be
_KEY, _RUNG = 24, 92
_CELL_WIDE, _CELL_HIGH, _MORE = 13, 9, 12  # a cell; where tensors are left out


@dataclass(frozen=True)
class Rung:
    name: str
    launches: int
    megabytes_text: str
    time: Value
    tensors: tuple[int, ...]  # of the columns that were printed
    cells: tuple[tuple[int, ...], ...]  # of each of them: a launch per operation

    @property
    def launches_text(self):
        return many("{count} launch", "{count} launches", self.launches)

    @property
    def megabytes(self):
        return float(self.megabytes_text.split()[0])

    @property
    def time_text(self):
        return self.time.shown.strip()


def read(text, values, said=str):
    """The rungs in what a step printed, from the first to the last. `said` puts their
    names into the language of the page."""
    found = []
    for line in text.splitlines():
        if head := _HEAD.fullmatch(line.strip()):
            found.append((head, rows := []))
        elif found and (row := _TENSORS.fullmatch(line.strip())
                        or _ROW.fullmatch(line.strip())):
            rows.append([int(cell) for cell in re.findall(r"\d+", row[1])])
    if len(found) < 2:
        raise BookError("it printed no ladder with at least two rungs")
    return [_rung(head, rows, values, said) for head, rows in found]


def _rung(head, rows, values, said):
    time = values[head[4]]
    if len(rows) < 2 or len({len(cells) for cells in rows}) != 1:
        raise BookError(f"the grid of {head[1]!r} has no rows of equal length")
    if time.kind != "measured" or time.unit != "us":
        raise BookError(f"{head[4]!r} is not a measured time")
    tensors, *operations = map(tuple, rows)
    return Rung(said(head[1].replace("_", " ")), int(head[2]), f"{head[3]} MB", time,
                tensors, tuple(zip(*operations)))


def frames(rung):
    """The launches of the printed cells: (launch, first and last column, first
    and last operation), all counted from zero."""
    found = {}
    for column, cells in enumerate(rung.cells):
        for row, launch in enumerate(cells):
            left, right, top, bottom = found.get(launch, (column, column, row,
                                                          row))
            found[launch] = (min(left, column), max(right, column),
                             min(top, row), max(bottom, row))
    return [(launch, *places) for launch, places in found.items()]


def words(rungs):
    """The picture, for those who cannot see it."""
    return " ".join(say("{name}: {launches}, {bytes}, {time}.",
                        name=rung.name.capitalize(), launches=rung.launches_text,
                        bytes=rung.megabytes_text, time=rung.time_text)
                    for rung in rungs)


def svg(rungs):
    """Each rung as its grid, and bars for its time and its bytes."""
    height = _KEY + len(rungs) * _RUNG
    body = [f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" '
            f'aria-label="{html.escape(words(rungs))}" '
            'xmlns="http://www.w3.org/2000/svg">', *_key()]
    slowest = max(rung.time.value for rung in rungs)
    most = max(rung.megabytes for rung in rungs)
    for number, rung in enumerate(rungs):
        top = _KEY + number * _RUNG
        body += _grid(rung, top + 4)
        body.append(_text(_BARS, top + 20, rung.name, "title"))
        body.append(_text(_WIDTH, top + 20, rung.launches_text, "count", "end"))
        body += _bar(top + 30, rung.time.value / slowest, rung.time_text, True)
        body += _bar(top + 52, rung.megabytes / most if most else 0,
                     rung.megabytes_text, False)
    return "\n".join([*body, "</svg>"])


def _key():
    for x, label, solid in ((_BARS, say("time of a step"), True),
                            (_BARS + 124, say("bytes moved"), False)):
        yield _box(x, 6, 12, solid)
        yield _text(x + 18, 16, label, "key")


def _bar(y, share, label, solid):
    wide = max(share * _LONGEST, 1.5)
    yield _box(_BARS, y, wide, solid)
    yield _text(_BARS + wide + 6, y + 11, label, "number")


def _box(x, y, wide, solid):
    """Filled or hollow, so that it needs no colour to tell them apart."""
    fill = 1 if solid else 0.12
    return (f'<rect class="bar" x="{x}" y="{y}" width="{wide:.1f}" height="14" '
            f'fill="currentColor" fill-opacity="{fill}" stroke="currentColor" '
            'stroke-width="1.4"/>')


def _grid(rung, top):
    """Tensors across, operations down, a frame for each launch."""
    places = _places(rung.tensors)
    for _, first, last, upper, lower in frames(rung):
        x, wide = places[first], places[last] - places[first] + _CELL_WIDE
        high = (lower - upper + 1) * _CELL_HIGH
        yield (f'<rect class="launch" x="{x + 1}" y="{top + upper * _CELL_HIGH + 1}" '
               f'width="{wide - 2}" height="{high - 2}" rx="2" '
               'fill="currentColor" fill-opacity="0.14" stroke="currentColor" '
               'stroke-width="1.2"/>')
    middle = top + len(rung.cells[0]) * _CELL_HIGH / 2 + 3
    for before, after, x in zip(rung.tensors, rung.tensors[1:], places[1:]):
        if after != before + 1:
            yield _text(x - _MORE / 2, middle, "…", "more", "middle")


def _places(tensors):
    """Where each column begins; there is room where some are left out."""
    places = [2]
    for before, after in zip(tensors, tensors[1:]):
        gap = 0 if after == before + 1 else _MORE
        places.append(places[-1] + _CELL_WIDE + gap)
    return places


def _text(x, y, text, kind, anchor="start"):
    return (f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" '
            f'text-anchor="{anchor}">{html.escape(text)}</text>')
