"""Versions in the prose are those that files pin.

`docs/claims.toml` says for each name where its versions stand:

    [[version]]
    of = "Debian"
    code = [".github/workflows/test.yml: container: debian:#"]

Whatever prose calls `Debian 12` has to be one of them, or begin one of them
("fusebook 0.1" of 0.1.0). `others` lists versions that are facts of others.
"""

import re
import tomllib
from functools import cache

from . import claims, numbers
from .errors import errors_in

_NUMBER = r"(\d+(?:\.\d+)*)"


def in_prose(book, text):
    """The versions of one of prose.py's texts that nothing pins."""
    return text.errors(_wrong(book, text.whole))


def in_markdown(book, show, text):
    plain = claims.without_code(text)
    yield from errors_in(show, text, _wrong(book, plain))


def _wrong(book, whole):
    known = pinned(book)
    spelled = {name.lower(): name for name in (*numbers.VERSIONED, *known)}
    names = "|".join(map(re.escape, sorted(spelled, key=len, reverse=True)))
    for match in re.finditer(rf"(?<![\w-])({names})(?:'s)?[\s-]?{_NUMBER}(?!\w)",
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
    text = (book.root / claims.FILE).read_text(encoding="utf-8")
    return {table["of"]: {*table.get("others", ()),
                          *(claims.found(book, where) for where in table["code"])}
            for table in tomllib.loads(text)["version"]}
