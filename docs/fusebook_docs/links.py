"""Links that leave the book stand in one list: `docs/links.txt`.

A commit or a number in a link is typed once there and once on the page, so that one
that was changed by mistake is noticed without a network.
"""

import re
from functools import cache

from .errors import BookError

FILE = "docs/links.txt"
_LINK = re.compile(r"\bhttps?://[^\s>`\")\]]+")
_LOCAL = re.compile(r"https?://(?:127\.0\.0\.1|localhost)\b")


def in_prose(book, text):
    """Links of one of prose.py's texts that are not in the list."""
    whole = "\n".join(line.text for line in text.lines)
    for start, message in _unlisted(book, whole):
        line = text.lines[whole.count("\n", 0, start)].number
        yield BookError(message, text.path, line)


def in_markdown(book, show, text):
    for start, message in _unlisted(book, text):
        yield BookError(message, show, text.count("\n", 0, start) + 1)


def unused(book, texts):
    """Lines of the list that no page has."""
    used = {_plain(link) for text in texts for link in _LINK.findall(text)}
    for number, link in enumerate(_lines(book), 1):
        if link and not link.startswith("#") and link not in used:
            yield BookError(f"no page links to {link}", FILE, number)


def _unlisted(book, text):
    for match in _LINK.finditer(text):
        link = _plain(match[0])
        if link not in _lines(book) and not _LOCAL.match(link):
            yield match.start(), f"{link} is not in {FILE}: compare, or list it there"


def _plain(link):
    return link.rstrip(".,:;")


@cache
def _lines(book):
    """The links; what they are called is looked at in labels/citations.py."""
    return [line.partition(" | ")[0] for line in
            (book.root / FILE).read_text(encoding="utf-8").split("\n")]
