"""What was measured on ranks, drawn on a toy page."""

import unittest

from site_case import SiteCase, words_of_rows
from unit.test_rank_measurements import toy_ranks

from fusebook_docs import measurements

PAGE = "background/many_ranks"
TEXT = """\
Ranks
=====

.. rank-sent::

.. rank-exchanges::
   :alt: Both follow the line.

.. rank-steps::
   :alt: It falls.

.. rank-plan:: large one
"""


class Page(SiteCase):
    def start(self, root):
        super().start(root)
        measurements.store(self.book, toy_ranks(), "./fusebook bench --ranks 4",
                           "ranks")
        self.text = root / f"docs/{PAGE}.rst"
        self.text.write_text(TEXT)

    def test_pictures_and_tables(self):
        self.built()
        article = self.page(PAGE)
        exchanges, steps = article.select("figure.recipe-plot")
        self.assertEqual(exchanges.svg["aria-label"], "Both follow the line.")
        # Two patterns of two sizes on two numbers of ranks, and each in the legend.
        self.assertEqual(len(exchanges.select(".mark")), 8 + 4)
        self.assertEqual(len(exchanges.select("polyline")), 1 + 1)
        names = [text.get_text() for text in exchanges.select("text.series")]
        self.assertEqual(names, ["model, 2 ranks", "gradients, 2 ranks",
                                 "parameters, 2 ranks",
                                 "gradients, 4 ranks, more than cores",
                                 "parameters, 4 ranks, more than cores"])
        self.assertEqual(len(steps.select("polyline")), 3 + 3)
        self.assertEqual(len({mark.name for mark in exchanges.select(".mark")}), 3)
        self.assertEqual(article.get_text().count(
            "Toy MPI 3 · 4 processes of one machine"), 4)
        tables = [words_of_rows(table) for table in article.select("table")]
        self.assertEqual(tables[0][2], [
            "2", "exact", "0.002048 MB", "0.004000 MB", "96 bytes", "8", "3", "11",
            "6.00x"])
        self.assertEqual([row[0] for row in tables[-1]], ["8", "16"])
        self.assertEqual(tables[-1][0][4:7], ["28.00 ms", "7.000 ms", "256.0 ms"])

    def test_a_case_that_was_not_planned_and_a_picture_without_words(self):
        self.edit(self.text, "rank-plan:: large one", "rank-plan:: huge")
        self.broken("many_ranks.rst", "nothing is planned for 'huge'")
        self.text.write_text(TEXT.replace("   :alt: It falls.\n", ""))
        self.broken("rank-steps needs :alt:")


if __name__ == "__main__":
    unittest.main()
