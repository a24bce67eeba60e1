"""`.. recipe-plot:: STEP` draws the table that a step of the recipe printed.

The numbers are those of the committed sample, so the picture cannot say
anything else than the output on the page. A table is what `print_columns` and
`print_row` of a recipe print: names with two blanks or more between them, then
rows of numbers. Its first column goes to the right. Every other is named
"SERIES QUANTITY": each quantity has a panel of its own, with one curve a
series. Text stays text, and the colours are those of the page.

Options: `:alt:` what the picture shows, in words (required). The content is
the caption.
"""

import html
import math

from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from ..errors import BookError
from ..samples import filled
from ..tables import table
from ..words import say
from . import page as pages
from . import quote
from .drawing import drawing
from .editions import said

_WIDTH, _LEFT, _RIGHT = 360, 46, 56
_PANEL, _HEAD, _GAP, _FOOT = 120, 22, 14, 36
_DASHES = ("5 3", "none", "2 3", "8 3 2 3")
_LINE = 14  # the height of a line of text
_CHART = 190  # the height of a chart with a legend


class RecipePlot(SphinxDirective):
    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"alt": directives.unchanged_required}
    has_content = True

    def run(self):
        self.assert_has_content()
        if "alt" not in self.options:
            raise self.error("recipe-plot needs :alt:, the picture in words")
        page, title = pages.current(self.env), self.arguments[0]
        if title not in page.recipe.step_titles:
            raise self.error(f"recipe-plot: the recipe has no step {title!r}")
        sample = page.samples.get("cpu")
        text = sample and sample.text_of(title)
        if not text:
            return []  # the page has complained that the sample lacks it
        try:
            names, rows = table(filled(text, sample.values))
        except ValueError as error:
            raise self.error(f"recipe-plot: {title!r}: {error}") from error
        try:
            alt = quote.filled(
                self.env, said(self.env, self.options["alt"],
                               *self.get_source_info()), self.lineno)
        except BookError as error:
            raise self.error(f"recipe-plot: :alt: {error}") from error
        node = drawing(kind="recipe-plot", drawn=draw(names, rows, alt))
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


def panels(names, rows):
    """(quantity, [(series, values)]) for every picture, from top to bottom."""
    found = {}
    for column, name in enumerate(names[1:], 1):
        series, _, quantity = name.rpartition(" ")
        values = [row[column] for row in rows]
        found.setdefault(quantity, []).append((series, values))
    return list(found.items())


class Scale:
    """Numbers to places along a line: evenly, or by their logarithm where the
    largest is ten times the smallest or more."""

    def __init__(self, values, begin, end, logarithmic=None):
        low, high = min(values), max(values)
        self.log = (low > 0 and high >= 10 * low if logarithmic is None
                    else logarithmic)
        if low == high:
            low, high = low - 1, high + 1
        self.low, self.high = low, high
        self.begin, self.end = begin, end

    def _of(self, value):
        return math.log10(value) if self.log else value

    def __call__(self, value):
        share = ((self._of(value) - self._of(self.low)) /
                 (self._of(self.high) - self._of(self.low)))
        return self.begin + share * (self.end - self.begin)

    def ticks(self, most=5):
        """Round numbers within the range."""
        steps = (_decades((1, 2, 5), self.low, self.high) if self.log else
                 _even(self.low, self.high, most))
        if self.log and len(steps) > most:
            steps = _decades((1,), self.low, self.high)
        return steps[::-(-len(steps) // most)]


def _decades(digits, low, high):
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = (float(f"{digit}e{power}") for power in powers for digit in digits)
    return [value for value in values if low <= value <= high]


def _even(low, high, most):
    step = 10 ** math.floor(math.log10((high - low) / most))
    step = next(step * n for n in (1, 2, 5, 10)
                if (high - low) / (step * n) <= most)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [round(n * step, 12) for n in range(first, last + 1)]


def draw(names, rows, alt, evenly=True):
    """The table as SVG. `evenly`: places to the right are not by logarithm."""
    pictures = panels(names, rows)
    height = len(pictures) * (_HEAD + _PANEL + _GAP) - _GAP + _FOOT
    across = Scale([row[0] for row in rows], _LEFT, _WIDTH - _RIGHT,
                   False if evenly else None)
    body = [f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" '
            f'aria-label="{html.escape(alt)}" '
            'xmlns="http://www.w3.org/2000/svg">']
    top = 0
    for quantity, curves in pictures:
        body += _panel(quantity, curves, [row[0] for row in rows], across,
                       top + _HEAD)
        top += _HEAD + _PANEL + _GAP
    body += _axis(names[0], across, top - _GAP)
    return "\n".join([*body, "</svg>"])


def sketch(names, rows):
    """The last quantity of the table alone, small and without numbers."""
    quantity, curves = panels(names, rows)[-1]
    title = say("{quantity} by {place}", quantity=quantity, place=names[0])
    ends = say(", ").join(f"{name} {values[-1]:g}" for name, values in curves)
    values = [value for _, series in curves for value in series]
    across = Scale([row[0] for row in rows], 4, 128, False)
    up = Scale(values, 78, 8)
    words = say("{title}, at the end {values}", title=title, values=ends)
    body = ['<svg class="thumbnail" viewBox="0 0 170 100" role="img" aria-label="'
            f'{html.escape(words)}" xmlns="http://www.w3.org/2000/svg">',
            _line(4, 86, 128, 86, "axis"),
            _text(4, 98, title, "number")]
    body += _curves(curves, [row[0] for row in rows], across, up)
    for y, name in _apart([(up(s[-1]), name) for name, s in curves], 0):
        body.append(_text(132, y + 4, name, "series"))
    return "\n".join([*body, "</svg>"])


def chart(across_name, up_name, lines, marked, alt):
    """Lines and points with marks, `(label, [(x, y)])`, over two logarithmic axes. What
    a line or a mark is called stands below, so that no colour is needed."""
    everything = [point for _, points in [*lines, *marked] for point in points]
    across = Scale([x for x, _ in everything], _LEFT, _WIDTH - 10, True)
    bottom = _HEAD + _CHART
    up = Scale([y for _, y in everything], bottom - 4, _HEAD + 4, True)
    names = len(lines) + len(marked)
    height = bottom + _FOOT + names * _LINE + 6
    body = [f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" '
            f'aria-label="{html.escape(alt)}" '
            'xmlns="http://www.w3.org/2000/svg">',
            _text(2, _HEAD - 8, up_name, "title")]
    for value in up.ticks(8):
        body += [_line(_LEFT, up(value), _WIDTH - 10, up(value), "grid"),
                 _text(_LEFT - 6, up(value) + 4, _short(value), "tick", "end")]
    body += _curves_of(lines, across, up)
    for index, (_, points) in enumerate(marked):
        body += [_mark(index, across(x), up(y)) for x, y in points]
    body.append(_line(_LEFT, bottom, _WIDTH - 10, bottom, "axis"))
    for value in across.ticks():
        body.append(_text(across(value), bottom + 15, _short(value), "tick",
                          "middle"))
    body.append(_text((_LEFT + _WIDTH) / 2, bottom + 31, across_name, "title",
                      "middle"))
    body += _legend(lines, marked, bottom + _FOOT + _LINE)
    return "\n".join([*body, "</svg>"])


def _short(value):
    """A power of ten as few digits as it needs: 1e+06 is a million."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _curves_of(lines, across, up):
    for index, (_, points) in enumerate(lines):
        yield from _curves([("", [y for _, y in points])], [x for x, _ in points],
                           across, up, index)


def _mark(index, x, y):
    """The shapes differ, so that they can be told in black and white."""
    shape = (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="currentColor"',
             f'<rect x="{x - 3.2:.1f}" y="{y - 3.2:.1f}" width="6.4" height="6.4" '
             'fill="none"',
             f'<path d="M{x:.1f} {y - 4:.1f} l4 7 h-8 z" fill="none"',
             f'<path d="M{x - 3.2:.1f} {y - 3.2:.1f} l6.4 6.4 m0 -6.4 l-6.4 6.4" '
             'fill="none"')
    return (f'{shape[index % len(shape)]} class="mark" stroke="currentColor" '
            'stroke-width="1.4"/>')


def _legend(lines, marked, y):
    for index, (label, _) in enumerate(lines):
        dash = _DASHES[index % len(_DASHES)]
        yield (f'<polyline points="{_LEFT},{y - 4} {_LEFT + 30},{y - 4}" '
               f'fill="none" stroke="currentColor" stroke-width="1.8" '
               f'stroke-dasharray="{dash}"/>')
        yield _text(_LEFT + 38, y, label, "series")
        y += _LINE
    for index, (label, _) in enumerate(marked):
        yield _mark(index, _LEFT + 15, y - 4)
        yield _text(_LEFT + 38, y, label, "series")
        y += _LINE


def _panel(quantity, curves, places, across, top):
    values = [value for _, series in curves for value in series]
    up = Scale(values, top + _PANEL - 4, top + 4)
    title = say("{quantity} (logarithmic)", quantity=quantity) if up.log else quantity
    yield _text(2, top - 8, title, "title")
    for value in up.ticks():
        yield _line(_LEFT, up(value), _WIDTH - _RIGHT, up(value), "grid")
        yield _text(_LEFT - 6, up(value) + 4, f"{value:g}", "tick", "end")
    yield from _curves(curves, places, across, up)
    labels = _apart([(up(series[-1]), name) for name, series in curves], top)
    for y, name in labels:
        yield _text(_WIDTH - _RIGHT + 6, y + 4, name, "series")


def _curves(curves, places, across, up, first=0):
    for index, (_, series) in enumerate(curves, first):
        points = " ".join(f"{across(x):.1f},{up(y):.1f}"
                          for x, y in zip(places, series))
        dash = _DASHES[index % len(_DASHES)]
        yield (f'<polyline points="{points}" fill="none" '
               f'stroke="currentColor" stroke-width="1.8" '
               f'stroke-linejoin="round" stroke-dasharray="{dash}"/>')


def _apart(labels, top):
    """Labels in a column, moved so that none covers another."""
    placed = []
    for y, name in sorted(labels):
        placed.append((max(y, placed[-1][0] + _LINE if placed else y), name))
    below = (placed[-1][0] if placed else 0) - (top + _PANEL)
    return [(y - max(below, 0), name) for y, name in placed]


def _axis(name, across, y):
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    yield _line(_LEFT, y, _WIDTH - _RIGHT, y, "axis")
    for value in across.ticks():
        yield _text(across(value), y + 15, f"{value:g}", "tick", "middle")
    yield _text(middle, y + 31, name, "title", "middle")


def _line(x1, y1, x2, y2, kind):
    return (f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" '
            f'y2="{y2:.1f}" stroke="currentColor"/>')


def _text(x, y, text, kind, anchor="start"):
    return (f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" '
            f'text-anchor="{anchor}">{html.escape(text)}</text>')


def setup(app):
    app.add_directive("recipe-plot", RecipePlot)
