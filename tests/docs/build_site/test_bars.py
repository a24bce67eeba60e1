"""`.. value-bars::` on a toy page."""

import unittest

from site_case import SiteCase

PAGE = "background/benchmarks"


class Page(SiteCase):
    def test_bars_and_table(self):
        self.built()
        article = self.page(PAGE)
        picture = article.select_one("figure.value-bars")
        self.assertEqual(picture.svg["aria-label"],
                         "eager: 747.2 us; launches: 5")
        self.assertIn("Toy CPU 9, 2 threads · g++ 12.2.0 · 2026-11-21. "
                      "./fusebook run toy_optimizer prints them.",
                      picture.figcaption.get_text())
        rows = [[cell.get_text().strip() for cell in row.select("td")]
                for row in article.select("details tbody tr")]
        self.assertEqual(rows, [["eager", "747.2 us"], ["launches", "5"]])
        self.assertEqual(len(article.select("details .varies")), 1)

    def test_a_number_that_nobody_printed(self):
        self.edit(self.root / f"docs/{PAGE}.rst", "eager_us", "lost_us")
        self.broken("benchmarks.rst", "no value 'lost_us'")


if __name__ == "__main__":
    unittest.main()
