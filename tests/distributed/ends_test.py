"""Ranks that end early: the others end, too, in seconds and with one line of ours.

    python3 ends_test.py PROGRAM

PROGRAM NAME does as NAME in ends.cpp says.
"""

import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

PROGRAM = None
LAUNCH = pathlib.Path(__file__).resolve().parents[1] / "launch.sh"


def run(name, ranks=4):
    """Exit code, lines of ours, and all that was printed."""
    done = subprocess.run(
        ["sh", LAUNCH, "ranks", str(ranks), PROGRAM, name], text=True,
        capture_output=True, timeout=60, check=False)
    text = done.stdout + done.stderr
    return done.returncode, re.findall(r"^fusebook: .*$", text, re.M), text


class Ends(unittest.TestCase):
    def check(self, name, *wanted):
        code, ours, text = run(name)
        self.assertNotEqual(code, 0, text)
        self.assertEqual(len(ours), 1, text)
        for each in wanted:
            self.assertIn(each, ours[0])

    def test_a_run_that_ends_well(self):
        code, ours, text = run("well")
        self.assertEqual((code, ours), (0, []), text)
        self.assertEqual(text.count("done"), 4)

    def test_an_exception(self):
        self.check("throws", "rank 2 of 4", "no more data")

    def test_an_exception_that_the_program_catches(self):
        self.check("catches", "rank 2 has left the run", "in add_gradients at ")

    def test_one_that_returns_early(self):
        self.check("returns", "rank 2 has left the run", "in add_gradients at ")

    def test_one_that_calls_exit(self):
        self.check("exits", "rank 2 has left the run")

    def test_ranks_that_differ(self):
        self.check("differs", "rank 2 has", "max_norm = 2")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
