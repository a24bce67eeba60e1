"""patches.py: exercises apply strictly or not at all."""

import subprocess
import shutil
import unittest

from support import BookCase

from fusebook_docs import patches
from fusebook_docs.errors import BookError

RECIPE = "toy_optimizer"
TARGET = f"recipes/{RECIPE}.cpp"


class Apply(BookCase):
    def setUp(self):
        super().setUp()
        self.out = self.root / "out.cpp"
        self.source = self.book.recipe_path(RECIPE)

    def apply(self):
        return self.command("apply", "--recipe", RECIPE, "--exercise",
                            "amsgrad", "--out", self.out)

    def test_applies(self):
        code, out = self.apply()
        self.assertEqual(code, 0, out)
        before = self.source.read_text().split("\n")
        after = self.out.read_text().split("\n")
        changed = [b for a, b in zip(before, after, strict=True) if a != b]
        self.assertEqual(
            changed, ["  Adam opt(model.parameters(), {.amsgrad = true});"])

    def test_lines_above_may_move(self):
        self.source.write_text("// one more\n" + self.source.read_text())
        self.assertEqual(self.apply()[0], 0)

    def test_changed_context_is_an_error(self):
        text = self.source.read_text().replace("Adam opt(model", "Adam o(model")
        self.source.write_text(text)
        code, out = self.apply()
        self.assertEqual(code, 1)
        for word in ("docs/exercises/toy_optimizer/amsgrad.patch:3",
                     "no longer applies", "Adam o(model", "line 37"):
            self.assertIn(word, out)
        self.assertFalse(self.out.exists())

    def test_unknown_exercise(self):
        code, out = self.command("apply", "--recipe", RECIPE, "--exercise",
                                 "none", "--out", self.out)
        self.assertEqual(code, 1)
        self.assertIn("amsgrad", out)

    def test_make_patch(self):
        edited = self.root / "edited.cpp"
        text = self.source.read_text().replace("i < 5", "i < 7")
        edited.write_text(text)
        code, out = self.command("make-patch", "--recipe", RECIPE,
                                 "--exercise", "seven", "--edited", edited)
        self.assertEqual(code, 0, out)
        self.assertEqual(patches.patched(self.book, RECIPE, "seven"), text)

    def test_make_patch_takes_as_much_context_as_it_needs(self):
        before = "a\nb\nc\nd\na\nb\nc\ne\n"
        for after, rows in ((before.replace("d", "z"), 5),
                            (before.replace("b", "z", 1), 6)):
            text = patches.make(RECIPE, before, after)
            self.assertEqual(text.count("\n"), rows + 2, text)

    def test_make_patch_of_no_change(self):
        code, out = self.command("make-patch", "--recipe", RECIPE,
                                 "--exercise", "same", "--edited", self.source)
        self.assertEqual(code, 1)
        self.assertEqual(self.book.exercise_names(RECIPE), ["amsgrad"])

    @unittest.skipUnless(shutil.which("patch"), "no patch(1) to compare with")
    def test_same_as_patch(self):
        self.apply()
        other = self.root / "other.cpp"
        shutil.copy(self.source, other)
        subprocess.run(["patch", "-s", "--fuzz=0", str(other),
                        str(self.book.patch_path(RECIPE, "amsgrad"))],
                       check=True)
        self.assertEqual(other.read_bytes(), self.out.read_bytes())


class Refused(unittest.TestCase):
    HEAD = f"--- a/{TARGET}\n+++ b/{TARGET}\n"

    def refused(self, text, *words, source="a\nb\na\nb\n"):
        with self.assertRaises(BookError) as caught:
            patches.apply(source, patches.parse(text, "e.patch", TARGET),
                          "e.patch", TARGET)
        for word in ("e.patch", *words):
            self.assertIn(word, str(caught.exception))

    def test_forms(self):
        self.refused("", "not a unified diff")
        self.refused("hello\n", "e.patch:1")
        self.refused(self.HEAD, "not a unified diff")
        self.refused(self.HEAD + "@@ -1,2 +1,2 @@\n a\n", "cut off")
        self.refused(self.HEAD + "@@ -1 +1 @@\n+a\n+b\n", "longer")
        self.refused(self.HEAD + "@@ -1 +1 @@\n?a\n", "must begin with")
        self.refused(self.HEAD + "@@ -1 +1 @@\n a\n", "changes nothing")
        self.refused(self.HEAD + "@@ -0,0 +1 @@\n+a\n", "without context")
        self.refused(self.HEAD.replace("toy", "boy") + "@@ -1 +1 @@\n-a\n+c\n",
                     "boy_optimizer")

    def test_two_places(self):
        self.refused(self.HEAD + "@@ -2,2 +2,1 @@\n-a\n b\n", "2 places")

    def test_at_its_place_among_many(self):
        hunks = patches.parse(self.HEAD + "@@ -3,2 +3,1 @@\n-a\n b\n", "e",
                              TARGET)
        self.assertEqual(patches.apply("a\nb\na\nb\n", hunks, "e", TARGET),
                         "a\nb\nb\n")


if __name__ == "__main__":
    unittest.main()
