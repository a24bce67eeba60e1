"""`.. recipe-plot::` on a toy page, and the arithmetic behind it."""

import unittest
from dataclasses import replace

from site_case import SiteCase

from fusebook_docs import samples
from fusebook_docs.extension import plot

TABLE = """step    flat rate    faded rate     flat loss    faded loss
   0        0.1000        0.1000         1.790         1.790
  20        0.1000       0.07391        0.1194        0.1353
  40        0.1000         1e-05        0.1196        0.1037
"""


class Table(unittest.TestCase):
    def test_read(self):
        names, rows = plot.table("before\n" + TABLE + "after\n")
        self.assertEqual(names, ["step", "flat rate", "faded rate",
                                 "flat loss", "faded loss"])
        self.assertEqual(rows[2], [40, 0.1, 1e-5, 0.1196, 0.1037])
        found = plot.panels(names, rows)
        self.assertEqual([(name, [series for series, _ in curves])
                          for name, curves in found],
                         [("rate", ["flat", "faded"]),
                          ("loss", ["flat", "faded"])])
        self.assertEqual(found[1][1][1][1], [1.79, 0.1353, 0.1037])

    def test_no_table(self):
        for text, word in (("", "no table"), ("a  b\n1  2\n", "no table"),
                           ("1  2\n3  4\n", "no table"),
                           ("a  b\n1  2\n3  4  5\n", "lengths"),
                           ("a  b  c\n1  2\n3  4\n", "lengths"),
                           ("a  b\n1  2\n3  nan\n", "finite")):
            with self.subTest(text), self.assertRaisesRegex(ValueError, word):
                plot.table(text)


class Sketch(unittest.TestCase):
    def test_the_last_quantity(self):
        svg = plot.sketch(*plot.table(TABLE))
        self.assertEqual(svg.count("<polyline"), 2)
        self.assertIn('aria-label="loss by step, at the end flat 0.1196, faded '
                      '0.1037"', svg)


class Ticks(unittest.TestCase):
    def scale(self, low, high):
        return plot.Scale([low, high], 0, 100)

    def test_even(self):
        scale = self.scale(0, 9)
        self.assertFalse(scale.log)
        self.assertEqual(scale.ticks(), [0, 2, 4, 6, 8])
        self.assertEqual([scale(0), scale(4.5), scale(9)], [0, 50, 100])
        self.assertEqual(self.scale(-0.31, 0.29).ticks(),
                         [-0.2, 0, 0.2])

    def test_logarithmic(self):
        scale = self.scale(0.09, 1.8)
        self.assertTrue(scale.log)
        self.assertEqual(scale.ticks(), [0.1, 0.2, 0.5, 1])
        self.assertEqual(self.scale(0.001, 1000).ticks(),
                         [0.001, 0.1, 10, 1000])
        self.assertAlmostEqual(self.scale(1, 100)(10), 50)
        self.assertFalse(self.scale(0, 100).log)

    def test_one_value(self):
        self.assertEqual(self.scale(3, 3)(3), 50)


class Labels(unittest.TestCase):
    def test_apart(self):
        placed = plot._apart([(50, "b"), (48, "a"), (10, "c")], 0)
        self.assertEqual([name for _, name in placed], ["c", "a", "b"])
        places = [y for y, _ in placed]
        self.assertTrue(all(b - a >= 14 for a, b in zip(places, places[1:])))

    def test_within_the_panel(self):
        placed = plot._apart([(119, "a"), (120, "b")], 0)
        self.assertLessEqual(placed[-1][0], 120)


class Page(SiteCase):
    directive = ("  // .. recipe-plot:: Say it\n"
                 "  //    :alt: Two curves & a <word>.\n  //\n"
                 "  //    What it *shows*.\n  //\n")

    def start(self, root):
        super().start(root)
        self.plain = self.root / "recipes/plain_recipe.cpp"
        self.edit(self.plain, '  step("Say it");\n',
                  '  step("Say it");\n' + self.directive)
        self.prints(TABLE)

    def prints(self, text):
        sample = samples.load(self.book, "cpu", "plain_recipe")
        step = replace(sample.steps[0], text=text)
        samples.store(self.book, replace(sample, steps=(step,)))

    def test_drawn(self):
        self.built()
        figure = self.page("recipes/plain_recipe").find(class_="recipe-plot")
        self.assertEqual(figure.svg["aria-label"], "Two curves & a <word>.")
        self.assertEqual(len(figure.find_all("polyline")), 4)
        words = [text.get_text() for text in figure.find_all("text")]
        for word in ("rate (logarithmic)", "loss (logarithmic)", "step",
                     "flat", "faded", "40", "0.1"):
            self.assertIn(word, words)
        self.assertEqual(figure.figcaption.get_text().strip(),
                         "What it shows.")
        for shape in figure.find_all(["polyline", "line"]):
            self.assertEqual(shape["stroke"], "currentColor")

    def test_the_numbers_are_those_of_the_table(self):
        self.built()
        figure = self.page("recipes/plain_recipe").find(class_="recipe-plot")
        faded = figure.find_all("polyline")[3]["points"].split()
        heights = [float(point.split(",")[1]) for point in faded]
        # Lower losses lie lower, and further down means a larger y.
        self.assertEqual(sorted(heights), heights)
        self.assertEqual(len(heights), 3)

    def test_unknown_step(self):
        self.edit(self.plain, "plot:: Say it", "plot:: Nothing")
        self.broken("no step 'Nothing'", "plain_recipe.cpp")

    def test_numbers_in_the_alt_text(self):
        self.edit(self.plain, "Two curves", ":value:`loss_us` and curves")
        self.broken(":alt: no value 'loss_us'", "plain_recipe.cpp")

    def test_without_words(self):
        self.edit(self.plain, "  //    :alt: Two curves & a <word>.\n", "")
        self.broken("needs :alt:", "plain_recipe.cpp")

    def test_output_without_a_table(self):
        self.prints("no table\n")
        self.broken("it printed no table", "plain_recipe.cpp")


if __name__ == "__main__":
    unittest.main()
