"""literate.py: what a recipe's grammar gives, and what it refuses."""

import unittest

from support import FIXTURES, RUN

from fusebook_docs import cpp, limits, literate, python_code
from fusebook_docs.errors import BookError

TOY = (FIXTURES / "recipes" / "toy_optimizer.cpp").read_text()

MINIMAL = """\
#include "fusebook/fusebook.h"

// %%
// Title
// =====

static void r(const Options&) {
  step("One");
  // Prose.
  print("1");
}
"""


PYTHON = '''\
import fusebook
from fusebook.recipe import run_recipe, step

# %%
# Title
# =====
#
# Words.


# %%
# A function # with a sign.
def double(x):
    """Twice of it: step("no step")."""
    return 2 * x  # %% is no marker here


def r():
    step("One")
    # Prose.
    #
    # More.
    text = "# no comment"
    # A comment of the code.
    if text:
        print(double(1))

    step("Two")  # by device
    # The last.
    print("step()")


if __name__ == "__main__":
    run_recipe(r)
'''


def parse(source):
    return literate.parse(source, "recipes/r.cpp")


def texts(lines):
    return [line.text for line in lines]


class Python(unittest.TestCase):
    def read(self, source=PYTHON):
        return literate.parse(source, "recipes/r.py", python_code)

    def refused(self, old, new, text):
        with self.assertRaisesRegex(BookError, text):
            self.read(PYTHON.replace(old, new, 1))

    def test_parts(self):
        recipe = self.read()
        self.assertEqual(recipe.step_titles, ["One", "Two"])
        self.assertEqual(recipe.by_device, {"Two"})
        first, function, one, two = recipe.parts
        self.assertEqual(texts(first.prose), ["Title", "=====", "", "Words."])
        self.assertEqual(texts(first.code)[0], "import fusebook")
        self.assertEqual(texts(function.prose), ["A function # with a sign."])
        self.assertEqual(texts(function.code)[-1], "def r():")
        self.assertEqual(texts(one.prose), ["Prose.", "", "More."])
        self.assertEqual(texts(one.code), [
            'text = "# no comment"', "# A comment of the code.", "if text:",
            "    print(double(1))"])
        self.assertEqual(texts(two.code), ['print("step()")'])
        self.assertEqual(texts(two.tail), ['if __name__ == "__main__":',
                                           "    run_recipe(r)"])

    def test_its_code_alone_has_a_fingerprint(self):
        wanted = self.read().fingerprint
        for old, new, same in (
                ("# Prose.", "# Other prose.", True),
                ("  # by device", "", True), ("\n\n\ndef r", "\n\ndef r", True),
                ("# no comment", "# no", False), ("2 * x", "3 * x", False)):
            with self.subTest(old):
                changed = self.read(PYTHON.replace(old, new, 1))
                self.assertEqual(changed.fingerprint == wanted, same)

    def test_what_is_refused(self):
        self.refused("# Prose.", "x = 1", "in # comments")
        self.refused('step("Two")', 'step("One")', "appears twice")
        self.refused("    if text:\n        print(double(1))",
                     '    if text:\n        step("Deep")', "in a block")
        self.refused('step("Two")', 'step("Two"); x()', "alone on its line")
        self.refused("    # Prose.", "    # %%", "# %% inside a function")
        self.refused("if text:", "if text", "not Python")
        self.refused('"# no comment"', '"# no comment', "not Python")

    def test_how_much_of_it_is_harness_and_prose(self):
        recipe = self.read()
        self.assertEqual([line.text for line in limits.harness(recipe)], [
            "import fusebook", "from fusebook.recipe import run_recipe, step",
            "def r():", 'if __name__ == "__main__":', "    run_recipe(r)"])
        self.assertAlmostEqual(limits.prose_share(recipe), 7 / 19)
        self.assertIn("lines of Python", limits.summary("r", recipe))


class Parts(unittest.TestCase):
    def setUp(self):
        self.recipe = parse(TOY)

    def test_steps_in_source_order(self):
        self.assertEqual(self.recipe.step_titles,
                         ["Model setup", RUN, "A quiet step"])

    def test_every_line_knows_its_number(self):
        lines = TOY.split("\n")
        for part in self.recipe.parts:
            for line in [*part.prose, *part.code]:
                self.assertIn(line.text, lines[line.number - 1])

    def test_opening_code_is_joined_and_has_no_licence(self):
        code = texts(self.recipe.parts[0].code)
        self.assertEqual(code[:3], ['#include "fusebook/fusebook.h"',
                                    "using namespace fuse;", ""])
        self.assertIn("// The sum of a list, so that a helper with a comment "
                      "is shown as well.", code)
        self.assertEqual(code[-1],
                         "static void toy_optimizer(const Options& options) {")
        self.assertIn("  return sum;", code)
        self.assertIn("}", code)

    def test_step_code_is_dedented_and_without_marker(self):
        code = texts(self.recipe.steps[1].code)
        self.assertEqual(code[0], "Adam opt(model.parameters());")
        self.assertEqual(code[3], "  fused_step();")
        self.assertIn("}", code)

    def test_brace_that_ends_the_function_is_left_out(self):
        self.assertEqual(texts(self.recipe.steps[2].code),
                         ["opt.zero_grad();"])

    def test_prose_keeps_its_indentation_and_blank_lines(self):
        prose = texts(self.recipe.steps[0].prose)
        self.assertEqual(prose[1:], ["", ".. note::", "",
                                     "   Nothing here needs a GPU."])

    def test_prose_ends_at_first_line_that_is_no_comment(self):
        recipe = parse(MINIMAL.replace("  print", "\n  // code\n  print"))
        self.assertEqual(texts(recipe.steps[0].prose), ["Prose."])
        self.assertEqual(texts(recipe.steps[0].code),
                         ["// code", 'print("1");'])

    def test_block_of_braces_alone_is_left_out(self):
        recipe = parse(MINIMAL.replace('  print("1");\n', ""))
        self.assertEqual(recipe.steps[0].code, [])

    def test_code_after_the_function_is_no_code_of_its_last_step(self):
        recipe = parse(MINIMAL + "\nint main() {\n  r();\n}\n")
        self.assertEqual(texts(recipe.steps[0].code), ['print("1");'])
        self.assertEqual(texts(recipe.steps[0].tail),
                         ["int main() {", "  r();", "}"])

    def test_inside_a_namespace(self):
        recipe = parse("namespace {\n" + MINIMAL + "}  // namespace\n")
        self.assertEqual(recipe.step_titles, ["One"])

    def test_strings_and_comments_hide_markers(self):
        noise = 'print(R"(\n// %%\nstep(x); {\n)", 1\'000, "{ // step(y)");'
        recipe = parse(MINIMAL.replace('print("1");', noise))
        self.assertEqual(len(recipe.parts), 2)

    def test_other_things_called_step(self):
        calls = "opt.step(3); it->step(4); step(); twostep(5); my::step(6);"
        recipe = parse(MINIMAL.replace('print("1");', calls))
        self.assertEqual(recipe.step_titles, ["One"])


class Refused(unittest.TestCase):
    """Each mistake is one error that names file and line."""

    def refused(self, source, line, *words):
        with self.assertRaises(BookError) as caught:
            parse(source)
        message = str(caught.exception)
        self.assertTrue(message.startswith(f"recipes/r.cpp:{line}: "), message)
        for word in words:
            self.assertIn(word, message)

    def changed(self, old, new):
        self.assertIn(old, MINIMAL)
        return MINIMAL.replace(old, new)

    def test_titles_that_are_no_literal(self):
        for title in ("name", '"a" "b"', 'f("a")', 'R"(a)"', r'"a\n"'):
            with self.subTest(title):
                self.refused(self.changed('"One"', title), 8, "literal")

    def test_empty_title(self):
        self.refused(self.changed('"One"', '""'), 8, "empty")
        self.refused(self.changed('"One"', '" One"'), 8, "space")

    def test_step_shares_its_line(self):
        self.refused(self.changed('step("One");', 'step("One"); f();'), 8,
                     "must be alone on its line")

    def test_same_title_twice(self):
        again = 'print("1");\n  step("One");\n  // More.'
        self.refused(self.changed('print("1");', again), 11, "line 8")

    def test_step_without_prose(self):
        self.refused(self.changed("  // Prose.\n", ""), 8, "'One'", "prose")
        self.refused(self.changed("  // Prose.\n", "\n  // Prose.\n"), 8)
        self.refused(self.changed("  // Prose.\n", "  //\n"), 8)

    def test_step_in_a_block_or_outside(self):
        loop = 'for (;;) {\n  step("Two");\n  // More.\n  }'
        self.refused(self.changed('print("1");', loop), 11, "exactly once")
        self.refused(MINIMAL + 'step("Two");\n// More.\n', 12, "outside")

    def test_prose_marker(self):
        self.refused(self.changed("// %%", "// %% Title"), 3, "next line")
        self.refused(self.changed("// Prose.", "// Prose.\n\n  // %%\n  // a"),
                     11, "inside a function")
        self.refused(MINIMAL + "\n// %%\n\n", 13, "prose")

    def test_no_title(self):
        self.refused(self.changed("// =====", "// -----"), 3, "===")
        self.refused(self.changed("// %%", "// no marker"), 8, "first marker")
        self.refused("int main() {}\n", 1, "first marker")

    def test_broken_text(self):
        self.refused(self.changed('print("1");', 'print("1);'), 10, "string")
        self.refused(MINIMAL + "/* open\n", 12, "comment")
        self.refused(MINIMAL + "}\n", 12, "}")
        self.refused(MINIMAL + "void f() {\n", 12, "{")
        self.refused(self.changed("// Title", "// Title\r"), 4, "carriage")


class Fingerprint(unittest.TestCase):
    def test_comments_and_blank_lines_do_not_count(self):
        self.assertEqual(
            cpp.fingerprint("int a;\nint b;\n", "r"),
            cpp.fingerprint("// x\nint a; /* y\n*/\n\nint b;  // z\n", "r"))

    def test_code_and_strings_do(self):
        prints = {cpp.fingerprint(text, "r") for text in
                  ('f("// a");', 'f("// b");', 'f("");', "f('\"');")}
        self.assertEqual(len(prints), 4)


if __name__ == "__main__":
    unittest.main()
