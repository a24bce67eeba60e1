"""What a reader will learn, and the conclusion, are those of the recipe.

No other recipe's have them, and none fits another's program better while that one's fits
this.
"""

import re
from functools import cache
from pathlib import PurePosixPath

from ..errors import BookError
from . import fitting

_FOLDER = "docs/about"
_PARTS = re.compile(r"\A((?:.|\n)*?)^Conclusion\n-+\n((?:.|\n)*?)^See also\n", re.M)
_NAMES = ("what one learns", "the conclusion")


def in_prose(book, text):
    path = PurePosixPath(str(text.path))
    if str(path.parent) != _FOLDER:
        return
    own = _parts(text.whole)
    for other in book.recipe_names():
        file = book.root / _FOLDER / f"{other}.rst"
        if other == path.stem or not file.is_file():
            continue
        theirs = _parts(file.read_text(encoding="utf-8"))
        for name, (line, mine), (_, that) in zip(_NAMES, own, theirs, strict=True):
            shared = {each for each in _sentences(mine) if each in _sentences(that)}
            if shared:
                yield BookError(f"{name} of {other} as well: {sorted(shared)[0]!r}",
                                text.path, line)
            elif list(fitting.swapped(
                    [(frozenset(fitting.words(mine)), _words(book, path.stem)),
                     (frozenset(fitting.words(that)), _words(book, other))],
                    _others(book, path.stem, other))):
                yield BookError(f"{name} fits {other} better, and that one's this recipe",
                                text.path, line)


def _parts(whole):
    """(line, text) of both."""
    match = _PARTS.match(whole)
    return [(whole.count("\n", 0, match.start(i)) + 1, match[i])
            for i in (1, 2)] if match else [(1, ""), (1, "")]


def _sentences(text):
    return {" ".join(each.split()) for each in re.split(r"(?<=\.)\s+|^- ", text,
                                                        flags=re.M)
            if len(each.split()) > 4}


def _others(book, *those):
    return [_words(book, each) for each in book.recipe_names() if each not in those]


@cache
def _words(book, recipe):
    return frozenset(fitting.words(book.recipe_path(recipe).read_text(encoding="utf-8")))
