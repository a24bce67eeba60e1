"""`.. fusion-picture::` draws which work shares a launch, four times.

Every panel is a grid of operations (rows) by tensors (columns); cells of one
launch stand in one frame. It is drawn from these few lines at every build, as
SVG in the page: text stays text, and the colours are those of the page.
"""

import html

from sphinx.util.docutils import SphinxDirective

from .drawing import drawing

_TENSORS, _OPERATIONS = 4, 5
_CELL, _GAP, _LEFT, _TOP = 24, 8, 30, 30
# Title, rows of a launch, columns of a launch, what it is.
_PANELS = (
    ("Op by op", 1, 1, "every operation on every tensor by itself"),
    ("Horizontal", 1, _TENSORS, "one operation over all tensors"),
    ("Vertical", _OPERATIONS, 1, "all operations on one tensor"),
    ("Both: a fused step", _OPERATIONS, _TENSORS, "everything at once"),
)


class FusionPicture(SphinxDirective):
    """The content is the caption."""

    has_content = True

    def run(self):
        self.assert_has_content()
        panels = "\n".join(panel(*row) for row in _PANELS)
        node = drawing(kind="fusion-picture",
                      drawn=f'<div class="fusion-panels">\n{panels}\n</div>')
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


def panel(title, rows, columns, text):
    """One grid as SVG, and its description for those who cannot see it."""
    launches = (_OPERATIONS // rows) * (_TENSORS // columns)
    count = f"{launches} launch{'' if launches == 1 else 'es'}"
    width = _LEFT + _TENSORS * _CELL + (_TENSORS - 1) * _GAP + 4
    height = _TOP + _OPERATIONS * _CELL + (_OPERATIONS - 1) * _GAP + 4
    alt = html.escape(f"{title}: {text}, {count} for {_TENSORS} tensors and "
                      f"{_OPERATIONS} operations.")
    body = [f'<svg viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{alt}" xmlns="http://www.w3.org/2000/svg">',
            _words(width, height)]
    body += [_frame(row, column, rows, columns)
             for row in range(0, _OPERATIONS, rows)
             for column in range(0, _TENSORS, columns)]
    body += [_dot(row, column) for row in range(_OPERATIONS)
             for column in range(_TENSORS)]
    return "\n".join([
        '<div class="fusion-panel">', *body, "</svg>",
        f'<p class="fusion-title">{html.escape(title)}</p>',
        f'<p class="fusion-count"><strong>{launches}</strong> '
        f'launch{"" if launches == 1 else "es"}</p>', "</div>"])


def _at(index, start):
    return start + index * (_CELL + _GAP)


def _words(width, height):
    middle = (_TOP + height) // 2
    across = (_LEFT + width) // 2
    return (f'<text x="{across}" y="14" text-anchor="middle">tensors →</text>'
            f'<text x="14" y="{middle}" text-anchor="middle" '
            f'transform="rotate(-90 14 {middle})">← operations</text>')


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


def setup(app):
    app.add_directive("fusion-picture", FusionPicture)
