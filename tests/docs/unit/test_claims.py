"""claims.py: numbers of the Markdown pages are those of the code."""

import unittest

from support import ROOT

from fusebook_docs import claims
from fusebook_docs.book import Book

BOOK = Book(ROOT)


class TheBook(unittest.TestCase):
    def test_every_number_is_bound_and_true(self):
        self.assertEqual([str(error) for error in claims.problems(BOOK)], [])


class Lies(unittest.TestCase):
    def lie(self, page, old, new, message):
        text = (ROOT / page).read_text()
        self.assertEqual(text.count(old), 1, old)
        line = text.count("\n", 0, text.index(old)) + 1
        edited = text.replace(old, new)
        known = [each for each in claims.read(BOOK) if each.page == page]
        found = list(map(str, claims.of_help(BOOK, edited) if page == claims.HELP else
                         claims.of_page(BOOK, page, edited, known)))
        self.assertEqual(len(found), 1, found)
        self.assertRegex(found[0], rf"{page}:{line}: {message}")

    def test_of_the_system(self):
        self.lie("README.md", "On Debian 12, with", "On Debian 11, with",
                 "says '11', but '.*' is 12")
        self.lie("README.md", "on Ubuntu 24.04;", "on Ubuntu 22.04;",
                 "says '22.04'")
        self.lie("README.md", "is a C++20", "is a C++17", "says '17'")
        self.lie("CHANGELOG.md", "g++ 12 or clang 15", "g++ 9 or clang 15",
                 "says '9'")
        self.lie("CHANGELOG.md", "## 0.1.0,", "## 1.0.0,", "says '1.0.0'")

    def test_of_the_house(self):
        page = "CONTRIBUTING.md"
        self.lie(page, "a file in it 400 lines", "a file in it 500 lines",
                 "says '500'")
        self.lie(page, "40 files of code", "24 files of code", "says '24'")
        self.lie(page, "columns, six of", "columns, five of", "says 'five'")
        self.lie(page, "and 35 to 55 %", "and 30 to 55 %", "says '30'")
        self.lie(page, "ends with three exercises", "ends with four exercises",
                 "says 'four'")

    def test_of_commands(self):
        page = "docs/commands.md"
        self.lie(page, "| 3 | the device", "| 4 | the device", "says '4'")
        self.lie(page, "over five processes", "over nine processes",
                 "says 'nine', but '.*' is 5")
        self.lie(page, "take, 600 by", "take, 900 by", "says '900'")
        self.lie(page, "a Python (3.11", "a Python (3.9", "says '3.9'")
        self.lie(page, "at most ten", "at most three", "says 'three'")
        self.lie(page, "sanitizer's four", "sanitizer's six",
                 "says 'six', but '.*' is 4")

    def test_of_the_help(self):
        self.lie("fusebook", "serves it (port 8000)", "serves it (port 8080)",
                 "says '8080', but '.*' is 8000")
        self.lie("fusebook", "in ten minutes", "in two minutes", "says 'two'")
        self.lie("fusebook", "3 the device is not", "4 the device is not",
                 "says '4', but '.*' is 3")
        self.lie("fusebook", "cuBLAS as large", "cuBLAS as 700 MB", "'700' is not bound")

    def test_of_promises(self):
        page = "docs/promises.md"
        self.lie(page, "(64 processes", "(640 processes", "says '640'")
        self.lie(page, "(34 names", "(3,400 names", "says '3,400'.* is 34")
        self.lie(page, "(38 names", "(39 names", "says '39', but '.*' is 38")
        self.lie(page, "nightly* 10,000)", "nightly* 1,000,000)",
                 "says '1,000,000'")
        self.lie(page, "more than 80 |", "more than 64 |", "says '64'")
        self.lie(page, "than 2^31", "than 2^63", r"says '2\^63'")

    def test_a_number_that_nothing_is_said_of(self):
        self.lie("README.md", "cost a few nanoseconds", "cost two nanoseconds",
                 "'two' is not bound: say in docs/claims.toml")
        self.lie("CHANGELOG.md", "enough to train", "(300 of them) to train",
                 "'300' is not bound")


if __name__ == "__main__":
    unittest.main()
