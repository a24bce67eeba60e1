"""reading/: a passage that was edited since it was read is told, with file and line, and
so is one whose code, output, test or declaration was."""

import contextlib
import io
import unittest
from pathlib import Path
from unittest import mock

from support import ROOT, BookCase, amsgrad_record, toy_record

from fusebook_docs import cli
from fusebook_docs.book import Book
from fusebook_docs.errors import BookError
from fusebook_docs.literate import Line
from fusebook_docs.reading import ledger, passages

RECIPE = "recipes/toy_optimizer.cpp"
PAGE = "docs/background/page.rst"
ANSWER = "docs/exercises/toy_optimizer/amsgrad.rst"
HEADER = "common/toys/engine.h"
CATALOGUE = "docs/locale/zh_CN/LC_MESSAGES/background/page.po"
TEST = "tests/toys/toy_test.cpp"
FILES = {
    PAGE: "A page\n======\n\nThe first call compiles.\n\n- It does not\n  copy.\n"
          "- It runs on the CPU.\n\nAn example\n----------\n\nThis prints five.\n\n"
          ".. api-example:: steps\n\nA case\n------\n\n"
          f".. stands on: {TEST}: the rate\n\nA changed rate recompiles.\n",
    "docs/examples/toys.cpp": 'EXAMPLE(steps) {\n  print(5);\n}\n',
    "docs/examples/toys.txt": "== steps 0123456789ab\n5\n",
    HEADER: "/// An engine.\nstruct Engine {\n  /// How many laps.\n  int laps = 3;\n"
            "  bool fast = false;  ///< Does not stop.\n};\n",
    CATALOGUE: '#: docs/background/page.rst\nmsgid "It does not copy."\n'
               'msgstr "它不复制。"\n',
    TEST: 'TEST_CASE("the rate "\n          "moves") {\n  // why\n  CHECK(laps == 2);\n}\n'
          'TEST_CASE("another") {\n  CHECK(true);\n}\n',
}


class Reading(BookCase):
    def setUp(self):
        super().setUp()
        self.capture(toy_record())
        self.run_on("capture", amsgrad_record(), exercise="amsgrad")
        for name, text in FILES.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text, encoding="utf-8")
        ledger.reread(self.book, [])
        self.assertEqual(self.said(), [])

    def said(self):
        return [str(problem) for problem in ledger.problems(self.book)]

    def edited(self, name, old, new):
        path = self.root / name
        text = path.read_text(encoding="utf-8")
        self.assertIn(old, text)
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        found = self.said()
        path.write_text(text, encoding="utf-8")
        return found

    def told(self, name, old, new, *wanted):
        """Exactly `wanted`: what each of the errors begins with."""
        found = self.edited(name, old, new)
        self.assertEqual(len(found), len(wanted), found)
        for message, words in zip(found, wanted):
            self.assertTrue(message.startswith(words), message)

    # ---- passages

    def test_words_and_headings(self):
        changed = "the passage changed since it was read: read it, and if it is true, "
        for old, new, line in (
                ("first call", "later call", 4), ("does not\n  copy", "does\n  copy", 6),
                ("CPU", "GPU", 8), ("An example", "An exception", 10)):
            self.told(PAGE, old, new, f"{PAGE}:{line}: {changed}{ledger.HOW} {PAGE}")
        self.told(RECIPE, "and count every", "and count no", f"{RECIPE}:10: {changed}")
        self.told(HEADER, "How many laps", "How few laps", f"{HEADER}:3: {changed}")
        self.told(HEADER, "Does not stop", "Stops", f"{HEADER}:5: {changed}")
        self.told(CATALOGUE, "它不复制", "它复制", f"{CATALOGUE}:2: {changed}")

    def test_broken_otherwise_a_passage_is_the_same(self):
        self.told(PAGE, "does not\n  copy", "does\n  not copy")
        self.told(RECIPE, "what it counted, and", "what  it counted,\n  // and")

    def test_a_new_one_and_one_that_is_gone(self):
        self.told(PAGE, "- It does not\n  copy.\n", "", f"{PAGE}:6: what stood before this "
                  "was taken out")
        self.told(PAGE, "- It runs", "- It is new.\n- It runs", f"{PAGE}:8: the passage "
                  "changed")
        self.told(PAGE, FILES[PAGE], "", f"{PAGE}:1: what stood")

    def test_another_order(self):
        self.told(PAGE, "- It does not\n  copy.\n- It runs on the CPU.\n",
                  "- It runs on the CPU.\n- It does not\n  copy.\n",
                  f"{PAGE}:6: the passage stands elsewhere")

    # ---- what they stand on

    def test_the_code_of_a_step(self):
        step = "the code of its step and what it prints changed since the passage"
        self.told(RECIPE, "i < 5", "i < 6", f"{RECIPE}:34: {step}", f"{RECIPE}:35: {step}")

    def test_the_output_of_a_step(self):
        self.told("docs/samples/cpu/toy_optimizer.txt", "launches: 5", "launches: 6",
                  f"{RECIPE}:34: ", f"{RECIPE}:35: ")

    def test_what_an_answer_changes(self):
        self.told("docs/samples/cpu/toy_optimizer.amsgrad.txt", "arrays: 5", "arrays: 6",
                  f"{ANSWER}:1: the answer's code and what it prints changed")

    def test_examples_and_cases_of_its_section(self):
        beside = "an example or a test of its section changed"
        self.told("docs/examples/toys.txt", "\n5", "\n6", f"{PAGE}:10: {beside}",
                  f"{PAGE}:13: ", f"{PAGE}:15: ")
        self.told(TEST, "laps == 2", "laps == 3", f"{PAGE}:17: {beside}", f"{PAGE}:20: ",
                  f"{PAGE}:22: ")
        self.told(TEST, "// why", "// because")
        self.told(TEST, "CHECK(true)", "CHECK(false)")

    def test_a_case_that_there_is_not(self):
        for old, new, words in (("the rate", "the beta", "has no case 'the beta'"),
                                ("toy_test.cpp", "no_test.cpp", "is not there")):
            with self.assertRaisesRegex(BookError, f"^{PAGE}:20: .*{words}"):
                self.edited(PAGE, old, new)

    def test_a_declaration(self):
        self.told(HEADER, "laps = 3", "laps = 4",
                  f"{HEADER}:3: the declaration that it is about changed")
        self.told(HEADER, "fast = false", "fast = true", f"{HEADER}:5: the declaration")

    def test_an_original(self):
        self.told(CATALOGUE, "does not copy", "copies", f"{CATALOGUE}:2: the original")

    # ---- the command

    def reread(self, *words):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = cli.main(["--root", str(self.root), "reread", *words])
        return code, out.getvalue()

    def test_shows_what_it_takes_as_read(self):
        for name, old, new in ((PAGE, "first", "second"), (HEADER, "laps.", "rounds.")):
            path = self.root / name
            path.write_text(path.read_text().replace(old, new))
        code, said = self.reread(PAGE)
        self.assertEqual(code, 0)
        self.assertIn(f"{PAGE}:4: the passage changed since it was read\n"
                      "    The second call compiles.\n", said)
        self.assertIn("1 passages are taken as read, in docs/read.txt.", said)
        self.assertEqual([each.partition(" ")[0] for each in self.said()],
                         [f"{HEADER}:3:"])
        self.assertEqual(self.reread()[0], 0)
        self.assertEqual(self.said(), [])
        self.assertIn("Every passage was read", self.reread()[1])

    def test_a_file_that_there_is_not(self):
        code, said = self.reread("docs/no.rst")
        self.assertEqual(code, 1)
        self.assertIn("'docs/no.rst' is not a file of the book", said)

    def test_a_damaged_row(self):
        path = ledger.path(self.book)
        path.write_text("0123456789\n")
        with self.assertRaisesRegex(BookError, "^docs/read.txt:1: a row before"):
            ledger.read(self.book)


class Blocks(unittest.TestCase):
    def blocks(self, text):
        return list(passages.blocks([Line(n, x) for n, x in
                                     enumerate(text.split("\n"), 1)]))

    def test_rows_items_and_options_are_alone(self):
        self.assertEqual(self.blocks("| a |\n| b\n- c\n  d\n\n:alt: e\n  f\n:term:`g` h"),
                         [(1, "| a |"), (2, "| b"), (3, "- c d"), (6, ":alt: e f :term:`g` "
                                                                      "h")])


class RealBook(unittest.TestCase):
    """Lies that no other check knows."""

    BOOK = Book(ROOT)

    @classmethod
    def setUpClass(cls):
        cls.before = set(map(str, ledger.problems(cls.BOOK)))

    def lie(self, name, old, new):
        text = (ROOT / name).read_text(encoding="utf-8")
        self.assertIn(old, text)
        line = text.count("\n", 0, text.index(old)) + 1
        real, raw = Path.read_text, Path.read_bytes
        wrong = text.replace(old, new, 1)

        def read_text(path, *args, **kwargs):
            return wrong if path == ROOT / name else real(path, *args, **kwargs)

        def read_bytes(path):
            return wrong.encode() if path == ROOT / name else raw(path)

        with mock.patch.object(Path, "read_text", read_text), \
                mock.patch.object(Path, "read_bytes", read_bytes):
            found = set(map(str, ledger.problems(self.BOOK))) - self.before
        places = [each.split(": ")[0] for each in found]
        self.assertEqual([place.rpartition(":")[0] for place in places], [name])
        begins = int(places[0].rpartition(":")[2])
        self.assertLessEqual(begins, line)
        self.assertNotIn("\n\n", "\n".join(text.split("\n")[begins - 1:line]))

    def test_lies(self):
        for lie in (
                ("docs/background/how_it_works.rst", "The cache\n", "The plan\n"),
                ("docs/index.rst", "The first call also", "Every later call also"),
                ("docs/background/how_it_works.rst", "Nothing is contracted",
                 "Everything is contracted"),
                ("docs/background/use_it.rst", "and copies nothing", "and copies it"),
                ("CONTRIBUTING.md", "| Eigen | matrix products |",
                 "| Eigen | command lines |"),
                ("recipes/compiling_optimizer.cpp", "host's compiler has built",
                 "GPU's compiler has built")):
            with self.subTest(lie[1]):
                self.lie(*lie)


if __name__ == "__main__":
    unittest.main()
