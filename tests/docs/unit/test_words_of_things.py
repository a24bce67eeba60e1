"""Words that say something else than the name, formula, drawing, notice or test that
they are about."""

import unittest

from planted import BOOK, Planted
from support import ROOT

from fusebook_docs import claims
from fusebook_docs.labels import (anchors, graph_shapes, licences, names_say, orders,
                                  promoted, symbols)

GLOSSARY = "docs/glossary.rst"
MATHS = "docs/background/maths.rst"
COMMANDS = "docs/commands.md"


class Lies(Planted):
    def test_a_square_that_is_none(self):
        self.swap(names_say, GLOSSARY, "``exp_avg`` in code", "``exp_avg_sq``.",
                  "nothing before exp_avg_sq says")
        self.lie(names_say, GLOSSARY, "``exp_avg_sq``", "``exp_avg``",
                 "exp_avg is no square")

    def test_another_unit_of_time(self):
        header = "common/bench/benchmark.h"
        for old, new in (("The median in microseconds", "The median in milliseconds"),
                         ("`iqr` in microseconds", "`iqr` in nanoseconds")):
            self.lie(names_say, header, old, new, "_us is in microsecond")

    def test_another_number_of_a_device(self):
        self.lie(names_say, COMMANDS, "`cuda:1` is the second", "`cuda:1` is the first",
                 "cuda:1 is the second")

    def test_another_order_of_what_is_tried(self):
        self.lies(
            orders, COMMANDS,
            ("`c++`, `g++` or `clang++`", "`g++`, `c++` or `clang++`",
             "in another order: c++, g++, clang++ (kernels/jit/host_compiler.cpp)"),
            ("tried before `CUDA_HOME`, `CUDA_PATH`",
             "tried before `CUDA_PATH`, `CUDA_HOME`",
             "in another order: CUDA_HOME, CUDA_PATH"))

    def test_after_for_before(self):
        self.lie(orders, COMMANDS, "tried before `CUDA_HOME`", "tried after `CUDA_HOME`",
                 "FUSEBOOK_CUDA_HOME is tried before CUDA_HOME: FUSEBOOK_CUDA_HOME, "
                 "CUDA_HOME, CUDA_PATH (kernels/nvrtc/toolkit_folders.cpp)")

    def test_another_order_of_libraries(self):
        text = (ROOT / COMMANDS).read_text()
        old = "`libnvrtc.so.13`, then `.12`"
        self.assertIn(old, text)
        wrong = text.replace(old, "`libnvrtc.so.12`, then `.13`")
        found = " | ".join(map(str, claims.of_page(
            BOOK, COMMANDS, wrong, [each for each in claims.read(BOOK)
                                    if each.page == COMMANDS])))
        line = text.count("\n", 0, text.index(old)) + 1
        self.assertIn(f"{COMMANDS}:{line}: says '12', but", found)

    def test_a_letter_of_another_formula(self):
        self.lies(
            symbols, MATHS,
            ("m of the gradient, v of its square", "v of the gradient, m of its square",
             "'v' is not made of 'the gradient'", "'m' is not made of 'its square'"),
            ("trusts v only after", "trusts n only after",
             "no formula here has the letter 'n'"),
            ("average n of the gradients", "average v of the gradients",
             "'v' is not made of 'the gradients'"))

    def test_a_shape_of_something_else(self):
        page = "docs/background/how_it_works.rst"
        self.lies(
            graph_shapes, page,
            ("What is read has round ends,\n   operations are boxes",
             "What is read is a box,\n   operations have round ends",
             "this is not drawn box", "this is not drawn round"),
            ("What is read has round ends", "What is read has thick frames",
             "this is not drawn thick"))
        self.lie(graph_shapes, page, "what is written to memory has a thick frame",
                 "what is written to memory has a dashed frame",
                 "this is not drawn dashed", place="operations are boxes")

    def test_another_result_of_two_types(self):
        page = "docs/ops.rst"
        row = "   * - ``float16`` and ``bfloat16``\n     - ``{0}``"
        self.lie(promoted, page, row.format("float32"), row.format("bfloat16"),
                 "float16 and bfloat16 give float32")
        row = "   * - ``float32`` and {0}\n"
        self.lie(promoted, page, row.format("16 bits"), row.format("any other"),
                 "float32 and float64 give float64")
        self.lie(promoted, page, "that type\n", "``float32``\n", "both the same",
                 place="   * - both the same")

    def test_another_licence(self):
        page = "docs/credits.rst"
        self.lies(
            licences, page,
            ("Apache License 2.0", "MIT License", "the licence is Apache, not MIT"),
            ("under the BSD-3-Clause licence:", "under the BSD-2-Clause licence:",
             "not BSD-2-Clause"))
        self.lie(licences, "README.md", "license is BSD-3-Clause", "license is Apache",
                 "the licence is BSD-3-Clause, not Apache")

    def test_a_heading_that_is_not_meant(self):
        page, below = "CONTRIBUTING.md", "(#are-the-tests-worth-anything)"
        self.lies(
            anchors, page,
            (below, "(#what-is-ours-and-why)",
             "nothing beside the link tells of 'What is ours, and why'"),
            (below, "(#are-the-tests-any-good)", "there is no heading"),
            ("(#what-is-ours-and-why)", below, "has no table"))
        self.lie(anchors, "README.md", "(docs/promises.md)", "(docs/promise.md)",
                 "there is no file")
        self.lie(anchors, COMMANDS, "(#on-a-gpu)", "(#without-the-entry-script)",
                 "nothing beside the link tells of")


if __name__ == "__main__":
    unittest.main()
