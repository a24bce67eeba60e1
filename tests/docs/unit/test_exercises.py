"""exercises.py: what a recipe asks is answered, and patches are rebased."""

import shutil
import subprocess
import unittest

from support import BookCase

from fusebook_docs import exercises, patches

RECIPE = "toy_optimizer"
ADAM = "  Adam opt(model.parameters());"
WITH_AMSGRAD = "  Adam opt(model.parameters(), {.amsgrad = true});"


class Problems(BookCase):
    def found(self):
        return [str(problem)
                for problem in exercises.problems(self.book, RECIPE)]

    def test_three_are_asked_and_answered(self):
        source = self.book.recipe_path(RECIPE)
        patch = self.book.patch_path(RECIPE, "amsgrad")
        self.assertEqual(len(self.found()), 1)
        self.assertIn("has 1 exercises; a recipe needs 3", self.found()[0])
        source.write_text(source.read_text() + "// .. exercise:: two\n"
                          "// .. exercise:: three\n")
        for name in ("two", "other"):
            shutil.copy(patch, patch.with_stem(name))
        unanswered, unasked = self.found()
        self.assertRegex(unanswered, "exercise three has no answer")
        self.assertIn("other.patch: answers an exercise", unasked)

    def test_limits_say_all_of_it_at_once(self):
        source = self.book.recipe_path(RECIPE)
        source.write_text(source.read_text().replace(ADAM, "  Adam o(model);"))
        code, out = self.command("limits", "--recipe", RECIPE)
        self.assertEqual(code, 1)
        for words in ("a recipe needs 3", "no longer applies", "rebase-patch"):
            self.assertIn(words, out)


@unittest.skipUnless(shutil.which("git"), "git is not installed")
class Rebase(BookCase):
    def setUp(self):
        super().setUp()
        self.source = self.book.recipe_path(RECIPE)
        self.patch = self.book.patch_path(RECIPE, "amsgrad")
        self.git("init", "-q")
        self.commit()

    def git(self, *words):
        subprocess.run(["git", "-C", str(self.root), "-c", "user.name=n",
                        "-c", "user.email=e", *words], check=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "what was")

    def change(self, before, after):
        text = self.source.read_text()
        self.assertIn(before, text)
        self.source.write_text(text.replace(before, after))

    def rebase(self, *words):
        return self.command("rebase-patch", *words)

    def test_what_fits_is_left_alone(self):
        before = self.patch.read_bytes()
        self.change("int main", "// one more\nint main")
        self.assertEqual(self.rebase(), (0, ""))
        self.assertEqual(self.patch.read_bytes(), before)

    def test_context_that_changed_is_followed(self):
        self.change("what it counted, and how long it took",
                    "what it counted, what it cost, and how long it took")
        code, out = self.rebase("--check")
        self.assertEqual(code, 1)
        self.assertIn("no longer applies", out)
        self.assertIn("rebase-patch --recipe toy_optimizer --exercise amsgrad",
                      out)
        for _ in range(2):  # the second time there is nothing to do
            code, out = self.rebase()
            self.assertEqual(code, 0, out)
        self.assertEqual(patches.patched(self.book, RECIPE, "amsgrad"),
                         self.source.read_text().replace(ADAM, WITH_AMSGRAD))

    def test_lines_beside_insertions_at_the_top_and_within(self):
        edited = self.root / "edited.cpp"
        edited.write_text("// first\n" + self.source.read_text().replace(
            "    fused_step();\n", "    fused_step();\n    again();\n"))
        self.command("make-patch", "--recipe", RECIPE, "--exercise", "ends",
                     "--edited", edited)
        self.change("    fused_step();\n  }\n", "    fused_step();\n  } //\n")
        self.change("// SPDX-License", "// The licence: SPDX-License")
        code, out = self.rebase()
        self.assertEqual(code, 0, out)
        text = patches.patched(self.book, RECIPE, "ends")
        self.assertTrue(text.startswith("// first\n// The licence"))
        self.assertIn("    fused_step();\n    again();\n  } //\n", text)

    def test_the_version_that_it_fits_may_be_an_old_one(self):
        for words in ("all it counted", "everything it counted"):
            before = "what" if words.startswith("all") else "all"
            self.change(f"{before} it counted", words)
            self.commit()
        code, out = self.rebase("--recipe", RECIPE)
        self.assertEqual((code, out), (
            0, "docs/exercises/toy_optimizer/amsgrad.patch: rebased\n"))

    def test_a_conflict_is_left_to_a_person(self):
        before = self.patch.read_bytes()
        self.change(ADAM, "  AdamW opt(model.parameters());")
        code, out = self.rebase()
        self.assertEqual(code, 1)
        copy = self.root / "build" / "exercises" / "toy_optimizer.amsgrad.cpp"
        for words in ("toy_optimizer.amsgrad.cpp:37: the recipe and",
                      f"--edited {self.book.show(copy)}"):
            self.assertIn(words, out)
        for line in (WITH_AMSGRAD, "  AdamW opt(model.parameters());"):
            self.assertIn(line, copy.read_text())
        self.assertEqual(self.patch.read_bytes(), before)

    def test_a_patch_that_never_fitted(self):
        self.patch.write_text(self.patch.read_text().replace("counted", "saw"))
        code, out = self.rebase()
        self.assertEqual(code, 1)
        self.assertIn("does not apply to any committed version", out)


if __name__ == "__main__":
    unittest.main()
