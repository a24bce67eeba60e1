"""exampled.py: a name of the reference that no program uses is told."""

import tempfile
import unittest
from pathlib import Path

from support import ROOT

from fusebook_docs import exampled
from fusebook_docs.book import Book
from fusebook_docs.errors import BookError

PAGE = "docs/reference/things.rst"
FILES = {
    PAGE: ".. api-example:: paints\n\n.. api:: Paint\n.. api:: PaintOptions\n"
          ".. api:: mix\n\n.. literalinclude:: ../../tests/own.h\n\n.. api:: Base\n"
          ".. api:: Wet\n.. api:: red\n.. api:: Brush\n",
    "docs/examples/toys.cpp":
        "EXAMPLE(paints) {\n  Paint paint(red);  // Brush\n  paint.dry();\n}\n"
        "EXAMPLE(unseen) {\n  mix(1, 2);\n}\n",
    "tests/own.h": "struct Own : Base {};\n",
    "recipes/a.cpp": "void a() { auto wet = 1; use(\"Wet\"); }\n",
    exampled.LIST: "# A comment.\nWet Paint\n",
}


class Exampled(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="exampled-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name, text in FILES.items():
            self.write(name, text)

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def said(self):
        return [str(each) for each in exampled.problems(Book(self.root))]

    def begins(self, *places):
        found = self.said()
        self.assertEqual(len(found), len(places), found)
        for message, place in zip(found, places):
            self.assertTrue(message.startswith(place), message)

    def test_names_without_a_program(self):
        # `mix` is in an example that no page shows, `Brush` in a comment alone.
        self.begins(f"{PAGE}:5: mix is in no example", f"{PAGE}:12: Brush is in no example")

    def test_what_a_recipe_uses(self):
        self.write("recipes/b.cpp", "void b() { mix(1); Brush brush; }\n")
        self.begins()

    def test_shown_with_another(self):
        self.write(exampled.LIST, "Wet Paint\nmix Paint\nBrush mix\n")
        self.begins(f"{PAGE}:12: Brush is in no example")

    def test_lines_that_are_not_needed(self):
        self.write(exampled.LIST, "Wet Paint\nmix Paint\nBrush Paint\nred Paint\n"
                                  "Gone Paint\n")
        self.begins(f"{exampled.LIST}: 'red' need not be there: a program uses it",
                    f"{exampled.LIST}: 'Gone' need not be there: no page")

    def test_a_line_that_is_none(self):
        self.write(exampled.LIST, "# Names.\nWet\n")
        with self.assertRaisesRegex(BookError, f"^{exampled.LIST}:2: not 'NAME OTHER'"):
            self.said()

    def test_the_real_reference(self):
        self.assertEqual(list(exampled.problems(Book(ROOT))), [])


if __name__ == "__main__":
    unittest.main()
