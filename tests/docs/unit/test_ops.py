"""ops.py: rows of all shapes, rows it cannot read, and the real table."""

import re
import shutil
import unittest

from support import ROOT, BookCase, copy_operations

from fusebook_docs import ops
from fusebook_docs.book import Book
from fusebook_docs.errors import BookError

MORE = "tests/new_op/more_ops.def"


def one(row):
    """The only operation of a text."""
    (op,) = ops.parse(row, "ops.def")
    return op


def value(text, arity=4):
    return one(f"OP(x, {arity}, {text}, any, 1, plain)").value


class Rows(unittest.TestCase):
    def test_fields(self):
        op = one("// More.\n\nOP(hypot, 2, math::sqrt(a* a + b * b), any, 1.5, plain)")
        self.assertEqual(
            (op.name, op.arity, op.value, op.domain, op.ulp, op.line),
            ("hypot", 2, "sqrt(a * a + b * b)", "any", 1.5, 3))
        self.assertFalse(op.moves)
        self.assertEqual(op.calls, ("foreach_hypot(a, b)",
                                    "foreach_hypot_(a, b)", "hypot(a, b)"))

    def test_moves_take_a_source(self):
        op = one("MOVE(copy, 1, a, any, 0, plain)")
        self.assertTrue(op.moves)
        self.assertEqual(op.calls, ("foreach_copy(a)", "foreach_copy_(list, a)",
                                    "copy(a)"))

    def test_what_stands_between_rows(self):
        found = ops.parse(
            "#ifndef MOVE\n#define MOVE OP\n#endif\n"
            "OP(one, 1, a /* OP(no, 1, a, any, 0) */, any, 0, plain)"
            "  // said, (done\n"
            "// clang-format off: OP(no, 1, a, any, 0)\n"
            "OP( two , 2,\n   math::clamp(a,\n a, b),\n any,0,\n library ) OP(six, 1, a,"
            "any, 0, plain)\n#ifdef FUSEBOOK_MORE_OPS\n"
            "#include FUSEBOOK_MORE_OPS\n#endif\n#undef MOVE\n", "f")
        self.assertEqual([(op.name, op.line) for op in found],
                         [("one", 4), ("two", 6), ("six", 10)])
        self.assertEqual(found[1].value, "clamp(a, a, b)")
        self.assertEqual([op.kind for op in found],
                         ["plain", "library", "plain"])

    def test_comparisons(self):
        for text, wanted in (("T(a < b)", True), ("T( a != b )", True),
                             ("a + b", False), ("T(a) - T(a < b)", False),
                             ("T(a < b) - T(b < a)", False),
                             ("T(a < b ? a : b)", False), ("T(a + b)", False)):
            with self.subTest(text):
                op = one(f"OP(x, 2, {text}, any, 0, plain)")
                self.assertEqual(op.compares, wanted)

    def test_formulas(self):
        for text, wanted in (
                ("a+b*c", "a + b * c"),
                ("a - -b", "a - -b"),
                ("-a * (-b)", "-a * (-b)"),
                ("T(1)/math :: sqrt(a)", "1 / sqrt(a)"),
                ("T(a==b)", "a == b"),
                ("T(a > T(0)) - T(a < T(0))", "(a > 0) - (a < 0)"),
                ("T(a > b) * T(1)", "(a > b) * 1"),
                ("(a != a||a<b)?a:-b", "(a != a || a < b) ? a : -b"),
                ("!(a < b)&&c>=d ? .5:1e-3", "!(a < b) && c >= d ? .5 : 1e-3"),
                ("math::clamp(a,T(0),math::abs(b))", "clamp(a, 0, abs(b))")):
            with self.subTest(text):
                self.assertEqual(value(text), wanted)


class Broken(unittest.TestCase):
    """Each error says the file, the line and what is wrong."""

    def refuses(self, row, words, line=3):
        with self.assertRaises(BookError) as caught:
            ops.parse(f"// Rows.\nOP(fine, 1, a, any, 0, plain)\n{row}", "dir/x.def")
        self.assertEqual((caught.exception.path, caught.exception.line),
                         ("dir/x.def", line))
        self.assertTrue(str(caught.exception).startswith(f"dir/x.def:{line}: "))
        self.assertIn(words, str(caught.exception))

    def test_shape(self):
        self.refuses("OP(x, 1, a, any)", "expected 6 fields, got 4")
        self.refuses("OP(x, 2, a, b, any, 0, plain)", "expected 6 fields, got 7")
        self.refuses("OP(x, 1,\n(a, any, 0)\n", "no closing parenthesis")
        self.refuses("OPS(x, 1, a, any, 0)", "'OPS(x, 1, a, any, 0)' is not a row")
        self.refuses("\n\n  rest", "'rest' is not a row", line=5)
        self.refuses("OP(y, 1, a, any, 0, plain))", "')' is not a row")

    def test_fields(self):
        self.refuses("OP(X, 1, a, any, 0, plain)",
                     "'X' is not a valid operation name")
        self.refuses("OP(x, 5, a, any, 0, plain)", "arity '5'; it must be 1 to 4")
        self.refuses("OP(x, 0, a, any, 0, plain)", "arity '0'")
        self.refuses("OP(x, two, a, any, 0, plain)", "arity 'two'")
        self.refuses("MOVE(x, 2, a, any, 0, plain)", "arity '2'; it must be 1")
        self.refuses("OP(x, 1, a, some, 0, plain)", "domain 'some'")
        self.refuses("OP(x, 1, a, any, -1, plain)", "bound '-1'")
        self.refuses("OP(x, 1, a, any, , plain)", "bound ''")
        self.refuses("OP(x, 1, a, any, 0, fast)", "kind 'fast'")

    def test_value(self):
        self.refuses("OP(x, 1, , any, 0, plain)", "no value")
        self.refuses("OP(x, 1, a + b, any, 0, plain)", "uses 'b'")
        self.refuses("OP(x, 1, sqrt(a), any, 0, plain)", "uses 'sqrt'")
        self.refuses("OP(x, 1, a * 0.5f, any, 0, plain)", "uses 'f'")
        self.refuses("OP(x, 1, a * T, any, 0, plain)",
                     "T without parentheses")
        self.refuses("OP(x, 1, a @ a, any, 0, plain)", "from '@ a' on")

    def test_what_only_a_preprocessor_knows(self):
        self.refuses("#if 0\nOP(x, 1, a, any, 0, plain)\n#endif",
                     "a row inside an #if", line=4)
        self.refuses('#include "more.def"', "is not supported here")
        self.refuses("#ifdef X", "without an #endif")

    def test_a_row_is_one_line_of_the_file(self):
        """The line is where the row begins, behind comments and long rows."""
        self.refuses("/* a\n b */ OP(w, 1,\n a,\n any, 0, plain)\n"
                     "OP(x, 1, b, any, 0, plain)",
                     "uses 'b'", line=7)


class Files(BookCase):
    def setUp(self):
        super().setUp()
        copy_operations(self.root)

    def error(self, more=()):
        with self.assertRaises(BookError) as caught:
            ops.read(self.book, more)
        return str(caught.exception)

    def test_more_rows(self):
        own = ops.read(self.book)
        both = ops.read(self.book, [MORE])
        self.assertEqual(both[:-1], own)
        self.assertEqual((both[-1].name, str(both[-1].path), both[-1].line),
                         ("hypotenuse", MORE, 3))

    def test_no_row_twice(self):
        shutil.copy(self.book.operations, self.root / "same.def")
        self.assertRegex(self.error(["same.def"]), r"^same.def:(\d+): .*'add' "
                         r"is already defined at kernels/ops/ops.def:\1$")

    def test_no_file(self):
        self.assertEqual(self.error(["none.def"]), "none.def: cannot be read: "
                                                   "No such file or directory")

    def test_operators(self):
        text = self.book.elements.read_text()
        self.book.elements.write_text(text.replace("(+, add)", "(+, plus)"))
        self.assertIn("common/foreach/map_element.h: operator + is for 'plus'",
                      self.error())
        self.book.elements.write_text("")
        self.assertIn("no operators found", self.error())


class TheTable(unittest.TestCase):
    """The table there is, read a second time in a simpler way."""

    def setUp(self):
        self.ops = ops.read(Book(ROOT))

    def test_every_row(self):
        text = (ROOT / "kernels/ops/ops.def").read_text()
        rows = re.findall(r"^(OP|MOVE)\((\w+), (\d), .*?, (\w+), ([\d.]+), "
                          r"(\w+)\)$", text, re.M)
        self.assertEqual(len(rows), len(re.findall(r"^(?:OP|MOVE)\(", text,
                                                   re.M)))
        self.assertEqual(
            [(op.moves, op.name, op.arity, op.domain, op.ulp, op.kind)
             for op in self.ops],
            [(word == "MOVE", name, int(arity), domain, float(ulp), kind)
             for word, name, arity, domain, ulp, kind in rows])

    def test_signs(self):
        signs = {op.name: op.with_operator for op in self.ops if op.sign}
        self.assertEqual(signs, {
            "add": "a + b", "sub": "a - b", "mul": "a * b", "div": "a / b",
            "neg": "-a", "eq": "a == b", "ne": "a != b", "lt": "a < b",
            "le": "a <= b", "gt": "a > b", "ge": "a >= b"})

    def test_a_sign_means_its_formula(self):
        for op in self.ops:
            if op.sign:
                self.assertEqual(op.with_operator, op.value)

    def test_comparisons(self):
        self.assertEqual([op.name for op in self.ops if op.compares],
                         ["eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf",
                          "isfinite", "logical_and", "logical_or",
                          "logical_xor", "logical_not"])


if __name__ == "__main__":
    unittest.main()
