"""Links and papers are called by their names, and their authors are theirs.

`docs/links.txt` says behind each link how it is called: ` | title | by AUTHOR | ...`. The
words of a link are one of these, and a person who is named in its sentence is its
author. `docs/papers.txt` has papers, "Authors, year: HEADER ...":
a `///` comment that cites names the authors and the year of its own.
"""

import re
from functools import cache

from ..errors import errors_in

LINKS, PAPERS = "docs/links.txt", "docs/papers.txt"
_LINK = re.compile(r"`([^`<]+?)\s*<(https?://[^`>\s]+)>`_", re.S)
_PERSON = re.compile(r"\b(?:by|[Hh]is note|that)\s+\**([A-Z][a-z]+\s+[A-Z][a-z]+)\b|"
                     r"\b([A-Z][a-z]+ [A-Z][a-z]+)\s+(?:wrote|answered|showed)\b|"
                     r"\*\*([A-Z]\w+ [A-Z]\w+)\*\*")
_CITED = re.compile(r"(?<=[( ])([A-Z][a-z]+(?:, [A-Z][a-z]+)*(?: et al\.|"
                    r" and [A-Z][a-z]+)?)"
                    r"(?:, \"[^\"]*\")?,\s+((?:19|20)\d\d)(?=[,;)])")


def in_prose(book, text):
    return text.errors(_wrong(book, text.whole))


def _wrong(book, whole):
    known, spans = _links(book), []
    for each in _LINK.finditer(whole):
        said, names = " ".join(each[1].split()), known.get(each[2], ())
        spans.append((each.start(), names))
        if said not in names:
            yield each.start(), (f"{said!r} is not what {each[2]} is called: "
                                 f"{' or '.join(names) or 'nothing'} ({LINKS})")
    people = {name.removeprefix("by ") for names in known.values() for name in names
              if name.startswith("by ")}
    for each in _PERSON.finditer(whole):
        name = " ".join((each[1] or each[2] or each[3]).split())
        if name not in people:
            yield each.start(), f"{name!r} is the author of nothing in {LINKS}"
            continue
        near = [names for at, names in spans
                if "\n\n" not in whole[min(at, each.start()):max(at, each.start())]]
        if near and not any(f"by {name}" in names for names in near):
            yield each.start(), f"{name!r} is not the author of what is linked here"


def of_headers(book):
    """Papers cited in comments of headers."""
    for path in sorted((book.root / "common").rglob("*.h")):
        yield from of_header(book, path, path.read_text(encoding="utf-8"))


def of_header(book, path, source):
    plain = re.sub(r"\n[ \t]*/// ?", lambda m: "\n".ljust(len(m[0])), source)
    return errors_in(book.show(path), plain, cited(book, path.stem, plain))


def cited(book, name, plain):
    """(offset, message) of papers that are not those of an optimizer."""
    for each in _CITED.finditer(plain):
        paper = f"{each[1]}, {each[2]}"
        if name not in _papers(book).get(paper, ()):
            yield each.start(), f"{paper} is not the paper of {name} ({PAPERS})"


@cache
def _links(book):
    text = (book.root / LINKS).read_text(encoding="utf-8")
    rows = (line.split(" | ") for line in text.splitlines() if line.startswith("http"))
    return {link.strip(): [name.strip() for name in names] for link, *names in rows}


@cache
def _papers(book):
    text = (book.root / PAPERS).read_text(encoding="utf-8")
    rows = (line.rpartition(": ") for line in text.splitlines()
            if line and not line.startswith("#"))
    return {cited: names.lower().split() for cited, _, names in rows}
