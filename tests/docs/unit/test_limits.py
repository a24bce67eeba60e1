"""limits.py with toy recipes, and every recipe of the book."""

import unittest

from support import ROOT, BookCase, toy_record

from fusebook_docs import exercises, limits, literate, samples
from fusebook_docs.book import Book


def recipe(*, code=10, prose=8, main=""):
    lines = ["// %%", "// Title", "// =====", ""]
    lines += ["static void r(const Options&) {", '  step("One");']
    lines += [f"  // prose {i}" for i in range(prose - 2)]
    lines += [f"  f({i});" for i in range(code - 1)] + ["}", main]
    return literate.parse("\n".join(lines), "recipes/r.cpp")


class Toy(BookCase):
    def found(self, toy, name="r"):
        return " | ".join(map(str, limits.problems(self.book, name, toy)))

    def test_within(self):
        self.assertEqual(self.found(recipe(code=59, prose=50)), "")

    def test_too_long(self):
        self.assertEqual(self.found(recipe(code=60, prose=50)), "")
        self.assertIn("61 lines of C++",
                      self.found(recipe(code=61, prose=50)))
        self.assertEqual(self.found(recipe(code=61, prose=50),
                                    "foreach_map"), "")

    def test_prose(self):
        self.assertIn("of it is prose", self.found(recipe(code=50, prose=5)))
        self.assertIn("of it is prose", self.found(recipe(code=10, prose=40)))

    def test_harness(self):
        main = "int main() {\n" + "  g();\n" * 4 + "}\n"
        self.assertIn("7 lines of harness",
                      self.found(recipe(code=12, prose=14, main=main)))
        main = main.replace("  g();\n", "", 1)
        self.assertEqual(self.found(recipe(code=12, prose=14, main=main)), "")

    def test_columns(self):
        wide = "  // " + "x" * 76
        toy = recipe()
        toy.source += f"\n{wide}\n// https://{'x' * 80}\n"
        self.assertEqual(self.found(toy).count("81 columns"), 1)

    def test_words_of_the_engine_room(self):
        for word in ("slot", "Entries", "binding"):
            toy = recipe()
            toy.steps[0].prose[0] = literate.Line(7, f"The {word}.")
            self.assertIn(f"recipes/r.cpp:7: '{word}'", self.found(toy))

    def test_words_in_the_output(self):
        record = toy_record()
        record["steps"][3]["text"] = "one binding\n"
        samples.store(self.book, samples.from_record(
            record, "r", source_sha256="0"))
        self.assertIn("step 'A quiet step' prints 'binding'",
                      self.found(recipe(), "toy_optimizer"))


class TheBook(unittest.TestCase):
    """Every recipe there is keeps the limits, and its exercises apply."""

    def setUp(self):
        self.book = Book(ROOT)

    def test_limits(self):
        for name in self.book.recipe_names():
            with self.subTest(name):
                path = self.book.recipe_path(name)
                parsed = literate.read(path, self.book.show(path))
                found = list(limits.problems(self.book, name, parsed))
                self.assertEqual([str(problem) for problem in found], [])

    def test_exercises(self):
        for name in self.book.recipe_names():
            with self.subTest(name):
                found = exercises.problems(self.book, name)
                self.assertEqual([str(problem) for problem in found], [])
                answered = {path.stem for path in
                            (self.book.exercises / name).glob("*.rst")}
                self.assertEqual(answered, set(self.book.exercise_names(name)))

    def test_nothing_is_left_over(self):
        stems = {f"{name}{dot}" for name in self.book.recipe_names()
                 for dot in ("", *(f".{exercise}" for exercise in
                                   self.book.exercise_names(name)))}
        found = {path.stem for path in self.book.samples.glob("*/*.*")}
        self.assertLessEqual(found, stems)
        folders = {path.name for path in self.book.exercises.glob("*/")}
        self.assertLessEqual(folders, set(self.book.recipe_names()))


if __name__ == "__main__":
    unittest.main()
