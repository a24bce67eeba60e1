"""Examples of the API reference: captured, compared, noticed when edited."""

import shutil

from support import FIXTURES, BookCase

from fusebook_docs import examples

PROGRAM = """#!/bin/sh
printf '== stepping\\n{said}\\n'
exit {code}
"""


class Examples(BookCase):
    def setUp(self):
        super().setUp()
        shutil.copytree(FIXTURES / "examples", self.root / "docs" / "examples",
                        ignore=shutil.ignore_patterns("lists.*", "maths.*"))

    @property
    def kept(self):
        return self.root / "docs" / "examples" / "toys.txt"

    def program(self, said="done", code=0):
        path = self.root / "program"
        path.write_text(PROGRAM.format(said=said, code=code))
        path.chmod(0o755)
        return path

    def run_examples(self, *options, **program):
        return self.command("examples", "--program", self.program(**program),
                            *options)

    def test_as_on_the_page(self):
        code, out = self.run_examples()
        self.assertEqual((code, out), (0, "1 example, as on the pages.\n"))

    def test_another_output(self):
        code, out = self.run_examples(said="gone")
        self.assertEqual(code, 1)
        self.assertIn("docs/examples/toys.cpp:3: example stepping prints\ngone",
                      out)
        self.assertIn("./fusebook capture examples", out)

    def test_output_that_was_typed(self):
        self.kept.write_text(self.kept.read_text().replace("done", "fine"))
        code, out = self.run_examples()
        self.assertEqual(code, 1)
        self.assertIn("but the page shows\nfine", out)

    def test_code_that_is_newer_than_its_output(self):
        path = self.kept.with_suffix(".cpp")
        path.write_text(path.read_text().replace("done", "do" "ne!"))
        code, out = self.run_examples()
        self.assertEqual(code, 1)
        self.assertIn("has changed since its output was captured", out)
        self.assertEqual(self.run_examples("--write", said="done!")[0], 0)
        self.assertEqual(self.run_examples(said="done!")[0], 0)

    def test_capture_leaves_files_alone_that_are_right(self):
        self.assertEqual(self.run_examples("--write"), (0, ""))
        code, out = self.run_examples("--write", said="gone")
        self.assertEqual((code, out), (0, "wrote docs/examples/toys.txt\n"))
        self.assertTrue(self.kept.read_text().endswith("\ngone\n"))

    def test_a_program_that_fails(self):
        code, out = self.run_examples("--write", code=3)
        self.assertEqual(code, 1)
        self.assertIn("failed", out)
        self.assertTrue(self.kept.read_text().endswith("\ndone\n"))

    def test_output_without_code(self):
        self.kept.write_text(self.kept.read_text() + "== lost 000000000000\n")
        code, out = self.run_examples()
        self.assertEqual(code, 1)
        self.assertIn("output of unknown example lost", out)

    def test_two_of_one_name(self):
        shutil.copy(self.kept.with_suffix(".cpp"),
                    self.kept.with_name("more.cpp"))
        code, out = self.run_examples()
        self.assertEqual(code, 1)
        self.assertIn("example stepping is defined twice", out)

    def test_every_example_of_the_book_is_captured(self):
        from fusebook_docs.book import Book
        for example in examples.read(Book.here()).values():
            self.assertIsNone(examples.problem(example))
