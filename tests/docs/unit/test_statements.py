"""What pages say and what there is: every statement of the real book is true, and
lies that are planted in it are told with file and line, each by its own check."""

import shutil
import tempfile
import unittest
from pathlib import Path

from planted import BOOK, Planted
from support import ROOT

from fusebook_docs import (alt_texts, bound_words, command_lines, command_words, docstrings,
                           formulas, links, literate, members, promised, prose, see_also,
                           snippets, statements, versions)
from fusebook_docs.book import Book
from fusebook_docs.errors import BookError
from fusebook_docs.literate import Line
from fusebook_docs.quotes import Home


def texts():
    found = list(prose.of_pages(BOOK, without=()))
    for name in BOOK.recipe_names():
        path = BOOK.recipe_path(name)
        found += prose.of_recipe(BOOK, name, literate.read(path))
    return found


class TheBook(unittest.TestCase):
    def test_every_statement_is_true(self):
        all_texts = texts()
        found = [*statements.problems(BOOK, all_texts),
                 *statements.of_the_house(BOOK, all_texts)]
        self.assertEqual([str(error) for error in found], [])

    def test_a_toy_has_none(self):
        toy = Book(ROOT / "tests/docs/fixtures")
        self.assertEqual([*statements.problems(toy, texts()),
                          *statements.of_the_house(toy, [])], [])


class Lies(Planted):
    def test_a_formula(self):
        self.lies(
            formulas, "docs/glossary.rst",
            ("a + w * (b - a)", "a + w * (a - b)", "and lerp in ops.def"),
            ("a + w * b * c", "a + w * b + c", "and addcmul in ops.def"),
            ("a + w * b / c", "a + w * c / b", "and addcdiv in ops.def"),
            ("addcdiv(a, b, c, w)", "addcdiv(a, b, w)",
             "no operation addcdiv of 3 operands"))
        self.lie(formulas, "docs/background/scalars_and_guards.rst", "``1 - beta``",
                 "``2 - beta``", "is not in the code")
        self.lie(formulas, "recipes/write_your_own_optimizer.cpp",
                 "(direction + 0.1 * param)", "(direction - 0.1 * param)",
                 "is not in the code")

    def test_a_member_of_another_class(self):
        self.lies(
            members, "docs/background/use_it.rst",
            ("``Tensor::set_data``", "``Adam::set_data``",
             "Adam has no 'set_data': set_data is in Tensor"),
            ("``fuse::libtorch::view``", "``fuse::libtorch::step``",
             "libtorch has no 'step'"),
            ("``fuse::Error``", "``fuse::zero_grad``", "fuse has no 'zero_grad'"))
        self.lie(members, "recipes/foreach_map.cpp", "``DType::float64``",
                 "``Log::float64``", "Log has no 'float64'")
        self.lie(members, "recipes/replaying_a_step.cpp", "``adam.zero_grad(false)``",
                 "``adam.from_blob(false)``", "has no 'from_blob'")
        self.lie(members, "docs/background/use_it.rst",
                 "``fusebook.foreach_map(function", "``fusebook.foreach_mop(function",
                 "has no 'foreach_mop'")
        self.lie(members, "CONTRIBUTING.md", "`Device::is_cpu()`",
                 "`Device::is_row()`", "Device has no 'is_row'")
        self.lie(members, "README.md", "`TensorList::from_blob(",
                 "`Tensor::from_blob(", "Tensor has no 'from_blob'")

    def test_an_option_of_another_command(self):
        page = "docs/commands.md"
        self.lies(
            command_lines, page,
            ("`--json FILE` stores the results", "`--out FILE` stores the results",
             "'--out' is not an option of './fusebook bench'"),
            ("with `--cache` also", "with `--fresh` also",
             "'--fresh' is not an option of './fusebook clean'"),
            ("`docs [--serve] [--port N]`", "`docs [--fix] [--port N]`",
             "'--fix' is not an option of './fusebook docs'"),
            ("`new NAME [--title TITLE]`", "`new NAME`",
             "does not say that new takes --title"),
            ("Every command takes `--yes`,", "Every command takes `--fresh`,",
             "not every command takes --fresh"),
            ("Every recipe takes `--device D`,", "Every recipe takes `--layers N`,",
             "not every recipe takes --layers"))
        self.lie(command_lines, "CONTRIBUTING.md", "docs --update-translations`",
                 "capture --update-translations`", "not an option of")
        self.lie(command_lines, "docs/first_five_minutes.rst", "--layers 4",
                 "--scheduler StepLR", "not an option of './fusebook run'")
        self.lie(command_lines, "fusebook", "  docs [--serve] [--port N]  build",
                 "  docs [--fix] [--port N]    build", "not an option of")

    def test_a_version(self):
        for name, old, new, words in (
                ("docs/first_five_minutes.rst", "Debian 12", "Debian 11",
                 "the versions of Debian are 12"),
                ("docs/background/from_pytorch.rst", "PyTorch 2.15", "PyTorch 2.51",
                 "the versions of PyTorch are"),
                ("docs/background/use_it.rst", "PyTorch 2.10", "PyTorch 2.1",
                 "the versions of PyTorch are"),
                ("recipes/foreach_map.cpp", "C++20", "C++23", "of C++ are 20"),
                ("docs/commands.md", "Python 3.11", "Python 3.9", "of Python are"),
                ("docs/credits.rst", "a BSD-3-Clause", "a BSD-2-Clause",
                 "the versions of BSD are 3"),
                ("docs/credits.rst", "Apache License 2.0", "Apache License 1.1",
                 "the versions of Apache License are 2.0"),
                ("docs/background/use_it.rst", "fusebook 0.1", "fusebook 0.2",
                 "the versions of fusebook are 0.1.0"),
                ("docs/commands.md", "Python 3.11", "CUDA 11.8",
                 "CUDA has no [[version]]")):
            self.lie(versions, name, old, new, words)

    def test_a_version_that_a_tool_writes(self):
        name = "docs/fusebook_docs/downloads.py"
        for old, new, words in (
                ("clang++ 15, or", "clang++ 11, or", "the versions of clang++ are 15"),
                ("CMake 3.25", "CMake 3.16", "the versions of CMake are 3.25"),
                ("3.4, fmt", "3.3, fmt", "the versions of Eigen are 3.4"),
                ("Python 3.11 with", "Python 3.9 with", "the versions of Python are")):
            text = (ROOT / name).read_text()
            self.assertEqual(text.count(old), 1, old)
            found = " | ".join(map(str, versions.in_tool(BOOK, name,
                                                         text.replace(old, new))))
            self.assertIn(f"{name}:", found)
            self.assertIn(words, found)

    def test_a_version_that_stands_twice(self):
        name = "pyproject.toml"
        for old, new, words in (
                ('version = "0.1.0"', 'version = "0.2.0"',
                 "fusebook is 0.2.0 here, but 0.1.0 in CMakeLists.txt"),
                ('requires-python = ">=3.11"', 'requires-python = ">=3.8"',
                 "Python is 3.8 here, but 3.11 in tools/lib/programs.sh"),
                ('license = "BSD-3-Clause"', 'license = "MIT"',
                 "BSD is something else here, but 3 in LICENSE")):
            with tempfile.TemporaryDirectory() as folder:
                root = Path(folder)
                for each in ("pyproject.toml", "CMakeLists.txt", "LICENSE", "cmake", "tools",
                             "docs/claims.toml"):
                    (root / each).parent.mkdir(exist_ok=True)
                    if (ROOT / each).is_dir():
                        shutil.copytree(ROOT / each, root / each)
                    else:
                        shutil.copy(ROOT / each, root / each)
                text = (root / name).read_text()
                self.assertEqual(text.count(old), 1, old)
                (root / name).write_text(text.replace(old, new))
                found = list(map(str, versions.that_differ(Book(root))))
            self.assertEqual(len(found), 1, found)
            self.assertRegex(found[0], rf"{name}:\d+: {words}")

    def test_a_number_in_code(self):
        self.lie(snippets, "recipes/write_your_own_optimizer.cpp",
                 "m = lerp(m, g, 0.01)", "m = lerp(m, g, 0.07)",
                 "'0.07' is not a number of the recipe's program")
        page = "docs/background/from_pytorch.rst"
        self.lies(
            snippets, page,
            ("total_iters=5", "total_iters=50",
             "'50' is not a number of the example torch_scheduler"),
            ("lr=0.01", "lr=0.001", "torch_compile"))

    def test_a_switch_in_code(self):
        self.lie(snippets, "docs/background/from_pytorch.rst", "fullgraph=True",
                 "fullgraph=False",
                 "'fullgraph=False' is the opposite of what the example torch_fullgraph")

    def test_a_switch_in_words(self):
        self.lie(snippets, "docs/glossary.rst", ".foreach = false", ".foreach = true",
                 "'foreach = true' is the opposite of what any recipe's program has")
        self.lies(
            snippets, "recipes/compiling_optimizer.cpp",
            ("``.foreach = false``", "``.foreach = true``",
             "the opposite of what its program has"),
            (".amsgrad = true``", ".amsgrad = false``",
             "the opposite of what its program has"))

    def test_a_command_for_another(self):
        page = "docs/first_five_minutes.rst"
        self.lies(
            command_words, page,
            ("fusebook verify", "fusebook capture",
             "stands where 'compares your' is said, which is './fusebook verify'"),
            ("fusebook verify", "fusebook run", "'compares your' is said"),
            ("fusebook doctor", "fusebook run", "which is './fusebook doctor'"),
            ("fusebook run", "fusebook verify", "says what it does"))
        self.lie(command_words, "README.md", "./fusebook run     #",
                 "./fusebook verify  #", "nothing around './fusebook verify'")
        self.lie(command_words, "docs/background/benchmarks.rst",
                 "``./fusebook bench`` measures", "``./fusebook capture`` measures",
                 "which is './fusebook bench'")
        self.lie(command_words, "CONTRIBUTING.md", "./fusebook verify NAME      # run it",
                 "./fusebook doctor NAME      # run it", "nothing around")
        self.lie(command_words, "fusebook", "show how your own run differs",
                 "show how your own run went", "'verify' (differ, compare)")

    def test_a_default(self):
        page = "docs/commands.md"
        self.lies(
            bound_words, page,
            ("| `auto` | the first usable", "| `cuda` | the first usable",
             "there is no '(default cuda: a GPU if there '"),
            ("what a GPU does, `cuda-sim` by default", "what a GPU does, `cuda` by default",
             "there is no 'name == nullptr ?"),
            ("may take, 600 by default", "may take, 900 by default",
             "FUSEBOOK_BUDGET\", \"900"),
            ("`~/.cache/fusebook`", "`~/.fusebook`", "there is no 'home + \"/.fusebook"),
            ("| exit code |", "| exit code (default `3`) |",
             "what is called the default is not bound"))
        self.lie(bound_words, "docs/background/scalars_and_guards.rst", "* - ``promote``",
                 "* - ``specialize``", "Policy::specialize;")
        self.lie(bound_words, "docs/background/from_pytorch.rst",
                 "the default is to allow", "the default is to refuse", "is not bound")
        self.lie(bound_words, "fusebook", "release (default)", "debug (default)",
                 "there is no 'preset=debug")
        self.lie(bound_words, "common/lr_scheduler/cycles.h", "default: step_size_up",
                 "default: gamma", "there is no 'step_size_down.value_or(gamma)'")
        self.lie(bound_words, "common/tensor/tensor.h", "true by default",
                 "false by default", "requires_grad = false)'")

    def test_an_exception_for_another(self):
        for name, old, new, words in (
                ("docs/reference/optimizers.rst", "but Muon and", "but LAMB and",
                 "names Adafactor, LAMB, but the optimizers with more than one launch are "
                 "Adafactor, Muon"),
                ("docs/reference/optimizers.rst", "LAMB and LARS, which",
                 "LAMB and Muon, which",
                 "that torch does not have are AdEMAMix, LAMB, LARS"),
                ("docs/background/maths.rst", "but for\nAdEMAMix's, LAMB's",
                 "but for\nAdEMAMix's, Adamax's", "names AdEMAMix, Adamax, LARS"),
                ("recipes/in_a_libtorch_program.cpp", "has no RAdam", "has no RMSprop",
                 "that LibTorch does not have are ASGD"),
                ("recipes/from_python.py", "Lion, an optimizer", "LAMB, an optimizer",
                 "names LAMB"),
                ("common/optim/all.h", "but Muon,", "but LARS,", "names LARS"),
                ("README.md", "## The house", "No optimizer but SGD is fused.\n",
                 "what is said of SGD is not bound")):
            self.lie(bound_words, name, old, new, words)

    def test_words_of_the_list_that_no_page_has(self):
        text = prose.Text("docs/background/maths.rst", (Line(1, "Nothing."),), Home())
        found = " ".join(map(str, bound_words.misplaced(BOOK, [text])))
        self.assertIn("docs/background/maths.rst:1: 'Every formula is that of", found)
        self.assertIn("does not stand there once", found)

    def test_a_test_beside_another_promise(self):
        page = "docs/promises.md"
        self.lies(
            promised, page,
            ("`fork_test`, `parallel_test`, `jit_test`",
             "`cuda_graph_test`, `parallel_test`, `jit_test`",
             "names cuda_graph_test, jit_test, parallel_test, but what proves it is "
             "fork_test"),
            ("`huge_tensor_test`", "`disk_full_test`", "names disk_full_test"),
            ("| Ctrl-C ends", "| Ctrl-D ends", "does not say, under [[promise]]"))

    def test_an_alt_text_of_curves(self):
        page = "docs/background/benchmarks.rst"
        for old, new, words in (
                ("Comparing the guards and binding stay", "Recording and binding stay",
                 "does not say 'Comparing the guards and binding stay flat"),
                ("Cold calls take longest", "Calls from disk take longest",
                 "does not say 'Cold calls take longest")):
            self.alt_lie(page, old, new, words)
        page = "docs/background/many_ranks.rst"
        self.alt_lie(page, "falls\n         with the ranks", "rises\n         with the ranks",
                     "does not say 'The step alone falls with the ranks until")
        self.alt_lie(page, "lie above it", "lie below it",
                     "does not say 'The points of more ranks than cores lie above it.'")
        self.alt_lie("recipes/mixed_precision_training.cpp", "stays far above them",
                     "stays far below them", "stays far below them.' is not bound")

    def alt_lie(self, name, old, new, words):
        """Told in the line where the alt text begins."""
        text = (ROOT / name).read_text()
        self.assertIn(old, text)
        at = text.rindex(":alt:", 0, text.index(old) + len(old))
        found = " | ".join(map(str, self.said(alt_texts, name,
                                              text.replace(old, new, 1))))
        for word in (f"{name}:{text.count(chr(10), 0, at) + 1}: :alt: ", words):
            self.assertIn(word, found)

    def test_a_picture_of_a_step_that_is_not_there(self):
        name = "recipes/fewer_bytes.cpp"
        text = (ROOT / name).read_text().replace("plot:: What is learned",
                                                 "plot:: What was learned")
        self.assertIn("is of 'What was learned', but it printed no table",
                      " | ".join(map(str, self.said(alt_texts, name, text))))

    def test_curves_that_do_not_go_so(self):
        columns = {"a": [4.0, 2.0, 1.0], "b": [4.0, 4.0, 4.0]}
        for true in ("last('a') < last('b')", "apart('a', 'b') == 4",
                     "all(x < 1 for x in steps('a'))"):
            self.assertIsNone(alt_texts.untrue(true, columns))
        self.assertEqual(alt_texts.untrue("first('a') > 5 * last('a')", columns),
                         "first('a') > 5 * last('a') does not hold")
        with self.assertRaisesRegex(BookError, "there is no column 'c' but a, b"):
            alt_texts.untrue("last('c') > 0", columns)

    def test_a_link_to_another_page(self):
        folder = "docs/about"
        for name, old, new, words in (
                ("compiling_optimizer", "`/background/how_it_works`", "`/background/use_it`",
                 "a link to /background/use_it, but tells of /background/how_it_works"),
                ("foreach_map", "`/ops`", "`/glossary`", "but tells of /ops"),
                ("the_whole_tail", "`/reference/lists`", "`/reference/models`",
                 "/reference/models does not describe 'clip_grad_norm_'"),
                ("fewer_bytes", "`mixed_precision_training`", "`the_whole_tail`",
                 "but tells of /recipes/mixed_precision_training"),
                ("replaying_a_step", "numbers that may move", "more of the same",
                 "nothing in 'more of the same.' is known to tell of")):
            self.lie(see_also, f"{folder}/{name}.rst", old, new, words)
        self.lie(see_also, "docs/index.rst", "card:: Benchmarks", "card:: Operations",
                 "/background/benchmarks, whose title is 'Benchmarks'")

    def test_a_member_in_a_comment_of_a_header(self):
        self.lie(members, "common/tensor/move_tensors.h", "Tensor::set_data",
                 "Optimizer::set_data", "Optimizer has no 'set_data'")
        self.lie(members, "common/dlpack/dlpack.h", "Tensor::from_memory",
                 "Tensor::foreach_add", "Tensor has no 'foreach_add'")
        self.lie(members, "common/programs/policy.h", "Policy::specialize",
                 "Rate::specialize", "Rate has no 'specialize'")

    def test_a_pinned_link(self):
        self.lie(links, "recipes/compiling_optimizer_lr_scheduler.cpp",
                 "blob/258955cec", "blob/258955ced", "is not in docs/links.txt")
        self.lie(links, "docs/credits.rst", "compiling-the-optimizer-with-pt2/1669",
                 "compiling-the-optimizer-with-pt2/1696", "is not in docs/links.txt")
        found = [str(error) for error in links.unused(BOOK, [])]
        self.assertIn("docs/links.txt:3: no page links to ", found[0])

    def test_a_number_in_a_comment_of_a_header(self):
        self.lie(None, "common/tensor/random.h", "drawn from 2^24 steps",
                 "drawn from 2^42 steps", "'2^42' is not a number of the code")
        self.lie(None, "common/optim_base/optimizer.h", "from 32 to 2048",
                 "from 37 to 2048", "'37' is not a number of the code")
        self.lie(None, "common/harness/recipe.h", "program with 130",
                 "program with 143", "'143' is not a number")


class LiesInProse(unittest.TestCase):
    """prose.py's own checks."""

    def lie(self, line, words, recipe="compiling_optimizer"):
        text = prose.Text("a.rst", (Line(7, line),), Home(recipe))
        found = " | ".join(map(str, prose.problems(BOOK, text)))
        self.assertIn("a.rst:7: ", found)
        self.assertIn(words, found)

    def test_a_unit(self):
        self.lie("It takes :value:`both_us` ms.", "shows its own unit: leave out 'ms'")
        self.lie("It moves :value:`28 <bytes per element: #>` bits.",
                 "'bits' does not stand where")
        self.assertEqual([], [str(error) for error in prose.problems(
            BOOK, prose.Text("a.rst", (Line(7, "It moves :value:`28 <bytes per "
                                               "element: #>` bytes."),),
                             Home("compiling_optimizer")))])

    def test_numbers_in_formulas(self):
        self.lie(r"That is :math:`7\times` as fast.", "'7' is not quoted")
        self.lie(".. math:: 7 x", "a formula is computed")


if __name__ == "__main__":
    unittest.main()
