"""Links that leave the book stand in one list: `docs/links.txt`.

A commit or a number in a link is typed once there and once on the page, so that one
that was changed by mistake is noticed without a network.
"""

import re
from functools import cache

from .errors import BookError, errors_in

FILE = "docs/links.txt"
_LINK = re.compile(r"\bhttps?://[^\s>`\")\]]+")
_LOCAL = re.compile(r"https?://(?:127\.0\.0\.1|localhost)\b")


def in_prose(book, text):
    """Links of one of prose.py's texts that are not in the list."""
    return text.errors(_unlisted(book, text.whole))


def in_markdown(book, show, text):
    return errors_in(show, text, _unlisted(book, text))


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
