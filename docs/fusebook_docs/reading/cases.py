"""The code of tests that a passage stands on, by words of their titles."""

import re

from ..errors import BookError

_CASE = re.compile(r"^(?=TEST_CASE|    def test_)", re.M)


def code(book, path, words):
    """Of each case of a file whose title has the words."""
    found = _found(path, words)
    if not found:
        raise BookError(f"{book.show(path)} has no case {words!r}")
    return "\n".join(_stripped(each) for each in found)


def has(path, words):
    return bool(_found(path, words))


def _found(path, words):
    cases = _CASE.split(path.read_text(encoding="utf-8"))
    return [each for each in cases if words in _title(each)]


def _title(case):
    head = " ".join(case.partition("{" if case.startswith("TEST") else ":")[0].split())
    return head.replace('" "', "")


def _stripped(text):
    """Without comments of their own, and without blanks around lines."""
    lines = (line.strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line and not line.startswith("//"))
