"""Labels that were put on something else: each is told by its own check."""

import unittest
from unittest import mock

from planted import BOOK, Planted
from support import ROOT

from fusebook_docs import ladder, launches
from fusebook_docs.labels import (abouts, answers, bars, citations, comparisons,
                                  declared, examples, fitting, glossary, link_names,
                                  packages, pictures, programs, quoted_nouns,
                                  torch_table, variables)

USE = "docs/background/use_it.rst"
BENCHMARKS = "docs/background/benchmarks.rst"
TORCH = "docs/background/from_pytorch.rst"


class Lies(Planted):
    def test_a_program_or_an_output_of_another(self):
        page = "tests/consumers/{0}/training.cpp"
        self.lie(programs, USE, "installed/training.txt", "libtorch/training.txt",
                 "is not what the program before it prints")
        self.lie(programs, USE, ":caption: own_memory.cpp", ":caption: training.cpp",
                 "stands over own_memory.cpp",
                 place=".. literalinclude:: ../../tests/consumers/own_memory/own_memory.cpp")
        self.lie(programs, USE, "installed/CMakeLists.txt", "libtorch/CMakeLists.txt",
                 "does not build")
        self.swap(programs, USE, page.format("installed"), page.format("libtorch"),
                  "better, and that one those here")
        self.lie(programs, USE, ":caption: What it prints", ":caption: training.cpp",
                 "an output is called", place="installed/training.txt")
        self.lie(programs, "docs/background/scalars_and_guards.rst",
                 ":step: A tensor for a rate", ":step: What happens with a non-tensor LR?",
                 "is shown under 'What a tensor input changes'",
                 place=".. recipe-excerpt:: compiling_optimizer_lr_scheduler\n   :step: A t")

    def test_an_example_of_another(self):
        self.lie(examples, "docs/reference/compile.rst", "api-example:: policies",
                 "api-example:: train", "is an example of docs/examples/models.cpp")
        self.swap(examples, "docs/reference/tensors.rst", "api-example:: random",
                  "api-example:: scalars", "fits the words around")
        self.lie(examples, "docs/background/how_it_works.rst", "api-example:: recordings",
                 "api-example:: compile", "is an example of docs/examples/compile.cpp")
        self.swap(examples, TORCH, "api-example:: torch_scheduler",
                  "api-example:: torch_foreach_map", "fits the words around")

    def test_a_picture_of_another(self):
        page = "docs/background/how_it_works.rst"
        self.swap(programs, page, ":graph: step recorded", ":graph: step planned",
                  "is said of the graph", place=".. graph-picture::")
        self.swap(bars, BENCHMARKS, ":case: 10 x 1024 x 1024", ":case: 1000 x 64",
                  "stands where large tensors are spoken of", place=".. measured-bars::")

    def test_an_answer_that_is_not_there(self):
        """It is reported where answers are read, not by the others' checks."""
        path = BOOK.answer_path

        def answer_path(_, recipe, exercise):
            found = path(recipe, exercise)
            return found.with_suffix(".gone") if exercise == "small_blocks" else found

        whole = path("fewer_bytes", "lion").read_text(encoding="utf-8")
        with mock.patch.object(type(BOOK), "answer_path", answer_path):
            self.assertEqual(
                list(answers._of_answer(BOOK, "fewer_bytes", "lion", whole)), [])

    def test_a_term_that_is_another(self):
        self.lie(link_names, "docs/index.rst", "`gradients <gradient>`",
                 "`gradients <parameter>`", "'gradients' leads to the term 'parameter'")
        self.lie(link_names, "docs/ops.rst", "`guards <guard>`", "`guards <graph break>`",
                 "leads to the term 'graph break'")
        self.swap(glossary, "docs/index.rst", ":term:`horizontal fusion`",
                  ":term:`vertical fusion`", "words of vertical do",
                  place="into one launch (")
        self.lie(glossary, "docs/background/how_it_works.rst", ":term:`vertical fusion`",
                 ":term:`horizontal fusion`", "words of vertical do")

    def test_a_link_that_leads_elsewhere(self):
        name = "docs/background/result.rst"
        self.lie(link_names, name, "</recipes/compiling_optimizer>",
                 "</recipes/foreach_map>", "the first recipe is /recipes/compiling")
        self.lie(link_names, "docs/glossary.rst", ":doc:`/background/maths`",
                 ":doc:`/background/benchmarks`", "nothing beside it tells of")
        self.lie(link_names, TORCH, "</reference/optimizers>", "</reference/schedulers>",
                 "nothing beside it tells of /reference/schedulers")
        self.swap(link_names, "docs/reference/index.rst", ":doc:`models`",
                  ":doc:`checkpoints`", "nothing beside it tells of")

    def test_the_name_of_a_paper_or_an_author(self):
        self.swap(citations, "docs/credits.rst",
                  "Running the compiled optimizer with an LR scheduler",
                  "Supporting LRScheduler with compiled optimizer", "is not what")
        self.lie(citations, "docs/credits.rst", "**Michael Lazos**", "**Diederik Kingma**",
                 "is the author of nothing")
        self.lie(citations, "recipes/foreach_map.cpp", "by Michael Lazos", "by Horace He",
                 "'Horace He' is the author of nothing")
        self.lie(citations, "recipes/write_your_own_optimizer.cpp",
                 "Chen and others, 2023", "Kingma and Ba, 2015", "is not what")
        self.lie(citations, "docs/credits.rst", "<https://pytorch.org>",
                 "<https://pytorch.example>", "is called: nothing")
        self.lie(citations, "common/optim/adamw.h", "Loshchilov and Hutter, 2019",
                 "Kingma and Ba, 2015", "is not the paper of adamw")
        self.lie(citations, "common/optim/lamb.h", "You et al.", "Liu et al.",
                 "Liu et al., 2020 is not the paper of lamb")

    def test_the_label_of_a_bar(self):
        self.lie(bars, BENCHMARKS, "op by op = tensor by tensor", "eager = tensor by tensor",
                 "is not what 'tensor by tensor' is called", place=".. measured-bars::")
        self.lie(bars, BENCHMARKS, "PyTorch, fused = torch # fused",
                 "PyTorch, eager = torch # fused", "is called: 'PyTorch, fused'",
                 place=".. measured-bars:: step\n   :from: peers")
        self.swap(bars, BENCHMARKS, "= to_limit", "= by_hand", "is a name for",
                  place=".. value-bars:: compiling_optimizer\n\n   compiled / limit")
        name = "docs/gallery.toml"
        for one, other in (("limit = average_fused_below", "one launch = average_fused_above"),
                           ("LibTorch = libtorch_us", "Fusebook = fusebook_us")):
            a, b = (each.partition(" = ")[2] for each in (one, other))
            self.swap(bars, name, a, b, "is a name for",
                      place='name = "the_whole_tail"' if "limit" in one
                      else 'name = "in_a_libtorch_program"')

    def test_the_level_on_a_card(self):
        self.lie(bars, "docs/gallery.toml", 'level = "inside a kernel"',
                 'level = "first steps"', "is not the level of one_kernel_by_hand",
                 place='name = "one_kernel_by_hand"')

    def test_the_words_of_a_drawn_picture(self):
        rungs = pictures._rungs(BOOK)
        self.assertEqual(list(pictures.problems(BOOK)), [])
        alone, across, down, both = launches.PANELS
        for panels in ((alone, (down[0], *across[1:]), (across[0], *down[1:]), both),
                       (alone, (*across[:3], down[3]), (*down[:3], across[3]), both)):
            found = list(map(str, pictures.of_panels(BOOK, rungs, panels)))
            self.assertEqual(len(found), 2, found)
            self.assertRegex(found[0], rf"^{pictures.PANELS}:\d+: ")
        svg = ladder.svg(rungs)
        for one, other in (("time of a step", "bytes moved"),
                           (rungs[0].time_text, rungs[0].megabytes_text),
                           (rungs[0].time_text, rungs[1].time_text)):
            swapped = svg.replace(f">{one}<", ">@<", 1).replace(
                f">{other}<", f">{one}<", 1).replace(">@<", f">{other}<", 1)
            self.assertNotEqual(list(pictures.of_ladder(swapped, rungs)), [])

    def test_an_opposite(self):
        page = "docs/background/scalars_and_guards.rst"
        self.lie(glossary, page, "``specialize``, the", "``promote``, the",
                 "stands where words of ``specialize`` do")
        self.swap(glossary, page, "``promote``\n     -", "``fail_on_recompile``\n     -",
                  "stands where words of ``promote`` do")
        self.lie(glossary, "docs/background/many_ranks.rst", "in fast mode nearly",
                 "in exact mode nearly", "stands where words of fast mode do")

    def test_a_quoted_number_of_something_else(self):
        name = "recipes/compiling_optimizer.cpp"
        self.lie(quoted_nouns, name, "Adam must read", "Adam must write",
                 "is quoted where writ is counted")
        self.lie(quoted_nouns, "docs/exercises/compiling_optimizer/amsgrad.rst",
                 "bytes per element. Its", "launches. Its",
                 "is quoted where launch is counted", place=":value:`36")
        self.lie(quoted_nouns, "docs/background/result.rst", "launches op by op",
                 "kernels op by op", "where kernel is counted", place=":value:`70")

    def test_what_is_learned_from_another_recipe(self):
        self.lie(abouts, "docs/about/from_python.rst",
                 "- How a function of Python becomes a kernel.",
                 "- How a CUDA kernel for Adam is written, and launched.",
                 "what one learns of one_kernel_by_hand as well",
                 place="- How to step arrays")

    def test_a_formula_of_another_optimizer(self):
        self.lie(examples, "docs/background/maths.rst", ".. equations:: nadam",
                 ".. equations:: radam", "the formula of radam stands under 'NAdam'")

    def test_a_room_that_holds_something_else(self):
        self.lie(declared, "CONTRIBUTING.md", "| `common/amp/` | Scaled losses and skipped "
                 "steps, for gradients in float16.", "| `common/amp/` | Averages of a "
                 "model's parameters.", "no file of common/amp/")

    def test_a_package_or_a_folder_that_is_not(self):
        self.lie(packages, "docs/commands.md", "libcli11-dev", "libcli-dev",
                 "installs no package 'libcli-dev'",
                 place="sudo apt-get install g++ cmake")
        self.lie(packages, USE, "``~/.cache/fusebook``", "``~/.local/fusebook``",
                 "nothing of the library uses ~/.local/fusebook")

    def test_another_variable(self):
        self.lies(
            variables, USE,
            ("``FUSEBOOK_THREADS``", "``FUSEBOOK_LOGS``", "nothing around FUSEBOOK_LOGS"),
            ("``FUSEBOOK_CACHE_DIR``", "``FUSEBOOK_KEEP_SOURCE``",
             "nothing around FUSEBOOK_KEEP_SOURCE"))
        self.lie(variables, BENCHMARKS, "``FUSEBOOK_PYTHON_TORCH``",
                 "``FUSEBOOK_PYTHON``", "this is told of FUSEBOOK_PYTHON_TORCH")
        self.swap(variables, "docs/commands.md", "`FUSEBOOK_THREADS`", "`FUSEBOOK_LOGS`",
                  "nothing around FUSEBOOK_THREADS", place="| `FUSEBOOK_LOGS`")
        self.swap(variables, "CONTRIBUTING.md", "`FUSEBOOK_REPOSITORY`",
                  "`FUSEBOOK_SITE_URL`", "nothing around FUSEBOOK_SITE_URL")

    def test_a_part_a_target_or_a_package_that_is_not(self):
        self.lies(
            packages, USE,
            ("COMPONENTS libtorch", "COMPONENTS optim",
             "stands in no project of tests/consumers/libtorch"),
            ("PRIVATE fusebook::libtorch ", "PRIVATE fusebook::torch ",
             "stands in no project"),
            ("FetchContent_MakeAvailable(fusebook)", "FetchContent_Populate(fusebook)",
             "stands in no project"),
            ("``fusebook::fusebook`` is all", "``fusebook::all`` is all",
             "there is no target fusebook::all"),
            ("--libs fusebook)", "--libs fuse)", "pkg-config knows no 'fuse'"),
            ("fusebook/lib/pkgconfig", "fusebook/lib/cmake",
             "is not where cmake/install.cmake puts fusebook.pc"),
            ("./own_memory\n", "./training\n", "is not the program shown here"),
            ("find_package(fusebook 0.1)", "find_package(fuse 0.1)",
             "the package is fusebook"))

    def test_a_definition_of_another_term(self):
        page = "docs/glossary.rst"
        text = (ROOT / page).read_text()
        for one, other in (("launch", "recompile"), ("guard", "recording"),
                           ("moments", "momentum"), ("warp", "traffic")):
            a, b = (self._definition(text, each) for each in (one, other))
            first = one if text.index(a) < text.index(b) else other
            self.swap(glossary, page, *sorted((a, b), key=text.index),
                      f"the definition of {one!r} does not say",
                      f"{other!r} is defined as {one!r} is", place=f"\n   {first}\n"[1:])

    @staticmethod
    def _definition(text, term):
        begin = text.index(f"\n   {term}\n") + len(term) + 5
        return text[begin:text.index("\n\n", begin)]

    def test_a_row_of_the_table_beside_pytorch(self):
        for one, other, place in (
                ("grows with the number of parameters", "does not depend on it", None),
                ("may differ from eager in the last bits", "the bits of eager", None),
                ("one recompile in all", "one, for any number", None)):
            text = (ROOT / TORCH).read_text()
            row = text.rindex("   * - ", 0, text.index(one))
            place = text[row:text.index("\n", row)]
            self.swap(torch_table, TORCH, one, other, "is not what", place=place)

    def test_a_ratio_the_other_way_round(self):
        result = "docs/background/result.rst"
        self.lie(comparisons, result, "as fast as op by op", "as fast as eager",
                 "op by op or no fusion", place=":value:`op_by_op_us / both_us @ comp")
        self.lie(comparisons, result, "as fast as op by op", "as slow as op by op",
                 "has to follow a ratio", place=":value:`op_by_op_us / both_us @ comp")
        self.lie(comparisons, "recipes/compiling_optimizer.cpp", "the time of no fusion",
                 "as fast as no fusion", "'as fast' as 'no fusion'",
                 place=":value:`horizontal_us / op_by_op_us")
        self.lie(comparisons, "docs/about/fewer_bytes.rst", "half of its bytes",
                 "a third of its bytes", "'a third' compares")
        self.lie(comparisons, USE, "interpreted: slower", "interpreted: faster",
                 "'faster' compares")
        self.lie(comparisons, "recipes/write_your_own_optimizer.cpp",
                 "with half of the state", "with twice the state", "'twice' compares")

    def test_what_is_bound_must_hold(self):
        self.assertFalse(comparisons.holds(
            BOOK, "us('step', '1000 x 64', 'interpreted') < 1"))
        self.assertTrue(comparisons.holds(
            BOOK, "q('stores: ... @ compiling_optimizer') == 3"))

    def test_a_header_that_declares_something_else(self):
        page = "CONTRIBUTING.md"
        self.lies(
            declared, page,
            ("`kernels/ir/program.h`", "`kernels/ir/plan.h`",
             "declares none of Compiled, Recorder, Program"),
            ("`common/compile/compile.h`", "`common/tensor/tensor.h`",
             "declares none of Compiled"),
            ("`kernels/runtime/parallel.h`", "`kernels/jit/process.h`",
             "nothing beside kernels/jit/process.h"))
        self.lie(declared, "docs/reference/ranks.rst",
                 "``fusebook/distributed/step_traffic.h``",
                 "``fusebook/distributed/sharded_checkpoint.h``", "declares none of")

    def test_an_error_that_is_another(self):
        self.lie(declared, "CONTRIBUTING.md", "`fuse::UsageError` for a command",
                 "`fuse::RecompileError` for a command", "nothing beside RecompileError")
        self.lie(declared, USE, "``fuse::Error``", "``fuse::DeviceError``",
                 "nothing beside DeviceError")

    def test_an_answer_to_another_question(self):
        """One file is a copy of the other, as one of them is read from disk here."""
        for recipe, one, other in (("replaying_a_step", "new_gradients", "plain_number"),
                                   ("in_a_libtorch_program", "radam", "schedule"),
                                   ("write_your_own_optimizer", "cautious",
                                    "weight_decay")):
            name = f"docs/exercises/{recipe}/{one}.rst"
            theirs = (ROOT / f"docs/exercises/{recipe}/{other}.rst").read_text()
            self.lie(answers, name, (ROOT / name).read_text(), theirs,
                     f"is the answer to {other!r} as well")
        self.swap(answers, "recipes/replaying_a_step.cpp", "exercise:: new_gradients",
                  "exercise:: plain_number", "asks what")


class Fitting(unittest.TestCase):
    def test_words_are_stems_of_names_and_prose(self):
        self.assertEqual(fitting.words("the launches of :api:`foreach_add_`"),
                         fitting.words("launched, foreach and adding"))

    def test_swapped_pairs(self):
        red, blue = {"red", "wine"}, {"blue", "sky"}
        self.assertEqual(list(fitting.swapped([(red, red), (blue, blue)])), [])
        self.assertEqual(list(fitting.swapped([(red, blue), (blue, red)])), [(0, 1)])
        self.assertEqual(list(fitting.swapped([(red, blue), (red, red)])), [])


if __name__ == "__main__":
    unittest.main()
