"""Lies planted in the real book, each told by its own check, with file and line."""

import re
import unittest

from support import ROOT

from fusebook_docs import bound_words, docstrings, members, promised, prose, python_docs
from fusebook_docs.book import Book
from fusebook_docs.labels import citations, names_say
from fusebook_docs.literate import Line
from fusebook_docs.quotes import Home

BOOK = Book(ROOT)


class Planted(unittest.TestCase):
    """One edit of one file."""

    def lie(self, check, name, old, new, *words, place=None):
        """`place` is text in the line that is named, if it is not the lie's own."""
        text = (ROOT / name).read_text()
        self.assertIn(old, text)
        at = text.index(old)
        line = text.count("\n", 0, text.index(place) if place else at) + 1
        text = text[:at] + new + text[at + len(old):]
        found = " | ".join(map(str, self.said(check, name, text)))
        for word in (f"{name}:{line}: ", *words):
            self.assertIn(word, found)

    def lies(self, check, name, *edits):
        """Several of one file, one at a time: what stands there, what instead, and
        what is said then."""
        for old, new, *words in edits:
            self.lie(check, name, old, new, *words)

    def swap(self, check, name, one, other, *words, place=None):
        """Two texts of one file change places."""
        text = (ROOT / name).read_text()
        a, b = text.index(one), text.index(other)
        self.lie(check, name, text[a:b + len(other)],
                 other + text[a + len(one):b] + one, *words, place=place)

    def said(self, check, name, text):
        if check is promised:
            return promised.problems(BOOK, text)
        if check is python_docs:
            return check.of_file(BOOK, name, text)
        if name.endswith(".h"):
            look = {bound_words: bound_words.of_header, members: docstrings.members_of,
                    citations: citations.of_header, names_say: names_say.of_header}
            return look.get(check, docstrings.of_header)(BOOK, ROOT / name, text)
        if name == "docs/gallery.toml":
            return check.of_cards(BOOK, text)
        if name == "fusebook":
            return check.of_help(BOOK, text)
        if name.endswith(".md"):
            return check.in_markdown(BOOK, name, text)
        lines = tuple(Line(n, x) for n, x in enumerate(text.split("\n"), 1))
        home = Home(name.removeprefix("recipes/").removesuffix(".cpp")
                    if name.endswith(".cpp") else None)
        if name.startswith("docs/exercises/"):
            _, _, recipe, answer = name.removesuffix(".rst").split("/")
            home = Home(recipe, None, answer, True)
        if name.startswith("recipes/"):
            lines = tuple(Line(each.number, re.sub("^ *(//|#) ?", "", each.text))
                          for each in lines)
        return check.in_prose(BOOK, prose.Text(name, lines, home))

