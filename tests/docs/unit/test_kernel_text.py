"""A generated kernel in what a program printed, and where it comes from."""

import unittest

from support import ROOT, BookCase

from fusebook_docs import kernel_text, samples
from fusebook_docs.book import Book
from fusebook_docs.errors import BookError

KERNEL = """template <class T>
FUSE_FN T mul(T a, T b) {
  return a * b;
}
struct Body0 {
  struct Element {
    float x;
  };

  // Once per tensor.
  static FUSE_FN PerTensor per_tensor(const Uniform& u) {
    const float a = mul<float>(u.a, 2.0f);   // mul, recipes/toy_optimizer.cpp:15
    return t;
  }

  // Once per element.
  static FUSE_FN void compute(Element& x) {
    const float b = mul<float>(x.x, t.a);    // mul, add, recipes/toy_optimizer.cpp:38
    x.x = b;
  }

  static FUSE_FN void load(Element& x) {
    x.x = 1;
  }
};
"""
PRINTED = f"launches: 1\n\n{KERNEL}done\n"


class Splitting(unittest.TestCase):
    def test_parts_of_the_text(self):
        before, kernel, after = kernel_text.split(PRINTED)
        self.assertEqual(before, "launches: 1\n")
        self.assertEqual("\n".join(line.text for line in kernel),
                         KERNEL.rstrip("\n"))
        self.assertEqual(after, "done\n")

    def test_notes(self):
        noted = [line for line in kernel_text.split(PRINTED)[1] if line.note]
        self.assertEqual([line.operations for line in noted],
                         [("mul",), ("mul", "add")])
        self.assertEqual(noted[0].place, ("recipes/toy_optimizer.cpp", 15))
        for line in noted:
            self.assertEqual(line.code + line.note, line.text)

    def test_what_is_no_kernel(self):
        for text in ("", "launches: 1\n", KERNEL.replace("//", "/"),
                     "struct Body0 {\n"):
            self.assertIsNone(kernel_text.split(text))

    def test_functions_with_notes_stay_open(self):
        kernel = kernel_text.split(PRINTED)[1]
        parts = kernel_text.parts(kernel)
        self.assertEqual([folded for folded, *_ in parts], [True, False, True])
        self.assertEqual("\n".join(line.text for line in kernel), "\n".join(
            line.text for _, first, end in parts for line in kernel[first:end]))
        shown = [line.text for line in kernel[parts[1][1]:parts[1][2]]]
        self.assertEqual(shown[0], "  // Once per tensor.")
        self.assertEqual(shown[-1], "  }")


class Sources(BookCase):
    def excerpts(self, text):
        return kernel_text.excerpts(self.book, kernel_text.split(text)[1])

    def test_functions_around_the_places(self):
        source = (self.root / "recipes/toy_optimizer.cpp").read_text()
        lines = source.split("\n")
        small, large = self.excerpts(PRINTED)
        self.assertEqual(small.lines[0],
                         "static double total(const std::vector<double>& "
                         "values) {")
        self.assertEqual(small.lines[-1], "}")
        self.assertIn("compile([&]", "\n".join(large.lines))
        for excerpt in (small, large):
            for number, line in excerpt.numbered():
                self.assertEqual(line, lines[number - 1])

    def test_places_that_are_nowhere(self):
        for old, new, word in (
                ("toy_optimizer.cpp:38", "toy_optimizer.cpp:3800", "has"),
                ("toy_optimizer.cpp:38", "lost.cpp:3", "does not exist")):
            with self.subTest(new), self.assertRaisesRegex(BookError, word):
                self.excerpts(PRINTED.replace(old, new))


class OfTheBook(unittest.TestCase):
    def test_every_printed_kernel_has_its_code(self):
        book, found = Book(ROOT), 0
        for name in book.recipe_names():
            sample = samples.load(book, "cpu", name)
            for step in sample.steps:
                split = kernel_text.split(samples.filled(step.text,
                                                         sample.values))
                if split is None:
                    continue
                found += 1
                shown = {(excerpt.path, number)
                         for excerpt in kernel_text.excerpts(book, split[1])
                         for number, _ in excerpt.numbered()}
                self.assertLessEqual({line.place for line in split[1]
                                      if line.place}, shown)
                lines = sum(end - first for folded, first, end
                            in kernel_text.parts(split[1]) if not folded)
                self.assertLess(lines, 60)
        self.assertGreater(found, 0)


if __name__ == "__main__":
    unittest.main()
