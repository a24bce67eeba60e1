"""What is tried one after the other is listed in the order in which the code tries it.

A sentence that says that things are tried (`_TRIED`) and lists some in code, which stand
in one list of texts in the library's code, has them in that list's order. What is tried
before or after others (`_BESIDE`), or the row of a table that says so, stands there
before or after them.
"""

import re
from functools import cache

from ..errors import errors_in

_TRIED = re.compile(r"\b(?:otherwise|tried|in turn)\b")
_LISTED = re.compile(r"`{1,2}[^`\s]+`{1,2}(?:(?:,|,? or|,? and)\s+`{1,2}[^`\s]+`{1,2})+")
_BESIDE = re.compile(r"\btried (before|after)\s+`{1,2}([^`\s]+)`")
_END = re.compile(r"\n\s*\n|\n(?=\|)|(?<=[.;?!|])\s")
_TEXTS = re.compile(r'\{\s*"[^"\n]*"(?:,\s*"[^"\n]*")+\s*\}')
_FOLDERS = ("common", "kernels")


def in_prose(book, text):
    return text.errors(_wrong(book, text.whole))


def in_markdown(book, show, text):
    return errors_in(show, text, _wrong(book, text))


def _wrong(book, whole):
    for each in _LISTED.finditer(whole):
        before = max((m.end() for m in _END.finditer(whole, 0, each.start())), default=0)
        if not _TRIED.search(whole, before, each.start()):
            continue
        said = re.findall(r"`+([^`\s]+)`+", each[0])
        for path, texts in _tried(book.root):
            known = [name for name in said if name in texts]
            order = sorted(known, key=texts.index)
            if len(known) > 1 and known != order:
                yield each.start(), (f"{', '.join(known)} are tried in another order: "
                                     f"{', '.join(order)} ({path})")
    for each in _BESIDE.finditer(whole):
        yield from _beside(book, whole, each)


def _beside(book, whole, each):
    """What a line says to be tried before or after something."""
    line = whole[whole.rfind("\n", 0, each.start()) + 1:each.start()]
    subjects = re.findall(r"`([A-Z]\w+)`", line)
    for path, texts in _tried(book.root):
        if each[2] in texts:
            for name in (name for name in subjects if name in texts):
                is_before = texts.index(name) < texts.index(each[2])
                if is_before != (each[1] == "before"):
                    yield each.start(), (
                        f"{name} is tried {'before' if is_before else 'after'} {each[2]}: "
                        f"{', '.join(texts)} ({path})")


@cache
def _tried(root):
    return [(path.relative_to(root).as_posix(), re.findall(r'"([^"]*)"', texts))
            for folder in _FOLDERS for path in sorted((root / folder).rglob("*.cpp"))
            for texts in _TEXTS.findall(path.read_text(encoding="utf-8"))]
