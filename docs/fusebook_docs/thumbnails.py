"""Small pictures of what recipes printed: those of the gallery's cards, and bars.

In gallery.toml, `bars` are "label = QUOTE", a number each, as `:value:` quotes it
(quotes.py); or `curves` is the step that printed a table.
"""

import html
from dataclasses import dataclass

from . import numbers, quotes, samples
from .errors import BookError
from .words import say

_WIDTH, _ROW = 170, 20
_NUMBERS = 86  # room for a number behind the longest bar


@dataclass(frozen=True)
class Bar:
    """A number with a name; `quote` says where it was printed."""

    label: str
    shown: str
    value: float
    quote: quotes.Quote


def svg(book, entry, said=str):
    """The picture, or None if the gallery asks for none. `said` puts its labels into
    the language of the page."""
    home = quotes.Home(entry.name)
    if entry.bars:
        return drawn([bar(book, text, home, said) for text in entry.bars])
    return None


def bar(book, text, home, said=str):
    """A bar from "label = QUOTE"."""
    label, _, quote = (part.strip() for part in text.partition(" = "))
    found = quotes.quoted(book, "value", quote, home)
    other = f"{label.replace(' ', '_')}_us"
    if other != quote and _is_value(book, other, home):
        raise BookError(f"{label}: {quote!r} is not what has this name; that is "
                        f"{other!r}")
    shown = found.text.rstrip(".")
    worth = numbers.worth(shown)
    if worth is None or worth[0] < 0:
        raise BookError(f"{label}: {shown!r} is not a valid length of a bar")
    return Bar(said(label), shown, worth[0], found)


def _is_value(book, name, home):
    try:
        quotes.quoted(book, "value", name, home)
    except BookError:
        return False
    return True


def drawn(bars, width=_WIDTH):
    """Bars as SVG, each under its label and before its number."""
    most = max(each.value for each in bars) or 1
    words = html.escape(say("; ").join(
        say("{name}: {value}", name=each.label, value=each.shown) for each in bars))
    out = [f'<svg class="thumbnail" viewBox="0 0 {width} '
           f'{len(bars) * 2 * _ROW - 4}" role="img" aria-label="{words}" '
           'xmlns="http://www.w3.org/2000/svg">']
    for index, each in enumerate(bars):
        top = index * 2 * _ROW
        wide = max((width - _NUMBERS) * each.value / most, 1.5)
        out.append(f'<text x="0" y="{top + 13}">{html.escape(each.label)}'
                   "</text>")
        out.append(
            f'<rect x="0.7" y="{top + _ROW}" width="{wide:.1f}" height="13" '
            'fill="currentColor" fill-opacity="0.35" stroke="currentColor" '
            'stroke-width="1.4"/>')
        out.append(f'<text class="number" x="{wide + 6:.1f}" '
                   f'y="{top + _ROW + 11}">{html.escape(each.shown)}</text>')
    return "\n".join([*out, "</svg>"])


def table_text(book, entry):
    """What the step of `curves` printed."""
    sample = samples.load(book, "cpu", entry.name)
    text = sample.text_of(entry.curves)
    if not text:
        raise BookError(f"{entry.name} has no step {entry.curves!r} with "
                        "output")
    return samples.filled(text, sample.values)
