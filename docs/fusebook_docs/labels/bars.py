"""Bars and curves are called what they are, and stand where their sizes are spoken of.

A bar of `value-bars` or of a card has words of the line that prints its number, or of the
step that it names: more than of another bar of the picture. What is drawn of a
measurement is called what the benchmark calls it, or as in `CALLED`. Where the text before
pictures speaks of large or small tensors, in turn, they are of these; where it does not,
of large ones.
"""

import re

from .. import gallery, literate, quotes, samples
from ..errors import BookError
from . import fitting

# What pages call a variant of the benchmark.
CALLED = {
    "tensor by tensor": "op by op", "foreach": "eager", "compiled, in registers":
    "in registers", "recording": "record", "binding": "bind",
    "kept": "gradients stayed", "zero_grad, backward": "freed and made again",
    "all new": "all at new addresses", "torch # for-loop": "PyTorch, op by op",
    "torch # foreach": "PyTorch, eager", "torch # fused": "PyTorch, fused",
    "torch # torch.compile": "PyTorch, compiled",
    "torch # whole tail": "PyTorch, whole tail",
    "torch # clip, Adam, average": "PyTorch, without scaling",
    "torch # LibTorch": "PyTorch, C++", "LibTorch adapter": "with LibTorch",
    "Python package": "in Python",
}
LARGE, SMALL = "10 x 1024 x 1024", "1000 x 64"
_VALUES = re.compile(r"^\.\. value-bars:: (\S+)\n\n((?:   .+\n)+)", re.M)
_MEASURED = re.compile(r"^\.\. measured-(?:bars|curves):: (\w+)\n"
                       r"((?: {3,}.+\n)+)\n((?:   .+\n)+)", re.M)
_CASE = re.compile(r":case: (.+)")
_SIZES = re.compile(r"\b(large|small)(?= (?:tensors|ones))|\b(large)(?= and)|"
                    r"\b(large)(?= tensors)")
_PICTURE = re.compile(r"^\.\. (?:value-bars|measured-\w+)::.*\n(?:(?: .*)?\n)*", re.M)
_INSIDE = "inside a kernel"
_LIMIT = 0.9  # what is not kept below this was divided by the machine's limit


def in_prose(book, text):
    return text.errors([*_of_values(book, text.whole), *_of_measured(text.whole)])


def of_cards(book, source=None):
    """The bars on the cards of the gallery, and the level: a recipe that shows code for
    GPUs, and no other, is inside a kernel."""
    path = gallery.path(book)
    if source is None:
        source = path.read_text(encoding="utf-8")
    for entry in gallery.entries(book):
        table = source.partition(f'name = "{entry.name}"')[2].partition("[[recipe]]")[0]
        at = source.index(f'name = "{entry.name}"')
        line = source.count("\n", 0, at) + 1
        level = re.search(r'level = "(.*)"', table)
        if (level[1] == _INSIDE) != (".cu\n" in book.recipe_path(entry.name).read_text()):
            yield BookError(f"{level[1]!r} is not the level of {entry.name}: {_INSIDE!r} "
                            "is what shows a .cu", book.show(path), line)
        found = re.search(r"bars = \[([^\]]*)\]", table)
        lines = re.findall(r'"([^"]+)"', found[1]) if found else []
        for message in _mixed_up(book, entry.name, lines):
            yield BookError(message, book.show(path), line)


def _of_values(book, whole):
    for each in _VALUES.finditer(whole):
        for message in _mixed_up(book, each[1], each[2].splitlines()):
            yield each.start(), message


def _mixed_up(book, of, lines):
    bars = [[part.strip() for part in line.partition(" = ")[::2]]
            for line in lines if line.strip()]
    for column, what in enumerate(("label", "value")):
        seen = [bar[column] for bar in bars]
        if len(set(seen)) < len(seen):
            yield f"a {what} stands here twice: {', '.join(seen)}"
    pairs = [(frozenset(fitting.words(label)), frozenset(_told(book, of, quote)))
             for label, quote in bars]
    for i, j in fitting.swapped(pairs):
        yield (f"{bars[i][0]!r} is a name for {bars[j][1]!r} rather than for "
               f"{bars[i][1]!r}")


def _told(book, of, quote):
    """Words of what is quoted, of the line that prints it and of the named step."""
    recipe, _, exercise = of.partition(".")
    sample = samples.load(book, "cpu", recipe, exercise or None)
    what, *wheres = re.split(r"\s@\s", quotes.target(quote))
    parts = [what, *wheres]
    parts += [line for step in sample.steps for line in step.text.splitlines()
              if f"@{{{what}}}" in line]
    ratios = sample.values.values()
    if any(each.below == what and each.low and each.low > _LIMIT for each in ratios):
        parts.append("limit")
    for part in literate.read(book.recipe_path(recipe)).steps:
        if part.title in wheres:
            parts += [line.text for line in (*part.prose, *part.code)]
    if "fused" in what:
        parts.append("one launch")
    return fitting.words(" ".join(parts))


def _of_measured(whole):
    for start, lines in ((each.start(), each[3]) for each in _MEASURED.finditer(whole)):
        for line in lines.splitlines():
            label, _, variant = (part.strip() for part in line.partition(" = "))
            wanted = CALLED.get(variant, variant) if variant else label
            if label.removeprefix("here, ") != wanted or (
                    not variant and label in CALLED):
                yield start, f"{label!r} is not what {variant or label!r} is called: " \
                             f"{CALLED.get(variant or label, variant)!r}"
    said = []
    at = 0
    for picture in _PICTURE.finditer(whole):
        before = whole[at:picture.start()]
        if before.strip():
            said = ["".join(found) for found in _SIZES.findall(_last_of(before))]
        case = _CASE.search(picture[0])
        if case:
            wanted = said.pop(0) if said else "large"
            if (case[1].strip() == SMALL) != (wanted == "small"):
                yield picture.start(), (f"{case[1]} stands where {wanted} tensors are "
                                        "spoken of")
        at = picture.end()


def _last_of(text):
    """What follows the last heading."""
    return re.split(r"\n(?:=+|-+)\n", text)[-1]
