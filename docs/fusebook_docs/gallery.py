"""The order of the recipes, and what their pages say around the programs.

`docs/gallery.toml` has the recipes in order; `docs/about/NAME.rst` what a reader
will learn, the conclusion and where to go on. A recipe needs neither to have a
page: it comes last then, with what its program says.
"""

import tomllib
from dataclasses import dataclass

from .errors import BookError
from .literate import Line
from .words import later

LEVELS = (later("first steps"), later("some C++"), later("inside a kernel"))
_KEYS = {"name", "level", "minutes", "builds_on", "bars", "curves",
         "kernel_with"}


@dataclass(frozen=True)
class Entry:
    """What the gallery says about one recipe."""

    name: str
    level: str | None = None
    minutes: int | None = None
    builds_on: tuple[str, ...] = ()
    bars: tuple[str, ...] = ()  # of its thumbnail
    curves: str | None = None
    kernel_with: str | None = None  # an operation of the kernel that is shown


def path(book):
    return book.root / "docs" / "gallery.toml"


def entries(book):
    """Every recipe of the book, in the order of the gallery."""
    known = book.recipe_names()
    listed = [_entry(book, table, known) for table in _tables(book)]
    names = [entry.name for entry in listed]
    for entry in listed:
        if names.count(entry.name) > 1:
            raise BookError(f"{entry.name} is listed twice",
                            book.show(path(book)), 1)
    for place, entry in enumerate(listed):
        for each in entry.builds_on:
            if each not in names[:place]:
                raise BookError(f"{entry.name} builds on {each}, which must come "
                                "before it", book.show(path(book)), 1)
    return [*listed, *(Entry(name) for name in known if name not in names)]


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
    elif not isinstance(table.get("minutes"), int) or table["minutes"] < 1:
        wrong = f"{name}: minutes must be a positive integer"
    else:
        lost = [each for each in (name, *builds_on) if each not in known]
        if lost:
            wrong = f"unknown recipe {lost[0]}"
    if wrong:
        raise BookError(wrong, book.show(path(book)), 1)
    return Entry(name, table["level"], table["minutes"], builds_on,
                 tuple(table.get("bars", ())), table.get("curves"),
                 table.get("kernel_with"))


def about_path(book, name):
    return book.root / "docs" / "about" / f"{name}.rst"


def problems(book, name):
    """What a recipe lacks of what the book says about it."""
    if not any(entry.name == name and entry.level for entry in entries(book)):
        yield BookError(f"{name} is not listed; add its [[recipe]] with name, "
                        "level, minutes and a picture", book.show(path(book)))
    if about(book, name) is None:
        yield BookError("missing; write what a reader will learn, a "
                        "Conclusion and See also",
                        book.show(about_path(book, name)))


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
