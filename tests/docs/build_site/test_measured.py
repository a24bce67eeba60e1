"""`.. measured-bars::` and `.. measured-curves::` on a toy page."""

import unittest

from site_case import SiteCase, words_of_rows
from unit.test_measurements import toy_result

from fusebook_docs import measurements

PAGE = "background/benchmarks"
TEXT = """\
Benchmarks
==========

.. measured-bars:: step
   :case: 10 x 1024 x 1024
   :ratio:

   one list after the other = foreach
   compiled

.. measured-bars:: step
   :cases: compiled

   large = 10 x 1024 x 1024
   small = 1000 x 64

.. measured-curves:: compile
   :alt: Both stay flat.

   cold
   on disk = disk
"""


class Page(SiteCase):
    def start(self, root):
        super().start(root)
        measurements.store(self.book, toy_result(), "./fusebook bench")
        self.text = root / f"docs/{PAGE}.rst"
        self.text.write_text(TEXT)

    def test_pictures_and_tables(self):
        self.built()
        article = self.page(PAGE)
        ratios, times = article.select("figure.value-bars")
        self.assertEqual(ratios.svg["aria-label"], "one list after the other: "
                         "4.10x; compiled: 1.02x")
        self.assertEqual(times.svg["aria-label"], "large: 5000 us; small: 20.00 us")
        curves = article.select_one("figure.recipe-plot")
        self.assertEqual(curves.svg["aria-label"], "Both stay flat.")
        self.assertEqual(len(curves.select("polyline")), 2)
        for figure in article.select("figure"):
            self.assertIn("Toy CPU 9, 2 threads · g++ 12.2.0 · 2026-11-21 · "
                          "medians over 3 processes. ./fusebook bench measures "
                          "it.", figure.figcaption.get_text())
        tables = [words_of_rows(table) for table in article.select("details table")]
        self.assertEqual(tables[0], [
            ["one list after the other", "20000 us", "4.10x limit"],
            ["compiled", "5000 us", "1.02x limit"]])
        self.assertEqual(tables[2], [["1", "90001 us", "701.0 us"],
                                     ["100", "90100 us", "800.0 us"]])

    def test_another_measurement_says_where_it_was_made(self):
        self.edit(self.text, ".. measured-bars:: step\n",
                  ".. measured-bars:: step\n   :from: peers\n")
        self.broken("docs/measurements/peers.json: cannot be read",
                    "make it with: ./fusebook capture peers")
        beside = toy_result()
        beside["device"] = "Another CPU"
        measurements.store(self.book, beside, "./fusebook capture peers", "peers")
        self.built()
        places = [figure.figcaption.get_text() for figure
                  in self.page(PAGE).select("figure")]
        self.assertIn("Another CPU, 2 threads", places[0])
        self.assertIn("./fusebook capture peers measures it.", places[0])
        self.assertIn("Toy CPU 9, 2 threads", places[-1])

    def test_a_variant_that_was_not_measured(self):
        self.edit(self.text, "   compiled\n\n", "   quick\n\n")
        self.broken("benchmarks.rst", "step has no 'quick'")

    def test_curves_without_words_and_with_long_ones(self):
        self.edit(self.text, "   :alt: Both stay flat.\n", "")
        self.broken("benchmarks.rst", "needs :alt:")
        self.text.write_text(TEXT.replace("on disk =", "from the disk ="))
        self.broken("'from the disk' does not fit beside its curve")

    def test_numbers_that_were_edited(self):
        self.edit(measurements.path(self.book), "5000.5", "500.5")
        self.broken("docs/measurements/cpu.json", "edited after it was captured")


if __name__ == "__main__":
    unittest.main()
