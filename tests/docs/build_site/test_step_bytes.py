"""`.. step-bytes::` on a toy page."""

import unittest

from site_case import SiteCase, words_of, words_of_rows
from unit.test_byte_measurements import toy_bytes

from fusebook_docs import measurements

PAGE = "background/benchmarks"


class Page(SiteCase):
    def start(self, root):
        super().start(root)
        measurements.store(self.book, toy_bytes(), "./fusebook capture peers", "bytes")
        self.text = root / f"docs/{PAGE}.rst"
        self.text.write_text("Benchmarks\n==========\n\n.. step-bytes::\n")

    def test_table(self):
        self.built()
        article = self.page(PAGE)
        head = [words_of(cell) for cell in article.table.select("th")]
        self.assertEqual(head, ["step", "10 × 10", "2 × 2"])
        self.assertEqual(words_of_rows(article.table), [
            ["toy 1.0 AdamW8bit", "16.00 bytes, 12.00 ms, 3.00x",
             "28.00 bytes, 900.0 us, 45.0x"],
            ["here, float32", "28.00 bytes, 4.000 ms, 1.00x",
             "28.00 bytes, 20.00 us, 1.00x"],
            ["here, 8-bit states", "16.06 bytes, 2.500 ms, 0.625x",
             "28.00 bytes, 20.00 us, 1.00x"]])
        self.assertIn("medians over 5 processes", article.get_text())
        self.assertIn("./fusebook capture peers measures it.", article.get_text())

    def test_one_that_is_not_there(self):
        measurements.path(self.book, "bytes").unlink()
        self.broken("make it with: ./fusebook capture peers")


if __name__ == "__main__":
    unittest.main()
