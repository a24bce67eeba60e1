"""code_names.py: what prose names in ``literals`` is there."""

import unittest

from support import ROOT

from fusebook_docs import code_names, prose
from fusebook_docs.book import Book
from fusebook_docs.literate import Line

BOOK = Book(ROOT)


class Lies(unittest.TestCase):
    """In the real book: a page of Markdown, an `.rst`, a recipe."""

    def said_of(self, name, old, new):
        text = (ROOT / name).read_text()
        self.assertIn(old, text)
        line = text.count("\n", 0, text.index(old)) + 1
        text = text.replace(old, new, 1)
        if name.endswith(".md"):
            found = code_names.in_markdown(BOOK, name, text)
        else:
            lines = text.split("\n")
            found = code_names.in_prose(BOOK, prose.Text(
                name, tuple(Line(n, x) for n, x in enumerate(lines, 1)), None))
        return line, [str(error) for error in found]

    def lie(self, name, old, new, what):
        line, found = self.said_of(name, old, new)
        self.assertEqual(found, [f"{name}:{line}: there is no {what}: "
                                 "name what is there"])

    def test_a_command(self):
        self.lie("docs/first_five_minutes.rst", "./fusebook doctor",
                 "./fusebook diagnose", "command './fusebook diagnose'")
        self.lie("README.md", "./fusebook docs --serve", "./fusebook book",
                 "command './fusebook book'")
        self.lie("docs/commands.md", "./fusebook run compiling_optimizer",
                 "./fusebook run compiled_optimizer",
                 "recipe 'compiled_optimizer'")
        self.lie("CONTRIBUTING.md", "./fusebook test plan_test",
                 "./fusebook test plans_test", "test 'plans_test'")

    def test_an_option(self):
        self.lie("README.md", "`--no-install`", "`--dry-run`",
                 "option '--dry-run'")
        self.lie("docs/first_five_minutes.rst", "--layers 4", "--depth 4",
                 "option '--depth'")
        self.lie("docs/background/use_it.rst", "-DFUSEBOOK_RECIPES",
                 "-DFUSEBOOK_BOOK", "CMake option 'FUSEBOOK_BOOK'")
        self.lie("docs/background/use_it.rst", "--build --preset release",
                 "--build --preset optimized", "preset 'optimized'")

    def test_a_variable(self):
        self.lie("docs/commands.md", "`FUSEBOOK_KEEP_SOURCE`",
                 "`FUSEBOOK_SAVE_SOURCE`", "'FUSEBOOK_SAVE_SOURCE'")

    def test_a_test(self):
        self.lie("docs/promises.md", "`fork_test`, `parallel",
                 "`spawn_test`, `parallel", "test 'spawn_test'")

    def test_a_file(self):
        self.lie("CONTRIBUTING.md", "`common/compile/compile.h`",
                 "`common/compile/call.h`",
                 "file or folder 'common/compile/call.h'")
        self.lie("docs/ops.rst", "``kernels/ops/ops.def``",
                 "``kernels/ir/ops.def``",
                 "file or folder 'kernels/ir/ops.def'")
        self.lie("docs/reference/index.rst", '"fusebook.h"', '"fusebook/all.h"',
                 "file or folder 'fusebook/all.h'")
        self.lie("README.md", "`build/python`", "`build/venv`",
                 "file or folder 'build/venv'")

    def test_a_name(self):
        self.lie("recipes/replaying_a_step.cpp", "``capture_graph``",
                 "``record_graph``", "'record_graph'")
        self.lie("docs/background/scalars_and_guards.rst",
                 "``recompile_reports()``", "``compile_history()``",
                 "'compile_history'")
        self.lie("docs/background/use_it.rst", "``fusebook::fusebook``",
                 "``fusebook::everything``",
                 "part of the library 'fusebook::everything'")
        self.lie("docs/exercises/replaying_a_step/new_gradients.rst",
                 "After ``zero_grad()``", "After ``clear_grad()``",
                 "'clear_grad'")
        self.lie("docs/ops.rst", "``foreach_lerp_`` writes",
                 "``foreach_blend_`` writes", "'foreach_blend_'")


if __name__ == "__main__":
    unittest.main()
