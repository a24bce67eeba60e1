"""The small picture on a recipe's card, drawn from what the recipe printed.

In gallery.toml, `bars` are "label = QUOTE", a number each, as `:value:` quotes it
(quotes.py); or `curves` is the step that printed a table.
"""

import html

from . import numbers, quotes, samples
from .errors import BookError

_WIDTH, _BAR, _ROW = 170, 84, 20


def svg(book, entry):
    """The picture, or None if the gallery asks for none."""
    if entry.bars:
        return _bars(entry.name, [_bar(book, entry, bar) for bar in entry.bars])
    return None


def _bar(book, entry, text):
    label, _, quote = (part.strip() for part in text.partition(" = "))
    home = quotes.Home(entry.name)
    shown = quotes.quoted(book, "value", quote, home).text.rstrip(".")
    worth = numbers.worth(shown)
    if worth is None or worth[0] < 0:
        raise BookError(f"{entry.name}: {shown!r} is no length of a bar")
    return label, shown, worth[0]


def _bars(name, bars):
    most = max(value for _, _, value in bars) or 1
    words = html.escape("; ".join(f"{label}: {shown}"
                                  for label, shown, _ in bars))
    out = [_opening(len(bars) * 2 * _ROW - 4, words)]
    for index, (label, shown, value) in enumerate(bars):
        top = index * 2 * _ROW
        wide = max(_BAR * value / most, 1.5)
        out.append(f'<text x="0" y="{top + 13}">{html.escape(label)}</text>')
        out.append(
            f'<rect x="0.7" y="{top + _ROW}" width="{wide:.1f}" height="13" '
            'fill="currentColor" fill-opacity="0.35" stroke="currentColor" '
            'stroke-width="1.4"/>')
        out.append(f'<text class="number" x="{wide + 6:.1f}" '
                   f'y="{top + _ROW + 11}">{html.escape(shown)}</text>')
    return "\n".join([*out, "</svg>"])


def _opening(height, words):
    return (f'<svg class="thumbnail" viewBox="0 0 {_WIDTH} {height}" role="img" '
            f'aria-label="{words}" xmlns="http://www.w3.org/2000/svg">')


def table_text(book, entry):
    """What the step of `curves` printed."""
    sample = samples.load(book, "cpu", entry.name)
    text = sample.text_of(entry.curves)
    if not text:
        raise BookError(f"{entry.name} has no step {entry.curves!r} that prints")
    return samples.filled(text, sample.values)
