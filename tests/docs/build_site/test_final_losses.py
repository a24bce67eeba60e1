"""`.. final-losses::` on a toy page."""

import unittest

from site_case import SiteCase, words_of, words_of_rows
from unit.test_storage_measurements import toy_storages

from fusebook_docs import measurements

PAGE = "background/benchmarks"


class Page(SiteCase):
    def start(self, root):
        super().start(root)
        measurements.store(self.book, toy_storages(), "./fusebook capture storages",
                           "storages")
        self.text = root / f"docs/{PAGE}.rst"
        self.text.write_text("Benchmarks\n==========\n\n.. final-losses::\n")

    def test_table(self):
        self.built()
        article = self.page(PAGE)
        head = [words_of(cell) for cell in article.table.select("th")]
        self.assertEqual(head, ["optimizer", "float32", "8-bit states",
                                "bfloat16, split masters"])
        self.assertEqual(words_of_rows(article.table), [
            ["Adam", "1.0000 to 3.0000", "0.8750, outside, 2 of 3", "3.0000, 2 of 3"],
            ["Lion", "1.2500 to 1.5000", "1.3333, 3 of 3", "1.5833, outside, 2 of 3"]])
        self.assertIn("2,000 steps, 3 seeds", article.get_text())
        self.assertIn("./fusebook capture storages measures it.", article.get_text())

    def test_one_that_is_not_there(self):
        measurements.path(self.book, "storages").unlink()
        self.broken("make it with: ./fusebook capture storages")


if __name__ == "__main__":
    unittest.main()
