"""`docs/read.txt`: a row for each passage that somebody has read.

A row is two digests, of the passage and of what it stands on. They tell that one of the
two was changed since; what they cannot tell is whether the reader was right.
"""

import difflib
import hashlib
import textwrap
from dataclasses import dataclass

from ..errors import BookError
from . import passages

HOW = "python3 docs/fusebook_docs reread"
_HEAD = f"""\
# Passages that were read after they were last changed (CONTRIBUTING, "Reading again").
# Written by: {HOW}
"""


@dataclass(frozen=True)
class Unread:
    passage: passages.Passage
    why: str

    def __str__(self):
        words = textwrap.fill(self.passage.text, 88, initial_indent="    ",
                              subsequent_indent="    ")
        return f"{self.passage.path}:{self.passage.line}: {self.why}\n{words}"


def path(book):
    return book.root / "docs" / "read.txt"


def row(passage):
    ground = f" {_digest(passage.ground)}" if passage.ground else ""
    return f"{_digest(passage.text)}{ground}"


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def read(book):
    """{path: its rows}."""
    found, rows = {}, None
    file = path(book)
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("== "):
            rows = found.setdefault(line[3:], [])
        elif line and not line.startswith("#"):
            if rows is None:
                raise BookError(f"a row before the first page: make it by {HOW}",
                                book.show(file), number)
            rows.append(line)
    return found


def write(book, rows):
    parts = [f"== {name}\n" + "".join(f"{each}\n" for each in rows[name])
             for name in sorted(rows) if rows[name]]
    path(book).write_text(_HEAD + "".join(parts), encoding="utf-8")


def unread(book, found=None):
    """Passages whose row is missing, those that stand elsewhere than they did, and
    where one is gone."""
    found = passages.of_book(book) if found is None else found
    kept = read(book)
    for name in sorted({*found, *kept}):
        yield from _of_page(name, kept.get(name, []), found.get(name, []))


def _of_page(name, rows, there):
    now = [row(each) for each in there]
    matcher = difflib.SequenceMatcher(None, rows, now, autojunk=False)
    for kind, a, b, begin, end in matcher.get_opcodes():
        if kind in ("replace", "insert"):
            for at in range(begin, end):
                yield Unread(there[at], _why(there[at], now[at], rows))
        elif kind == "delete" and not all(each in now for each in rows[a:b]):
            after = there[min(begin, len(there) - 1)] if there else passages.Passage(
                name, 1, "")
            yield Unread(after, "what stood before this was taken out since it was read")


def _why(passage, now, rows):
    text = now.split(" ")[0]
    if now in rows:
        return "the passage stands elsewhere than when it was read"
    if any(each.split(" ")[0] == text for each in rows):
        return (f"{passage.beside} changed since the passage was read" if passage.ground
                else "what the passage stood on is gone")
    return "the passage changed since it was read"


def problems(book):
    """One error for each passage that nobody has read since."""
    for each in unread(book):
        passage = each.passage
        yield BookError(f"{each.why}: read it, and if it is true, {HOW} {passage.path}",
                        passage.path, passage.line)


def reread(book, names):
    """Takes what is unread as read, in the files that are named, or in all; returns
    it."""
    found, rows = passages.of_book(book), read(book)
    unknown = [name for name in names if name not in found and name not in rows]
    if unknown:
        raise BookError(f"{unknown[0]!r} is not a file of the book with prose in it; name "
                        "one as `limits` does")
    done = [each for each in unread(book, found)
            if not names or each.passage.path in names]
    for name in {each.passage.path for each in done}:
        rows[name] = [row(each) for each in found.get(name, [])]
    write(book, rows)
    return done
