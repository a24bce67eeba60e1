"""Lists that stand for all there is."""

import unittest

from planted import BOOK, Planted
from support import ROOT

from fusebook_docs import listed

COMMANDS = "docs/commands.md"


class Lies(Planted):
    def test_one_is_left_out(self):
        for old, new, words, place in (
                ("`hardening` and `bench`", "`bench`",
                 "lacks hardening: name all that the labels of tests has", None),
                ("`output_code`, `graph`, `all`", "`output_code`, `all`", "lacks graph",
                 None),
                ("`bench`, `peers`, `sanitizer`", "`bench`, `sanitizer`",
                 "lacks peers: name all that tests/gpu_capture/__main__.py has", None),
                ("`asan`, `tsan`)", "`asan`)", "lacks tsan", "(`release`,")):
            self.lie(listed, COMMANDS, old, new, words, place=place)
        self.lie(listed, "README.md", "Ninja, Eigen, fmt", "Ninja, fmt", "lacks eigen",
                 place="missing: `run` needs")
        self.lie(listed, "fusebook", "debug, asan or tsan", "debug or asan",
                 "lacks tsan")

    def test_one_that_there_is_not(self):
        self.lie(listed, COMMANDS, "`graph`, `all`", "`graph`, `kernels`, `all`",
                 "has kernels")
        self.lie(listed, "README.md", "CMake, Ninja,", "CMake, Boost, Ninja,",
                 "has boost")

    def test_one_that_is_called_something_else(self):
        self.lie(listed, COMMANDS, "`recipe`, `docs`, `lint`", "`recipes`, `docs`, `lint`",
                 "lacks recipe", "has recipes")

    def test_a_list_that_is_gone(self):
        self.lie(listed, COMMANDS, "channels to log, comma-separated:",
                 "channels to log:", "stands there 0 times",
                 place="# Commands, devices")

    def test_the_labels_are_those_of_the_tests(self):
        text = (ROOT / COMMANDS).read_text()
        self.assertEqual(list(listed.in_markdown(BOOK, COMMANDS, text)), [])


if __name__ == "__main__":
    unittest.main()
