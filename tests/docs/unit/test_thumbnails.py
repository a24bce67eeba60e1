"""The small pictures of the gallery are drawn from what recipes printed."""

import re
import unittest
from dataclasses import replace

from support import ROOT, BookCase

from fusebook_docs import gallery, quotes, thumbnails
from fusebook_docs.book import Book
from fusebook_docs.errors import BookError

ENTRY = gallery.Entry("toy_optimizer",
                      bars=("eager = eager_us", "launches = launches: #"))


class Bars(BookCase):
    def setUp(self):
        super().setUp()
        self.capture()

    def test_as_long_as_the_numbers_say(self):
        svg = thumbnails.svg(self.book, ENTRY)
        long, short = map(float, re.findall(r'<rect [^>]*? width="([\d.]+)"', svg))
        self.assertAlmostEqual(short, max(long * 5 / 747.2, 1.5))
        self.assertIn('aria-label="eager: 747.2 us; launches: 5"', svg)
        self.assertEqual(set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg)),
                         {"currentColor"})

    def test_quotes_that_are_not_true(self):
        for bar, word in (("eager = lost_us", "no value 'lost_us'"),
                          ("launches = calls: #", "does not appear")):
            with self.subTest(bar), self.assertRaisesRegex(BookError, word):
                thumbnails.svg(self.book, replace(ENTRY, bars=(bar,)))

    def test_a_label_with_the_number_of_another(self):
        """In the real book, whose gallery and pages have such bars."""
        home = quotes.Home("foreach_map")
        for bar in ("eager = compiled_us", "compiled = eager_us"):
            with self.subTest(bar), self.assertRaisesRegex(
                    BookError, "is not what has this name; that is '"):
                thumbnails.bar(Book(ROOT), bar, home)

    def test_a_step_that_prints_nothing(self):
        with self.assertRaisesRegex(BookError, "no step 'Lost' with output"):
            thumbnails.table_text(self.book,
                                  replace(ENTRY, bars=(), curves="Lost"))


class OfTheBook(unittest.TestCase):
    def test_every_recipe_has_one(self):
        for entry in gallery.entries(Book(ROOT)):
            with self.subTest(entry.name):
                self.assertEqual(bool(entry.bars), entry.curves is None)


if __name__ == "__main__":
    unittest.main()
