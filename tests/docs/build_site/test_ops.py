"""The page of operations: every row of the table, and what is an error."""

import re

from bs4 import BeautifulSoup

from site_case import BuiltOnce, SiteCase
from support import build

MORE = "tests/new_op/more_ops.def"


class OpsCase(SiteCase):
    def built(self, *options):
        code, text = build(self.root, self.out, *options)
        self.assertEqual(code, 0, text)

    def rows(self):
        return self.page("ops").select("table.op-table tbody tr")

    def names(self):
        return [row.td.get_text(strip=True) for row in self.rows()]

    def row(self, name):
        """The texts of one row's cells, a list of lines each."""
        row = self.page("ops").find("tr", id=f"op-{name}")
        return [[p.get_text() for p in cell.find_all("p")]
                for cell in row.find_all("td")]


class Table(OpsCase, BuiltOnce):
    """Looks at one build; changes nothing."""

    options = ("-D", f"fusebook_more_ops={MORE}")

    def setUp(self):
        self.open(self.folder)

    def test_every_row_once(self):
        text = "".join((self.root / name).read_text()
                       for name in ("kernels/ops/ops.def", MORE))
        wanted = re.findall(r"^(?:OP|MOVE)\((\w+),", text, re.M)
        self.assertGreater(len(wanted), 30)
        self.assertEqual(self.names(), wanted)
        self.assertEqual([row["id"] for row in self.rows()],
                         [f"op-{name}" for name in wanted])

    def test_the_row_that_was_added(self):
        self.assertEqual(self.row("hypotenuse"), [
            ["hypotenuse"],
            ["sqrt(a * a + b * b)", f"Only in a build with {MORE}."],
            ["2 ulp"], ["2"],
            ["foreach_hypotenuse(a, b)", "foreach_hypotenuse_(a, b)",
             "hypotenuse(a, b)"]])

    def test_what_a_row_says(self):
        self.assertEqual(self.row("sub_scaled"), [
            ["sub_scaled"], ["a - c * b"], ["1.5 ulp"], ["3"],
            ["foreach_sub_scaled(a, b, c)", "foreach_sub_scaled_(a, b, c)",
             "sub_scaled(a, b, c)"]])
        self.assertEqual(self.row("neg")[1:], [
            ["-a"], ["exact"], ["1"],
            ["foreach_neg(a)", "foreach_neg_(a)", "neg(a) or -a"]])
        self.assertEqual(self.row("ge")[1],
                         ["a >= b", "1 where that holds, 0 elsewhere."])
        self.assertEqual(self.row("ge")[4][2], "ge(a, b) or a >= b")
        self.assertEqual(self.row("sqrt")[1:3], [
            ["sqrt(a)", "The bound is for a ≥ 0."], ["0.5 ulp"]])
        self.assertEqual(self.row("lerp")[1], [
            "abs(c) < 0.5 ? a + c * (b - a) : b - (b - a) * (1 - c)"])
        self.assertEqual(self.row("copy")[1], [
            "a", "In place, the values come from a second operand."])
        self.assertEqual(self.row("copy")[4][1], "foreach_copy_(list, a)")

    def test_links_to_a_row(self):
        links = self.page("ops").select('section > p a[href="#op-lerp"]')
        self.assertEqual([link.get_text() for link in links], ["lerp"])

    def test_no_row_without_the_setting(self):
        out = self.root / "plain"
        code, text = build(self.root, out)
        self.assertEqual(code, 0, text)
        table = BeautifulSoup((out / "ops.html").read_text(),
                              "html.parser").article.table
        self.assertNotIn("hypotenuse", table.get_text())


class Changes(OpsCase):
    def test_a_new_line_is_a_new_row(self):
        self.built()
        before = self.names()
        with self.book.operations.open("a") as file:
            file.write("OP(halve, 1, a * T(0.5), any, 0, arithmetic)\n")
        self.built()
        self.assertEqual(self.names(), [*before, "halve"])
        self.assertEqual(self.row("halve")[1], ["a * 0.5"])

    def test_a_row_can_be_linked_from_any_page(self):
        self.edit(self.recipe, "A stack of",
                  "As :ref:`op-add_scaled`, a stack of")
        self.built()
        link = self.page().find("a", href="../ops.html#op-add_scaled")
        self.assertEqual(link.get_text(), "add_scaled")

    def test_a_broken_row_is_an_error_with_its_place(self):
        lines = self.book.operations.read_text().count("\n")
        with self.book.operations.open("a") as file:
            file.write("OP(halve, 1, a * b, any, 0, arithmetic)\n")
        self.broken("docs/ops.rst:", f"kernels/ops/ops.def:{lines + 1}: ",
                    "uses 'b'")

    def test_a_broken_row_in_the_file_of_more(self):
        self.edit(self.root / MORE, "any, 2", "any")
        code, text = build(self.root, self.out, "-D",
                           f"fusebook_more_ops={MORE}")
        self.assertNotEqual(code, 0, text)
        self.assertIn(f"{MORE}:3: expected 6 fields, got 5", text)
