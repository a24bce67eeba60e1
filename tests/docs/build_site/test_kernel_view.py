"""A kernel that a toy recipe prints, beside the code it comes from."""

import unittest
from dataclasses import replace

from site_case import SiteCase
from unit.test_kernel_text import PRINTED

from fusebook_docs import samples
from fusebook_docs.values import Value

PLAIN = "recipes/plain_recipe"
PLACE = "recipes/toy_optimizer.cpp:38"
BESIDE = ("  // .. kernel-beside:: common/by_hand.cu\n"
          "  //    :mark: update\n  //    :pairs: x: mul, add\n  //\n")


class Page(SiteCase):
    def start(self, root):
        super().start(root)
        self.plain = self.root / f"{PLAIN}.cpp"
        (root / "common/by_hand.cu").write_text(
            "// [update]\nvoid update(float& x) {\n  x = x * 2 + 1;\n}\n"
            "// [update]\n")
        self.prints(PRINTED.replace(PLACE, "@{place}"))

    def prints(self, text):
        sample = samples.load(self.book, "cpu", "plain_recipe")
        step = replace(sample.steps[0], text=text)
        samples.store(self.book, replace(
            sample, steps=(step,), values={"place": Value("place", PLACE,
                                                          PLACE)}))

    def view(self):
        self.built()
        return self.page(PLAIN).select_one(".kernel-view")

    def test_the_text_is_the_printed_one(self):
        view = self.view()
        shown = "".join(pre.get_text() for pre in view.select(".output-kernel"))
        before, after = (pre.get_text() for pre in view.parent.select(
            "pre.output-text"))
        self.assertEqual(f"{before}{shown}{after}\n", PRINTED)
        place, = view.select(".varies")
        self.assertEqual(place.get_text(), PLACE)

    def test_helpers_are_folded(self):
        folds = self.view().select(".kernel-generated details")
        self.assertEqual(len(folds), 2)
        self.assertIn("FUSE_FN T mul(T a", folds[0].get_text())
        self.assertIn("void load(", folds[1].get_text())
        for fold in folds:
            self.assertFalse(fold.has_attr("open"))

    def test_lines_lead_to_each_other(self):
        view = self.view()
        for link in view.select(".kernel-line a"):
            other = view.select_one(link["href"])
            self.assertEqual(link.find_parent(class_="kernel-line")["data-at"],
                             other["data-at"])
        source = view.select_one(".kernel-source")
        links = source.select("a.kernel-number")
        self.assertEqual([link["data-line"] for link in links], ["15", "38"])

    def test_it_is_highlighted(self):
        view = self.view()
        self.assertIn("const", [word.get_text() for word in view.select(
            ".kernel-generated .k")])

    def test_code_by_hand(self):
        self.edit(self.plain, '  step("Say it");\n',
                  f'  step("Say it");\n{BESIDE}')
        view = self.view()
        titles = [title.get_text() for title in view.select(".kernel-title")]
        self.assertEqual(titles, ["common/by_hand.cu",
                                  "recipes/toy_optimizer.cpp"])
        mine = view.select_one("[data-at='common-by-hand-cu-3']")
        self.assertIn("x = x * 2 + 1;", mine.get_text())
        both = view.select_one(".kernel-generated [data-at~='common-by-hand-cu-3']")
        self.assertIn("mul, add", both.get_text())

    def test_operations_that_are_not_paired(self):
        for pairs, word in (("x: mul", "no line computes add"),
                            ("x: mul, add, sqrt", "has no sqrt"),
                            ("y: mul, add", "0 lines of common/by_hand.cu")):
            with self.subTest(word):
                text = self.plain.read_text()
                self.edit(self.plain, '  step("Say it");\n',
                          '  step("Say it");\n' + BESIDE.replace(
                              "x: mul, add", pairs))
                self.broken(word, "plain_recipe.cpp")
                self.plain.write_text(text)

    def test_a_place_that_is_nowhere(self):
        self.edit(self.root / "recipes/toy_optimizer.cpp",
                  "  Generator gen(0);\n", "")
        self.prints(PRINTED.replace("cpp:15", "cpp:1500"))
        self.broken("the kernel names line 1500 of recipes/toy_optimizer.cpp",
                    "plain_recipe.cpp")


if __name__ == "__main__":
    unittest.main()
