"""Graphs that the library logs (`graph`), as pictures.

The text is Graphviz's: nodes with labels and shapes, and arrows. A node stands
below all that it is made of.
"""

import html
import re
from dataclasses import dataclass, field

from .errors import BookError

_GRAPH = re.compile(r'digraph "([^"]+)" \{\n(.*?)\n\}\n', re.DOTALL)
_NODE = re.compile(r'^\s*(\w+) \[label="((?:\\.|[^"\\])*)", shape=(\w+)'
                   r'(?:, style=(\w+))?\];$', re.MULTILINE)
_ARROW = re.compile(r"^\s*(\w+) -> (\w+);$", re.MULTILINE)
_CHARACTER, _HIGH, _GAP, _RISE, _EDGE = 7.4, 30, 18, 64, 6
_ASIDE = 26  # room on the left for arrows that go around nodes


@dataclass
class Node:
    label: str
    is_operation: bool
    style: str
    inputs: list[str] = field(default_factory=list)
    rank: int = 0
    left: float = 0.0

    @property
    def width(self):
        return max(len(self.label) * _CHARACTER + 22, 48)

    @property
    def top(self):
        return _EDGE + self.rank * _RISE

    @property
    def middle(self):
        return self.left + self.width / 2


def read(text, title):
    """The nodes of one graph of a log, inputs first."""
    for match in _GRAPH.finditer(text):
        if match[1] == title:
            return _nodes(match[2])
    known = ", ".join(repr(match[1]) for match in _GRAPH.finditer(text))
    raise BookError(f"unknown graph {title!r}; known: {known or 'none'}")


def _nodes(body):
    found = {name: Node(label.replace('\\"', '"'), shape == "box", style)
             for name, label, shape, style in _NODE.findall(body)}
    for start, end in _ARROW.findall(body):
        found[end].inputs.append(start)
    for node in found.values():  # every input is declared before it
        node.rank = 1 + max((found[name].rank for name in node.inputs),
                            default=-1)
    _place(found)
    return found


def _place(found):
    """Side by side on their ranks, each rank in the middle."""
    ranks = {}
    for node in found.values():
        ranks.setdefault(node.rank, []).append(node)
    widths = {rank: sum(n.width for n in row) + _GAP * (len(row) - 1)
              for rank, row in ranks.items()}
    for rank, row in ranks.items():
        left = _ASIDE + (max(widths.values()) - widths[rank]) / 2
        for node in row:
            node.left = left
            left += node.width + _GAP


def svg(nodes, alt):
    """The picture; its text is text, its colours are those of the page."""
    wide = max(node.left + node.width for node in nodes.values()) + _EDGE
    high = max(node.top for node in nodes.values()) + _HIGH + _EDGE
    body = [f'<svg viewBox="0 0 {wide:.0f} {high:.0f}" role="img" '
            f'style="max-width: {wide:.0f}px" aria-label="{html.escape(alt)}" '
            'xmlns="http://www.w3.org/2000/svg">']
    for node in nodes.values():
        body += [_arrow(nodes, nodes[name], node) for name in node.inputs]
    body += [_box(node) for node in nodes.values()]
    return "\n".join([*body, "</svg>"])


def _arrow(nodes, start, end):
    """Down to the middle of a node, or around those in between to its side."""
    passed = [n.left for n in nodes.values() if start.rank < n.rank < end.rank]
    if passed:
        side, x, y1 = min(passed) - 18, end.left + 12, start.top + _HIGH
        bend = f"{side:.1f} {y1 + 30} {side:.1f} {end.top - 34}"
    else:
        x, y1 = end.middle, start.top + _HIGH
        bend = f"{start.middle:.1f} {y1 + 20} {x:.1f} {end.top - 24}"
    y2 = end.top
    head = f"M{x - 4:.1f} {y2 - 7}L{x:.1f} {y2}L{x + 4:.1f} {y2 - 7}"
    return (f'<path d="M{start.middle:.1f} {y1}C{bend} {x:.1f} {y2 - 1}{head}" '
            'fill="none" stroke="currentColor" stroke-opacity="0.7"/>')


def _box(node):
    dashes = ' stroke-dasharray="4 3"' if node.style == "dashed" else ""
    fill = 0.14 if node.is_operation else 0
    corner = 6 if node.is_operation else _HIGH / 2
    thick = 2.4 if node.style == "bold" else 1.4
    return (f'<rect x="{node.left:.1f}" y="{node.top}" width="{node.width:.1f}" '
            f'height="{_HIGH}" rx="{corner:g}" fill="currentColor" '
            f'fill-opacity="{fill:g}" stroke="currentColor" '
            f'stroke-width="{thick}"{dashes}/>'
            f'<text x="{node.middle:.1f}" y="{node.top + 20}" '
            f'text-anchor="middle">{html.escape(node.label)}</text>')
