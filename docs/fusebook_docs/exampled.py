"""Every name of the API reference is in a program that is tested and shown.

Such programs are the examples that pages show, recipes, and files that a page of the
reference includes. Options are in the program of what they are options of. A name that
programs only get by another one (what a function returns, a type that is deduced) is in
`docs/reference/shown_with.txt` with that other one, line by line.
"""

import re

from . import cpp, examples
from .api import links
from .errors import BookError

LIST = "docs/reference/shown_with.txt"
_ENTRY = re.compile(r"^\.\. api:: (\S+)$", re.M)
_SHOWN = re.compile(r"^\s*\.\. api-example:: (\w+)$", re.M)
_INCLUDED = re.compile(r"^\.\. literalinclude:: (\S+\.(?:h|cpp))$", re.M)
_ROW = re.compile(r"([\w:+*/-]+) ([\w:]+)")


def entries(book):
    """{name: (page, line)} of what the reference explains."""
    found = {}
    for path in _pages(book):
        text = path.read_text(encoding="utf-8")
        for entry in _ENTRY.finditer(text):
            found[entry[1]] = (str(book.show(path)),
                               text.count("\n", 0, entry.start()) + 1)
    return found


def _pages(book):
    return sorted((book.root / "docs" / "reference").glob("*.rst"))


def names_in(book, index):
    """{example or file: the names that it uses}; an example by its name."""
    found = {}
    pages = [path.read_text(encoding="utf-8")
             for path in sorted((book.root / "docs").rglob("*.rst"))]
    shown = {name for text in pages for name in _SHOWN.findall(text)}
    for name, example in examples.read(book).items():
        if name in shown:
            found[name] = _used(cpp.blanked(example.code, example.path), index)
    included = [path.parent / name for path in _pages(book)
                for name in _INCLUDED.findall(path.read_text(encoding="utf-8"))]
    recipes = [book.recipe_path(name) for name in book.recipe_names()]
    for path in [*included, *(each for each in recipes if each.suffix == ".cpp")]:
        source = cpp.blanked(path.read_text(encoding="utf-8"), path)
        found[path.name] = _used(source, index)
    return found


def _used(source, index):
    """Also words that no code links, such as `float32`."""
    tokens = links.TOKEN.findall(source)
    own = links.declared(tokens)
    plain = {word for before, word in zip(["", *tokens], tokens)
             if word in index.tops and word not in own and before not in (".", "->")}
    return links.used(source, index) | plain


def others(book):
    """{name: the one that it is shown with}."""
    path, found = book.root / LIST, {}
    lines = path.read_text(encoding="utf-8").split("\n") if path.is_file() else ()
    for number, line in enumerate(lines, 1):
        if line and not line.startswith("#"):
            row = _ROW.fullmatch(line)
            if row is None:
                raise BookError(f"not 'NAME OTHER': {line!r}", LIST, number)
            found[row[1]] = row[2]
    return found


def problems(book):
    """Each name that no program has, and each line of the list that is not needed."""
    names = entries(book)
    used = set().union(*names_in(book, links.Index(list(names))).values())
    given = others(book)
    for name, (page, line) in names.items():
        if not (name in used or _options_of(name) in used or given.get(name) in used):
            yield BookError(
                f"{name} is in no example: use it in one of docs/examples/ that a page "
                f"shows, or name in {LIST} the one that it is shown with", page, line)
    for name, other in given.items():
        if name not in names or name in used:
            yield BookError(f"{name!r} need not be there: "
                            + ("a program uses it" if name in used else
                               "no page of the reference explains it"), LIST)


def _options_of(name):
    return name.removesuffix("Options") if name.endswith("Options") else None
