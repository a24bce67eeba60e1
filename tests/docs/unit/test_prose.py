"""prose.py: no number in the book stands there unbound."""

import unittest

from support import ROOT, BookCase, amsgrad_record, toy_record

from fusebook_docs import literate, prose
from fusebook_docs.book import Book
from fusebook_docs.quotes import Home


def lines(text):
    return tuple(literate.Line(number, line)
                 for number, line in enumerate(text.split("\n"), 1))


class ProseCase(BookCase):
    def setUp(self):
        super().setUp()
        self.capture(toy_record())

    def found(self, text, home=Home("toy_optimizer")):
        piece = prose.Text("a.rst", lines(text), home)
        return [str(problem) for problem in prose.problems(self.book, piece)]

    def clean(self, text, **more):
        self.assertEqual(self.found(text, **more), [])

    def refused(self, text, *words, count=1):
        found = self.found(text)
        self.assertEqual(len(found), count, found)
        for word in words:
            self.assertIn(word, " | ".join(found))


class Lint(ProseCase):
    def test_line_and_advice(self):
        self.refused("One pass.\n\nThen\neight passes.", "a.rst:4: 'eight'",
                     ":value:`eight <", ":constant:`eight <", "without a number")
        self.refused("a\nthousand", "a.rst:1: 'a thousand'")

    def test_factors(self):
        for words in ("twice as fast", "half as long", "a third as many",
                      "Half the time", "tenfold", "ten-fold", "dozens of lists",
                      "Thousands of threads", "double the traffic"):
            with self.subTest(words):
                self.refused(f"It is\n{words}.", f"a.rst:2: '{words.split()[0]}")
        self.clean("Nothing is compiled twice; the other half; a third of it; "
                   "folded, unfolded; the second; it doubles.")

    def test_bound_numbers(self):
        self.clean("It is :value:`five <launches: #>` or :value:`eager_us`,\n"
                   "in :constant:`five\n<i < #; ++i>` calls.")

    def test_lies(self):
        self.refused("Calls:\n:constant:`six <i < #; ++i>` and :value:`six\n"
                     "<launches: #>`", "a.rst:2: :constant: says 'six'",
                     "a.rst:2: :value: says 'six'", count=2)

    def test_code_speaks_for_itself(self):
        self.clean("``for (int i = 0; i < 8; ++i)`` and ``1 - beta``")
        self.refused("``28``", "'28'")
        self.refused("``2.77x`` of ``4703 us``", "'2.77x'", "'4703'", count=2)
        self.refused(":math:`28`, :math:`x^2 + 29`", "'28'", "'2'", "'29'", count=3)

    def test_other_markup(self):
        self.clean("`Chen, 2023 <https://a.b/2302.06675>`_ and :doc:`one "
                   "</r/2>`")
        self.refused("`Six ways <https://a.b/3>`_", "'Six'")
        self.refused(":term:`six ways <way 3>`", "'six'")
        self.refused("**six** or *seven*", "'six'", "'seven'", count=2)

    def test_code_blocks(self):
        self.clean(".. code-block:: cpp\n\n   f(28);\n\nText.\n\n"
                   ".. literalinclude:: a.cu\n   :dedent: 28\n\n"
                   ".. A comment about 28 things.")
        for block in ("text", "console", "none", ""):
            self.refused(f"Text.\n\n.. code-block:: {block}\n\n   eager: 28 us",
                         "a.rst:3: ", "recipe-excerpt")
        self.refused(".. parsed-literal::\n\n   28", "a.rst:1")
        self.refused("It prints::\n\n   eager: 28 us", "a.rst:1",
                     "literal block")

    def test_captions_headings_and_alt_texts(self):
        plot = (".. recipe-plot:: Step 28\n   :alt: A curve\n"
                "      falls {}.\n   :width: 28\n\n   {}\n")
        self.clean(plot.format("slowly", "A caption."))
        self.refused(plot.format("in 28 steps", "A caption."), "a.rst:3: '28'")
        self.refused(plot.format("slowly", "Six curves."), "a.rst:6: 'Six'")
        self.refused("Six ways\n========", "a.rst:1: 'Six'")

    def test_exercises_have_the_code_of_their_answers(self):
        path = self.book.patch_path("toy_optimizer", "amsgrad")
        path.write_text(path.read_text().replace("true", "0.25"))
        text = ".. exercise:: amsgrad\n\n   Make it :constant:`0.25`.\n"
        self.clean(text)
        self.refused(f"{text}\nHere it is :constant:`0.25`.", "a.rst:5: ")


class Where(ProseCase):
    def setUp(self):
        super().setUp()
        self.run_on("capture", amsgrad_record(), exercise="amsgrad")

    def problems(self):
        recipe = literate.read(self.book.recipe_path("toy_optimizer"))
        texts = [*prose.of_recipe(self.book, "toy_optimizer", recipe),
                 *prose.of_pages(self.book)]
        return [str(problem) for text in texts
                for problem in prose.problems(self.book, text)]

    def test_every_place(self):
        self.assertEqual(self.problems(), [])
        path = self.book.recipe_path("toy_optimizer")
        text = path.read_text()
        for old, new in (("We step *Adam* twice", "We step *Adam* six times"),
                         ("We call it a few", "We call it six"),
                         ('step("A quiet', 'step("Six quiet'),
                         ("Turn on ``amsgrad``", "Turn on six")):
            self.assertIn(old, text)
            with self.subTest(new):
                path.write_text(text.replace(old, new))
                found, = self.problems()
                line = next(n for n, line in enumerate(
                    path.read_text().split("\n"), 1) if new in line)
                self.assertIn(f"recipes/toy_optimizer.cpp:{line}: ", found)
        path.write_text(text)
        for name in ("docs/exercises/toy_optimizer/amsgrad.rst",
                     "docs/index.rst", "docs/more/glossary.rst"):
            with self.subTest(name):
                page = self.root / name
                page.parent.mkdir(exist_ok=True)
                before = page.read_text() if page.exists() else None
                page.write_text("A page.\nSix things.\n")
                found, = self.problems()
                self.assertIn(f"{name}:2: 'Six'", found)
                page.unlink()
                if before is not None:
                    page.write_text(before)


class TheBook(unittest.TestCase):
    def test_every_number_is_bound_and_true(self):
        book = Book(ROOT)
        texts = list(prose.of_pages(book))
        for name in book.recipe_names():
            path = book.recipe_path(name)
            texts += prose.of_recipe(book, name, literate.read(path))
        self.assertEqual([str(problem) for text in texts
                          for problem in prose.problems(book, text)], [])


if __name__ == "__main__":
    unittest.main()
