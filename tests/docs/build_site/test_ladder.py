"""`.. recipe-ladder::` on a toy page."""

import unittest
from dataclasses import replace

from site_case import SiteCase
from unit.test_ladder import TEXT, times

from fusebook_docs import samples

PLAIN = "recipes/plain_recipe"


class Page(SiteCase):
    def start(self, root):
        super().start(root)
        self.plain = self.root / f"{PLAIN}.cpp"
        self.edit(self.plain, '  step("Say it");\n',
                  '  step("Say it");\n'
                  "  // .. recipe-ladder:: Say it\n  //\n"
                  "  //    What it *shows*.\n  //\n")
        self.prints(TEXT)

    def prints(self, text, **values):
        sample = samples.load(self.book, "cpu", "plain_recipe")
        step = replace(sample.steps[0], text=text)
        samples.store(self.book, replace(sample, steps=(step,),
                                         values=times(**values)))

    def test_picture_and_table(self):
        self.built()
        article = self.page(PLAIN)
        picture = article.select_one("figure.ladder")
        self.assertEqual(picture.figcaption.get_text().strip(),
                         "What it shows.")
        self.assertEqual(len(picture.select("rect.launch")), 7)
        fold = article.select_one("details.ladder-table")
        self.assertEqual(fold.summary.get_text(),
                         "The same numbers as a table")
        rows = [[cell.get_text().strip() for cell in row.select("td, th")]
                for row in fold.select("tr")]
        self.assertEqual(rows[0], ["fusion", "launches", "bytes moved",
                                   "time of a step"])
        self.assertEqual(rows[1:], [["slow one", "6", "40.00 MB", "200.0 us"],
                                    ["quick", "1", "10.00 MB", "50.00 us"]])
        self.assertEqual([mark.get_text() for mark in fold.select(".varies")],
                         ["200.0 us", "50.00 us"])

    def test_unknown_step(self):
        self.edit(self.plain, "ladder:: Say it", "ladder:: Nothing")
        self.broken("no step 'Nothing'", "plain_recipe.cpp")

    def test_output_without_a_ladder(self):
        self.prints("no ladder\n")
        self.broken("no ladder with at least two", "plain_recipe.cpp")


if __name__ == "__main__":
    unittest.main()
