"""The formulas of the optimizers are what the optimizers compute."""

import ast
import contextlib
import copy
import itertools
import re
import shutil
import unittest
import xml.etree.ElementTree as xml
from dataclasses import replace
from unittest import mock

from support import FIXTURES, ROOT, BookCase

from fusebook_docs import equations, mathml
from fusebook_docs.book import Book
from fusebook_docs.errors import BookError


_SIZES = ("rows", "columns")


class _Turned(ast.NodeTransformer):
    """Changes one part of an expression: a value, or whether a case holds."""

    def __init__(self, index):
        self.left, self.part = index, None

    def visit(self, node):
        if not isinstance(node, ast.expr):
            return node
        self.left -= 1
        if self.left != -1:
            if isinstance(node, ast.Call) and node.func.id in _SIZES:
                return node  # the elements do not matter
            if isinstance(node, ast.Call):  # the function's name is no value
                node.args = [self.visit(each) for each in node.args]
                return node
            return self.generic_visit(node)
        self.part = ast.unparse(node)
        if isinstance(node, ast.Compare):
            return ast.UnaryOp(ast.Not(), node)
        return ast.BinOp(node, ast.Add(), ast.Constant(1.001))


def turned(statements):
    """(line, part, the statements with that part changed), for every part."""
    for at, statement in enumerate(statements):
        for index in itertools.count():
            turn = _Turned(index)
            value = turn.visit(copy.deepcopy(statement.value))
            if turn.part is None:
                break
            changed = replace(statement, value=value)
            yield (statement.line, turn.part,
                   (*statements[:at], changed, *statements[at + 1:]))


def _name(found):
    return found.code[0].partition(".")[0]


def noticed(wrong, runs):
    try:
        return any(equations.difference(wrong, run) for run in runs)
    except BookError:  # the root of a negative number
        return True


class OfTheBook(unittest.TestCase):
    def setUp(self):
        self.book = Book(ROOT)
        self.all = {name: equations.read(self.book, name)
                    for name in equations.names(self.book)}

    def test_every_optimizer_has_its_formulas(self):
        header, = (ROOT / "common").rglob("optim/all.h")
        wanted = set(re.findall(r"/(\w+)\.h", header.read_text()))
        wanted |= {path.stem for path in (ROOT / "common/optim_products").glob("*.h")}
        self.assertEqual(set(map(_name, self.all.values())), wanted - {"unsupported"})

    def test_each_is_what_its_optimizer_prints(self):
        for name, found in self.all.items():
            with self.subTest(name):
                equations.check(self.book, found)

    def test_every_part_matters(self):
        """None could be wrong unnoticed: every number, and every case."""
        for name, found in self.all.items():
            runs = equations.printed(self.book, found)
            for kind in ("statements", "start"):
                for line, part, wrong in turned(getattr(found, kind)):
                    with self.subTest(name, line=line, part=part):
                        self.assertTrue(noticed(replace(found, **{kind: wrong}),
                                                runs))

    def test_norms_are_those_of_whole_parameters(self):
        """The largest element, which is the norm of one alone, is another number."""
        for name in ("lamb", "lars"):
            found = self.all[name]
            runs = equations.printed(self.book, found)
            self.assertFalse(noticed(found, runs))
            with self.subTest(name), mock.patch.dict(
                    equations._FUNCTIONS, norm=lambda x: max(map(abs, x))):
                self.assertTrue(noticed(found, runs))

    def test_elements_are_computed_one_by_one(self):
        pair = equations.Elements((3.0, -4.0))
        for value, wanted in (
                (1 - pair, (-2, 5)), (pair * 2, (6, -8)), (12 / pair, (4, -3)),
                (pair**2 + pair, (12, 12)), (2**pair, (8, 0.0625)),
                (equations._FUNCTIONS["abs"](pair), (3, 4)),
                (equations._FUNCTIONS["norm"](pair), 5)):
            with self.subTest(wanted):
                self.assertEqual(value, wanted)

    def test_every_option_is_printed(self):
        for name, found in self.all.items():
            with self.subTest(name):
                for run in equations.printed(self.book, found):
                    self.assertLessEqual(found.options, set(run.options))

    def test_the_page_shows_all_of_them(self):
        page = (ROOT / "docs/background/maths.rst").read_text()
        shown = re.findall(r"^\.\. equations:: (\w+)$", page, re.MULTILINE)
        self.assertEqual(sorted(shown), sorted(self.all))

    def test_each_stands_below_its_optimizers_heading(self):
        heading = ""
        lines = (ROOT / "docs/background/maths.rst").read_text().split("\n")
        for number, (line, after) in enumerate(itertools.pairwise(lines), 1):
            if after and set(after) == {"-"}:
                heading = line.lower()
            if match := re.fullmatch(r"\.\. equations:: (\w+)", line):
                with self.subTest(line=number):
                    self.assertEqual(_name(self.all[match[1]]), heading)

    def test_they_are_well_formed(self):
        for name, found in self.all.items():
            writer = mathml.Writer(found)
            texts = [*writer.statements(), *writer.start(),
                     *(symbol for symbol, _ in writer.options())]
            for text in texts:
                with self.subTest(name, text=text):
                    xml.fromstring(f"<math>{text.replace('&#x2062;', '')}</math>")
            symbols = [symbol for symbol, _ in writer.options()]
            self.assertEqual(len(set(symbols)), len(symbols))


class Toys(BookCase):
    def setUp(self):
        super().setUp()
        for name in ("equations", "examples"):
            shutil.copytree(FIXTURES / name, self.root / "docs" / name)
        shutil.copytree(FIXTURES / "common", self.root / "common")
        self.file = self.root / "docs/equations/toy.txt"

    @contextlib.contextmanager
    def edited(self, old, new):
        """What is read from a file that is another one for a moment."""
        before = self.file.read_text()
        self.assertIn(old, before)
        self.file.write_text(before.replace(old, new))
        try:
            yield equations.read(self.book, "toy")
        finally:
            self.file.write_text(before)

    def test_read(self):
        found = equations.read(self.book, "toy")
        self.assertEqual(found.targets, {"g", "m", "p"})
        self.assertEqual(found.options, {"lr", "decay1"})
        equations.check(self.book, found)
        path, line, lines = equations.code(self.book, found)
        self.assertEqual(path.name, "toy_engine.h")
        self.assertEqual(lines[0], "inline double roll(double way) {")
        self.assertEqual(path.read_text().split("\n")[line - 1], lines[0])

    def test_a_formula_that_is_not_the_code(self):
        for old, new, line in (("p - lr * m", "p + lr * m", 6),
                               ("m / 2 + abs(g)", "m / 2 + g", 5),
                               ("m = lr", "m = 0", 5)):
            with self.subTest(new), self.edited(old, new) as found:
                with self.assertRaisesRegex(BookError,
                                            "does not match its code") as wrong:
                    equations.check(self.book, found)
                self.assertEqual((str(wrong.exception.path),
                                  wrong.exception.line),
                                 ("docs/equations/toy.txt", line))

    def matrices(self, lines, printed):
        """Equations of matrices, and what an optimizer is said to have printed."""
        self.file.write_text("code: toy_engine.h roll\nexample: maths_toy\n" + lines)
        folder = self.root / "docs/examples"
        name, _, options = printed.partition("\n")
        text = (folder / "maths.txt").read_text()
        (folder / "maths.txt").write_text(text.split("\n")[0] + "\n" + name + "\n"
                                          + options)
        return equations.read(self.book, "toy")

    def test_matrices(self):
        lines = ("s = norm(grad)\n"
                 "x = grad / max(s, eps)\n"
                 "repeat: turns\n"
                 "  a = x @ transpose(x)\n"
                 "  x = 2 * x - a @ x\n"
                 "p = p - sqrt(rows(p) / columns(p)) * x\n")
        # By hand: 3, 0 and 0, 4 have the norm 5; each turn takes c to 2 c - c^3.
        c, d = 0.6, 0.8
        for _ in range(3):
            c, d = 2 * c - c**3, 2 * d - d**3
        printed = (f"eps = 1e-7\nturns = 3\np = 1\n"
                   f"3,0;0,4 -> {1 - c!r},1;1,{1 - d!r}\n")
        found = self.matrices(lines, printed)
        equations.check(self.book, found)
        self.assertEqual(found.options, {"eps", "turns"})
        for old, new in (("transpose(x)", "x + x"), ("repeat: turns", "repeat: eps"),
                         ("2 * x", "3 * x"), ("rows(p) / columns(p)", "rows(p)"),
                         ("norm(grad)", "norm(grad) * 2")):
            with self.subTest(new), self.assertRaisesRegex(
                    BookError, "does not match its code"):
                equations.check(self.book,
                                self.matrices(lines.replace(old, new), printed))

    def test_matrices_are_multiplied(self):
        one = equations.Elements.of_matrix((1.0, 2.0, 3.0, 4.0, 5.0, 6.0), 3)
        other = equations._FUNCTIONS["transpose"](one)
        self.assertEqual(other.lines, [(1, 4), (2, 5), (3, 6)])
        self.assertEqual((one @ other).lines, [(14, 32), (32, 77)])
        self.assertEqual((other @ one).columns, 3)
        self.assertEqual((2 * one).columns, 3)

    def test_a_loop_on_the_page(self):
        found = self.matrices("x = grad\nrepeat: turns\n  x = x @ transpose(x)\n"
                              "p = p - x\n", "turns = 1\np = 1\n1 -> 1\n")
        lines = list(mathml.Writer(found).lines())
        self.assertEqual([repeat and repeat[1] for repeat, _ in lines],
                         [None, "turns", None])
        self.assertIn("<mi>x</mi><mo>←</mo>", lines[1][1])
        self.assertIn("<mo>⊤</mo>", lines[1][1])

    def test_what_cannot_be_read(self):
        for old, new, word in (
                ("p = p - lr * m", "p - lr * m", "not an assignment"),
                ("p = p - lr * m", "p = = 1", "not an assignment"),
                ("code: toy_engine.h roll\n", "", "needs a 'code:' line")):
            with self.subTest(new), self.assertRaisesRegex(
                    BookError, word), self.edited(old, new):
                pass

    def test_what_cannot_be_checked(self):
        for old, new, word in (
                ("lr * m", "rate * m", "'rate' is not defined"),
                ("abs(g)", "open(g)", "'open' is not defined"),
                ("maths_toy", "maths_lost", "unknown example 'maths_lost'"),
                ("maths_toy", "stepping", "printed no steps")):
            with self.subTest(new), self.assertRaisesRegex(
                    BookError, word), self.edited(old, new) as found:
                equations.check(self.book, found)

    def test_code_that_is_nowhere(self):
        for new, word in (("toy_engine.h fly", "no function 'fly'"),
                          ("lost.h roll", "0 files")):
            with self.subTest(new), self.assertRaisesRegex(
                    BookError, word), self.edited("toy_engine.h roll",
                                                  new) as found:
                equations.code(self.book, found)

    def test_indices(self):
        """What a step has assigned has index t, everything else the one
        before."""
        writer = mathml.Writer(equations.read(self.book, "toy"))
        first, second, third = writer.statements()
        before = "<mi>t</mi><mo>−</mo><mn>1</mn>"
        self.assertIn(f"<mi>θ</mi><mrow>{before}</mrow>", first)
        self.assertIn(f"<mi>m</mi><mrow>{before}</mrow>", second)
        self.assertIn("<mi>g</mi><mrow><mi>t</mi></mrow>", second)
        self.assertIn("<mi>m</mi><mrow><mi>t</mi></mrow>", third)


if __name__ == "__main__":
    unittest.main()
