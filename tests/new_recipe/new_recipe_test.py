"""A new recipe is captured, keeps every rule, and verifies; and no name is taken
that would break something.

    new_recipe_test.py BOOK NAME PROGRAM ANSWER...
"""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))

from fusebook_docs import gallery, new_recipe  # noqa: E402
from fusebook_docs.book import Book  # noqa: E402
from fusebook_docs.errors import BookError  # noqa: E402

FOLDER, NAME, *PROGRAMS = sys.argv[1:]


def tool(folder, *words):
    return subprocess.run(
        [sys.executable, "-B", str(ROOT / "docs" / "fusebook_docs"), "--root",
         str(folder), *words], capture_output=True, text=True, check=False)


class Recipe(unittest.TestCase):
    book = Book(Path(FOLDER))

    def expect(self, *words):
        done = tool(FOLDER, *words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_it_is_captured_keeps_the_rules_and_verifies(self):
        for command in ("capture", "verify"):
            for program in PROGRAMS:
                answer = Path(program).suffix[1:]
                words = (() if answer == "new_recipe" else
                         ("--exercise", answer))
                self.expect(command, "--program", program, "--recipe", NAME,
                            *words)
        said = self.expect("limits", "--recipe", NAME)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertEqual(self.book.exercise_names(NAME),
                         sorted(Path(p).suffix[1:] for p in PROGRAMS[1:]))

    def test_it_is_the_last_of_the_gallery(self):
        entry = gallery.entries(self.book)[-1]
        self.assertEqual((entry.name, entry.level), (NAME, "first steps"))
        about = gallery.about(self.book, NAME)
        self.assertTrue(about.learn and about.conclusion and about.see_also)
        self.assertIn("// A new recipe\n// ====",
                      self.book.recipe_path(NAME).read_text())


class Names(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        shutil.copytree(ROOT / "recipes", self.root / "recipes")
        (self.root / "docs").mkdir()
        shutil.copy(ROOT / "docs" / "gallery.toml", self.root / "docs")
        self.book = Book(self.root)

    def files(self):
        return {path: path.read_bytes() for path in self.root.rglob("*")
                if path.is_file()}

    def test_names_that_a_recipe_cannot_have(self):
        before = self.files()
        for name, words in (("Big", "is not a valid name"), ("9x", "is not a valid name"),
                            ("a-b", "is not a valid name"), ("", "is not a valid name"),
                            ("../x", "is not a valid name"), ("main", "C++ or the"),
                            ("while", "C++ or the"), ("kernels", "C++ or the"),
                            ("adam_test", "C++ or the"),
                            ("foreach_map", "recipes/foreach_map.cpp")):
            done = tool(self.root, "new", "--recipe", name)
            self.assertEqual(done.returncode, 2, name)
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
        done = tool(self.root, "new", "--recipe", "good", "--title", "a\nb")
        self.assertEqual(done.returncode, 2)
        self.assertIn("is not a title", done.stderr)
        self.assertEqual(self.files(), before)

    def test_what_is_left_of_another_stays(self):
        path = self.root / "docs" / "about" / "good.rst"
        path.parent.mkdir()
        path.write_text("mine")
        before = self.files()
        with self.assertRaisesRegex(BookError, "docs/about/good.rst"):
            new_recipe.make(self.book, "good")
        self.assertEqual(self.files(), before)

    def test_only_to_ask(self):
        before = self.files()
        done = tool(self.root, "new", "--recipe", "good", "--check")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertEqual(self.files(), before)

    def test_a_title_of_ones_own(self):
        new_recipe.make(self.book, "good", "Why & how: C++")
        text = self.book.recipe_path("good").read_text()
        self.assertIn("// Why & how: C++\n// ==============\n", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
