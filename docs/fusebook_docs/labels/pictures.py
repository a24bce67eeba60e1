"""Drawn pictures have their own titles, keys and labels.

Each panel of the picture of launches has the name of a rung of the ladder that the first
recipe prints, and groups operations and tensors as that one's launches do; what is
written under it says so. In the drawn ladder the key of a filled box is the key of the
times, and each number stands behind the bar that is as long.
"""

import re

from .. import ladder, launches, samples
from ..errors import BookError

PANELS = "docs/fusebook_docs/launches.py"
LADDER = "docs/fusebook_docs/ladder.py"
_RECIPE, _STEP = "compiling_optimizer", "The ladder"
_SAID = re.compile(r"\b(one|every|all) (operation|tensor)s?\b")
_BOX = re.compile(r'<rect class="bar" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"[^>]* '
                  r'fill-opacity="([\d.]+)"[^>]*/>\s*<text class="(\w+)"[^>]*>([^<]*)<')


def problems(book):
    rungs = _rungs(book)
    yield from of_panels(book, rungs)
    for message in of_ladder(ladder.svg(rungs), rungs):
        yield BookError(message, LADDER, 1)


def _rungs(book):
    sample = samples.load(book, "cpu", _RECIPE)
    return ladder.read(sample.text_of(_STEP), sample.values)


def of_panels(book, rungs, panels=launches.PANELS):
    source = (book.root / PANELS).read_text(encoding="utf-8")
    whole = {rung.name: _spans(rung) for rung in rungs}
    for title, rows, columns, text in panels:
        name = str(title).partition(":")[0].lower()
        line = source[:max(source.find(str(title)), 0)].count("\n") + 1
        drawn = (rows > 1, columns > 1)
        said = {what: often == "all" for often, what in _SAID.findall(str(text))}
        if drawn != whole.get(name):
            yield BookError(f"{title!r} is not drawn as its launches are in {_STEP!r}",
                            PANELS, line)
        elif said and said != {"operation": drawn[0], "tensor": drawn[1]} or (
                not said and drawn != (True, True)):
            yield BookError(f"{text!r} is not what {title!r} does", PANELS, line)


def _spans(rung):
    """Whether a launch takes several operations, and several tensors."""
    frames = ladder.frames(rung)
    return (any(top < bottom for *_, top, bottom in frames),
            any(left < right for _, left, right, *_ in frames))


def of_ladder(svg, rungs):
    """What is wrong with a drawn ladder."""
    boxes = _BOX.findall(svg)
    key = {fill: label for *_, fill, kind, label in boxes if kind == "key"}
    if key != {"1": "time of a step", "0.12": "bytes moved"}:
        yield f"the key is {key}"
    bars = [(float(wide), fill, label) for _, wide, fill, kind, label in boxes
            if kind == "number"]
    longest = max(wide for wide, *_ in bars)
    slowest = max(rung.time.value for rung in rungs)
    most = max(rung.megabytes for rung in rungs)
    wanted = [each for rung in rungs for each in (
        (rung.time.value / slowest, "1", rung.time_text),
        (rung.megabytes / most, "0.12", rung.megabytes_text))]
    for (wide, fill, label), (share, filled, text) in zip(bars, wanted, strict=True):
        if fill != filled or label != text or abs(wide - share * longest) > 0.1:
            yield f"a bar is called {label!r}, and is that of {text!r}"
