"""The picture of which work shares a launch, as SVG.

Every panel is a grid of operations (rows) by tensors (columns); cells of one launch
stand in one frame. `panels` is for a page, whose colours it takes; `alone` is for
places that have no style, light or dark.
"""

import html

from .words import later, many, say

_TENSORS, _OPERATIONS = 4, 5
_CELL, _GAP, _LEFT, _TOP = 24, 8, 30, 30
# Title, rows of a launch, columns of a launch, what it is.
PANELS = (
    (later("Op by op"), 1, 1, later("every operation on every tensor by itself")),
    (later("Horizontal"), 1, _TENSORS, later("one operation over all tensors")),
    (later("Vertical"), _OPERATIONS, 1, later("all operations on one tensor")),
    (later("Both: a fused step"), _OPERATIONS, _TENSORS, later("everything at once")),
)


def panel(title, rows, columns, text):
    """One grid as SVG, and its description for those who cannot see it."""
    count = _count(rows, columns)
    width, height = _size()
    alt = html.escape(say(
        "{title}: {text}, {launches} for {tensors} tensors and {operations} "
        "operations.", title=say(title), text=say(text), launches=count,
        tensors=_TENSORS, operations=_OPERATIONS))
    number, _, word = count.partition(" ")
    return "\n".join([
        '<div class="fusion-panel">',
        f'<svg viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{alt}" xmlns="http://www.w3.org/2000/svg">',
        *_grid(rows, columns, width, height), "</svg>",
        f'<p class="fusion-title">{html.escape(say(title))}</p>',
        f'<p class="fusion-count"><strong>{number}</strong> {word}</p>',
        "</div>"])


def _count(rows, columns):
    launches = (_OPERATIONS // rows) * (_TENSORS // columns)
    return many("{count} launch", "{count} launches", launches)


def _size():
    return (_LEFT + _TENSORS * _CELL + (_TENSORS - 1) * _GAP + 4,
            _TOP + _OPERATIONS * _CELL + (_OPERATIONS - 1) * _GAP + 4)


def _grid(rows, columns, width, height):
    yield _words(width, height)
    for row in range(0, _OPERATIONS, rows):
        for column in range(0, _TENSORS, columns):
            yield _frame(row, column, rows, columns)
    for row in range(_OPERATIONS):
        for column in range(_TENSORS):
            yield _dot(row, column)


def _at(index, start):
    return start + index * (_CELL + _GAP)


def _words(width, height):
    middle = (_TOP + height) // 2
    across = (_LEFT + width) // 2
    return (f'<text x="{across}" y="14" text-anchor="middle">{say("tensors →")}</text>'
            f'<text x="14" y="{middle}" text-anchor="middle" '
            f'transform="rotate(-90 14 {middle})">{say("← operations")}</text>')


def _frame(row, column, rows, columns):
    wide = columns * (_CELL + _GAP) - _GAP
    high = rows * (_CELL + _GAP) - _GAP
    return (f'<rect class="launch" x="{_at(column, _LEFT)}" '
            f'y="{_at(row, _TOP)}" width="{wide}" height="{high}" rx="6" '
            'fill="currentColor" fill-opacity="0.14" stroke="currentColor" '
            'stroke-width="1.6"/>')


def _dot(row, column):
    x = _at(column, _LEFT) + _CELL // 2
    y = _at(row, _TOP) + _CELL // 2
    return f'<circle cx="{x}" cy="{y}" r="3.5" fill="currentColor"/>'


def alone():
    """All panels in one file, with their titles below them."""
    width, height, apart = _size()[0], _size()[1], 36
    parts = []
    for index, (title, rows, columns, _) in enumerate(PANELS):
        left = index * (width + apart)
        middle = left + (_LEFT + width) // 2
        parts += [f'<g transform="translate({left} 0)">',
                  *_grid(rows, columns, width, height), "</g>",
                  f'<text x="{middle}" y="{height + 24}" text-anchor="middle" '
                  f'font-weight="600">{html.escape(title)}</text>',
                  f'<text x="{middle}" y="{height + 44}" text-anchor="middle">'
                  f'{_count(rows, columns)}</text>']
    whole = len(PANELS) * (width + apart)
    alt = html.escape("Which work shares a launch: " + "; ".join(
        f"{title.lower()}, {text}: {_count(rows, columns)}"
        for title, rows, columns, text in PANELS))
    return "\n".join([
        f'<svg viewBox="0 0 {whole} {height + 54}" width="{whole}" role="img" '
        f'aria-label="{alt}" color="#7a8699" fill="#7a8699" '
        'font-family="sans-serif" font-size="14" '
        'xmlns="http://www.w3.org/2000/svg">', *parts, "</svg>", ""])
