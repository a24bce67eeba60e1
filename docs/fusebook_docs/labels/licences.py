"""A licence that a page names is that of the work it speaks of.

The book's own stands in `LICENSE`. A file that came under another one says so in a
comment, which also names the work: a sentence with the name of that work names its
licence, and no other sentence does.
"""

import re
from functools import cache

from ..errors import errors_in

_LICENCE = re.compile(r"\b((?:BSD|Apache|MIT|ISC|Boost|Mozilla|zlib|[AL]?GPL)\b"
                      r"(?:-\d-Clause)?)")
_NOTICE = re.compile(r"Licensed under the (\w+)")
_WORK = re.compile(r"// What (\w+)")
_END = re.compile(r"\n\s*\n|(?<=[.?!])\s")
_FOLDERS = ("common", "kernels", "python", "tests/support")


def in_prose(book, text):
    return text.errors(_wrong(book, text.whole))


def in_markdown(book, show, text):
    return errors_in(show, text, _wrong(book, text))


def _wrong(book, whole):
    own, others = _own(book.root), _others(book.root)
    for each in _LICENCE.finditer(whole):
        before = max((m.end() for m in _END.finditer(whole, 0, each.start())), default=0)
        after = _END.search(whole, each.end())
        sentence = whole[before:after.start() if after else len(whole)]
        if not re.search("licen[cs]e", sentence, re.I):
            continue
        wanted = {licence for work, licence in others.items() if work in sentence} or {own}
        if each[1] not in wanted:
            yield each.start(), (f"the licence is {' or '.join(sorted(wanted))}, "
                                 f"not {each[1]}")


@cache
def _own(root):
    return re.sub(r" (\d-Clause) License.*", r"-\1",
                  (root / "LICENSE").read_text(encoding="utf-8").split("\n")[0])


@cache
def _others(root):
    """{work: the licence that a file of ours came under}."""
    found = {}
    for folder in _FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".cu", ".py"):
                text = path.read_text(encoding="utf-8")
                notice, work = _NOTICE.search(text), _WORK.search(text)
                if notice and work:
                    found[work[1]] = notice[1]
    return found
