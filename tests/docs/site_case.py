"""What tests of built pages share: a toy book of their own, and its pages."""

import tempfile
import unittest
from pathlib import Path

from bs4 import BeautifulSoup

from support import build, make_sources

from fusebook_docs.book import Book

TOY = "recipes/toy_optimizer"


def words_of(element, *how, **more):
    """Its text; blanks at which no line may end count as others."""
    return element.get_text(*how, **more).replace("\xa0", " ")


def words_of_rows(table):
    return [[words_of(cell) for cell in row.select("td")]
            for row in table.select("tbody tr")]


class SiteCase(unittest.TestCase):
    """A test with toy sources of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="toy-site-")
        self.addCleanup(folder.cleanup)
        self.start(Path(folder.name))

    def start(self, root):
        make_sources(root)
        self.open(root)

    def open(self, root):
        self.root, self.book, self.out = root, Book(root), root / "out"

    def built(self):
        code, text = build(self.root, self.out)
        self.assertEqual(code, 0, text)

    def broken(self, *words):
        """A build that fails: one that writes no pages."""
        code, text = build(self.root, self.out, builder="dummy")
        self.assertNotEqual(code, 0, text)
        for word in words:
            self.assertIn(word, text)

    def page(self, name=TOY):
        html = (self.out / f"{name}.html").read_text(encoding="utf-8")
        return BeautifulSoup(html, "html.parser").article

    def line(self, text):
        """The number of the recipe's line with `text` in it."""
        lines = self.recipe.read_text().split("\n")
        return next(n for n, line in enumerate(lines, 1) if text in line)

    def edit(self, path, old, new):
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new))

    @property
    def recipe(self):
        return self.book.recipe_path("toy_optimizer")


class BuiltOnce(SiteCase):
    """Tests that look at one build and change nothing."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="toy-site-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        make_sources(cls.folder)
        cls.prepare(cls.folder)
        if cls.options is not None:
            code, text = build(cls.folder, cls.folder / "out", *cls.options)
            assert code == 0, text

    # Of the build; None if the tests build for themselves.
    options = ()

    @classmethod
    def prepare(cls, root):
        """What the sources of a subclass have besides."""

    def setUp(self):
        self.open(self.folder)
