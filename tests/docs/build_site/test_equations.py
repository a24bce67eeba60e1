"""`.. equations::` on a toy page."""

import unittest

from site_case import SiteCase

PAGE = "background/maths"


class Page(SiteCase):
    def test_formulas_beside_their_code(self):
        self.built()
        article = self.page(PAGE)
        box = article.select_one(".equations")
        self.assertEqual(len(box.select(".equation-steps math")), 3)
        self.assertIn("γ is lr", box.select_one(".equation-key").get_text())
        self.assertIn("inline double roll(double way) {",
                      box.select_one(".equation-code pre").get_text())
        check = article.select_one("details.equation-check")
        self.assertIn("print_steps<Toy>", check.get_text())
        self.assertIn("lr = 0.5", check.get_text())

    def test_formulas_that_are_not_the_code(self):
        self.edit(self.root / "docs/equations/toy.txt", "p - lr * m",
                  "p + lr * m")
        self.broken("docs/equations/toy.txt:6", "does not match its code")


if __name__ == "__main__":
    unittest.main()
