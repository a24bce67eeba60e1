"""Versions in the prose are those that files pin.

`docs/claims.toml` says for each name where its versions stand:

    [[version]]
    of = "Debian"
    code = [".github/workflows/test.yml: container: debian:#"]

Whatever prose calls `Debian 12` has to be one of them, or begin one of them
("fusebook 0.1" of 0.1.0). `others` lists versions that are facts of others, `same` where
else the version stands, and has to be this one. What the tools write for readers, such
as the README in a zip, stands in their code and is looked at there.
"""

import re
import tomllib
from functools import cache

from . import claims, numbers
from .errors import BookError, errors_in

TOOLS = ("downloads.py", "extension/*.py", "front.py", "new_recipe/*")  # for readers
_APART = r"(?:-|[ \t]*\n?[ \t]*)"  # a line may end there
_NUMBER = r"(\d+(?:\.\d+)*)"


def in_prose(book, text):
    """The versions of one of prose.py's texts that nothing pins."""
    return text.errors(_wrong(book, text.whole))


def in_markdown(book, show, text):
    plain = claims.without_code(text)
    yield from errors_in(show, text, _wrong(book, plain))


def of_tools(book):
    """The same of what the tools write."""
    folder = book.root / "docs/fusebook_docs"
    for path in (path for each in TOOLS for path in sorted(folder.glob(each))
                 if path.is_file()):
        yield from in_tool(book, path.relative_to(book.root).as_posix(),
                           path.read_text(encoding="utf-8"))


def in_tool(book, show, text):
    yield from errors_in(show, text, _wrong(book, text))


def that_differ(book):
    """Files that have another version than the one from which it is taken."""
    for table in _tables(book):
        for where in table.get("same", ()):
            yield from _differs(book, table, where)


def _differs(book, table, where):
    wanted, name = claims.found(book, table["code"][0]), where.partition(": ")[0]
    try:
        found = claims.found(book, where)
    except BookError:
        found = None
    if found != wanted:
        before = where.partition(": ")[2].partition("#")[0]
        text = (book.root / name).read_text(encoding="utf-8")
        word = before.split(" = ")[0]
        line = text[:text.index(word)].count("\n") + 1 if word in text else 1
        yield BookError(f"{table['of']} is {found or 'something else'} here, but {wanted} "
                        f"in {table['code'][0].partition(': ')[0]}", name, line)


def _wrong(book, whole):
    known = pinned(book)
    spelled = {name.lower(): name for name in (*numbers.VERSIONED, *known)}
    names = "|".join(map(re.escape, sorted(spelled, key=len, reverse=True)))
    for match in re.finditer(rf"(?<![\w-])({names})(?:'s)?{_APART}{_NUMBER}(?!\w)",
                             whole, re.IGNORECASE):
        name, version = spelled[match[1].lower()], match[2]
        if name not in known:
            yield match.start(), (f"{name} has no [[version]] in {claims.FILE}: say "
                                  "there where its version stands")
        elif not any(f"{each}.".startswith(f"{version}.")
                     for each in known[name]):
            yield match.start(), (f"{match[0]!r}: the versions of {name} are "
                                  + ", ".join(sorted(known[name])))


@cache
def pinned(book):
    """{name: its versions}."""
    return {table["of"]: {*table.get("others", ()),
                          *(claims.found(book, where) for where in table["code"])}
            for table in _tables(book)}


def _tables(book):
    return tomllib.loads((book.root / claims.FILE).read_text(encoding="utf-8"))["version"]
