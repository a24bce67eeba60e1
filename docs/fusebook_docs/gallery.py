"""The order of the recipes, and what their pages say around the programs.

`docs/gallery.toml` has the recipes in order; `docs/about/NAME.rst` what a reader
will learn, the conclusion and where to go on. A recipe needs neither to have a
page: it comes last then, with what its program says.
"""

import math
import re
import tomllib
from dataclasses import dataclass

from . import literate, samples
from .errors import BookError
from .literate import Line
from .machine import kept
from .tables import table
from .words import later

LEVELS = (later("first steps"), later("some C++"), later("inside a kernel"))
_KEYS = {"name", "level", "builds_on", "bars", "curves", "kernel_with",
         "ranks"}
# In a minute, of a page and of the program on it.
_WORDS, _CODE_LINES = 100, 10


@dataclass(frozen=True)
class Entry:
    """What the gallery says about one recipe."""

    name: str
    level: str | None = None
    builds_on: tuple[str, ...] = ()
    bars: tuple[str, ...] = ()  # of its thumbnail
    curves: str | None = None
    kernel_with: str | None = None  # an operation of the kernel that is shown
    ranks: int | None = None  # of MPI, on which its sample is captured


def path(book):
    return book.root / "docs" / "gallery.toml"


def entries(book):
    """Every recipe of the book, in the order of the gallery."""
    known = book.recipe_names()
    listed = [_entry(book, table, known) for table in _tables(book)]
    names = [entry.name for entry in listed]
    for entry in listed:
        if names.count(entry.name) > 1:
            raise _error(book, entry.name, f"{entry.name} is listed twice")
    for place, entry in enumerate(listed):
        for each in entry.builds_on:
            if each not in names[:place]:
                raise _error(book, entry.name, f"{entry.name} builds on {each}, "
                             "which must come before it", "builds_on")
            below = listed[names.index(each)]
            if LEVELS.index(entry.level) < LEVELS.index(below.level):
                raise _error(book, entry.name, f"{entry.name} is {entry.level!r}, but "
                             f"builds on {each}, which is {below.level!r}", "level")
    return [*listed, *(Entry(name) for name in known if name not in names)]


def ranks(book, name):
    """On how many ranks of MPI a recipe shows what it does; None: it needs none."""
    return next((table.get("ranks") for table in _tables(book)
                 if table.get("name") == name), None)


def run_command(book, name):
    """The command that runs a recipe as its page shows it."""
    count = ranks(book, name)
    return f"./fusebook run {name}" + (f" --ranks {count}" if count else "")


def _tables(book):
    if not path(book).is_file():
        return []
    try:
        return tomllib.loads(path(book).read_text(encoding="utf-8"))["recipe"]
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise BookError(f"not a list of recipes: {error}",
                        book.show(path(book)), 1) from None


def _entry(book, table, known):
    wrong = None
    name = table.get("name")
    builds_on = tuple(table.get("builds_on", ()))
    if set(table) - _KEYS:
        wrong = f"{name}: unknown key: {', '.join(sorted(set(table) - _KEYS))}"
    elif table.get("level") not in LEVELS:
        wrong = f"{name}: level must be one of: {', '.join(LEVELS)}"
    elif table.get("ranks") is not None and not (
            isinstance(table["ranks"], int) and table["ranks"] > 0):
        wrong = f"{name}: ranks must be a number of processes"
    else:
        lost = [each for each in (name, *builds_on) if each not in known]
        if lost:
            wrong = f"unknown recipe {lost[0]}"
    if wrong:
        raise _error(book, name, wrong)
    return Entry(name, table["level"], builds_on, tuple(table.get("bars", ())),
                 table.get("curves"), table.get("kernel_with"),
                 table.get("ranks"))


def _error(book, name, message, key="name"):
    """At the line of the table of a recipe that has this key."""
    lines = path(book).read_text(encoding="utf-8").split("\n")
    heads = [number for number, line in enumerate(lines, 1)
             if line.replace(" ", "") == f'name="{name}"'] or [1]
    found = next((number for number, line in enumerate(lines, 1)
                  if number >= heads[0] and line.startswith(key)), heads[0])
    return BookError(message, book.show(path(book)), found)


def minutes(book, name):
    """How long it takes to read a page and to run its program, in fives."""
    file, around = book.recipe_path(name), about(book, name)
    recipe = literate.read(file, book.show(file))
    lines = [line for part in recipe.parts for line in part.prose]
    if around is not None:
        lines += [*around.learn, *around.conclusion, *around.see_also]
    words = sum(len(re.findall(r"[A-Za-z']+", line.text)) for line in lines)
    code = sum(bool(line.text.strip())
               for part in recipe.parts for line in part.shown)
    return 5 * max(1, math.ceil((words / _WORDS + code / _CODE_LINES) / 5))


def _links(book, name):
    """The recipes that a page links to, in its program and around it."""
    texts = [file.read_text(encoding="utf-8")
             for file in (book.recipe_path(name), about_path(book, name))
             if file.is_file()]
    return set(re.findall(r":doc:`(?:[^`<]*<)?(?:/recipes/)?(\w+)>?`",
                          " ".join(texts)))


def about_path(book, name):
    return book.root / "docs" / "about" / f"{name}.rst"


def problems(book, name):
    """What a recipe lacks of what the book says about it."""
    entry = next(each for each in entries(book) if each.name == name)
    if not entry.level:
        yield BookError(f"{name} is not listed; add its [[recipe]] with name, "
                        "level and a picture", book.show(path(book)))
    for each in entry.builds_on:
        if each not in _links(book, name):
            yield _error(book, name, f"{name} builds on {each}, which its page does "
                         f"not link to: :doc:`/recipes/{each}`", "builds_on")
    yield from not_drawn(book, entry)
    yield from kernel_of_another(book, entry)
    if about(book, name) is None:
        yield BookError("missing; write what a reader will learn, a "
                        "Conclusion and See also",
                        book.show(about_path(book, name)))


def not_drawn(book, entry):
    """Why the card of a recipe can have no curves."""
    if not entry.curves:
        return
    sample = samples.load(book, "cpu", entry.name)
    try:
        table(samples.filled(sample.text_of(entry.curves) or "", sample.values))
    except ValueError as error:
        yield _error(book, entry.name, f"the card of {entry.name} shows the curves of "
                     f"{entry.curves!r}, but {error}", "curves")


def kernel_of_another(book, entry):
    """Why the kernel on a page is not the one that the page says it is."""
    if not kept.exists(book, entry.name):
        return
    bodies = kept.load(book, entry.name).texts["cpp"].partition("struct Body")[2]
    if entry.kernel_with and not re.search(rf"\b{entry.kernel_with}<", bodies):
        yield _error(book, entry.name, f"the kernel that is kept of {entry.name} has no "
                     f"{entry.kernel_with!r}: {kept.command(entry.name)}", "kernel_with")


@dataclass(frozen=True)
class About:
    """The parts of about/NAME.rst, each as lines with their numbers."""

    learn: list[Line]
    conclusion: list[Line]
    see_also: list[Line]


def about(book, name):
    """What a page says around its program, or None."""
    file = about_path(book, name)
    if not file.is_file():
        return None
    lines = [Line(number, text) for number, text
             in enumerate(file.read_text(encoding="utf-8").split("\n"), 1)]
    conclusion = _heading(book, file, lines, "Conclusion")
    see_also = _heading(book, file, lines, "See also")
    if not conclusion < see_also:
        raise BookError("Conclusion must come before See also",
                        book.show(file), 1)
    return About(lines[:conclusion], lines[conclusion:see_also],
                 lines[see_also:])


def _heading(book, file, lines, title):
    for index, line in enumerate(lines[:-1]):
        if line.text == title and set(lines[index + 1].text) == {"-"}:
            return index
    raise BookError(f"missing heading {title!r}", book.show(file), 1)
