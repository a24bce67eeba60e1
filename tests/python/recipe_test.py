"""The harness of recipes in Python: what they print and record, and how they end.

    python recipe_test.py [BUILD]
"""

import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import support  # noqa: F401  first: it finds the package

import fusebook
import numpy as np
from fusebook import recipe

START = f"import sys; sys.path.insert(0, {support.FOLDER!r})\n"
PROGRAM = START + """
import fusebook
import numpy as np
from fusebook.recipe import *

def body():
    step("One")
    print("number ", 2.0, ", ", 0.1, ", ", True, ", @{", 3)
    print_columns("step", "a loss")
    print_row(5, Within(0.25, 0, 1))
    step("Two")
    print(measured("first_us", 12345.678, "us"), " ", measured("second_us", 5, "us"))
    print(ratio("speedup", "first_us", "second_us"))
    print(varying("some", 0.5, 0, 1, "GB"), exact("count", 7), varying_text("cpu", "x"))
    opt = fusebook.SGD([np.ones(3)], lr=0.5)
    opt.step([np.ones(3)])

run_recipe(body)
"""
OUTPUT = """\
== One
number 2, 0.1, true, @{3
step        a loss
   5        0.2500

== Two
12346 us 5.000 us
2469x
0.5 GB7x
"""


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_program(self, text, *words):
        path = self.folder / "a_recipe.py"
        path.write_text(text)
        return subprocess.run([sys.executable, "-B", path, *words], check=False,
                              capture_output=True, text=True)

    def test_what_is_printed_and_recorded(self):
        files = [self.folder / name for name in ("results", "record")]
        done = self.run_program(PROGRAM, "--json", files[0], "--record", files[1],
                                "--threads", "1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, OUTPUT)
        results, record = (json.loads(path.read_text()) for path in files)
        self.assertEqual(results["speedup"], 12345.678 / 5)
        self.assertEqual((results["recipe"], results["count"], results["threads"]),
                         ("a_recipe", 7, 1))
        self.assertEqual([each["title"] for each in record["steps"]], ["One", "Two"])
        self.assertEqual(record["steps"][0]["text"],
                         "number 2, 0.1, true, @@{3\nstep        a loss\n"
                         "   5@{a_loss_5}\n")
        self.assertEqual(record["values"]["a_loss_5"],
                         {"kind": "varying", "value": 0.25, "low": 0, "high": 1,
                          "unit": "", "shown": "        0.2500"})
        self.assertEqual(record["values"]["speedup"]["above"], "first_us")
        self.assertEqual(record["provenance"]["threads"], 1)
        kernel, = record["kernels"]  # of SGD
        self.assertRegex(kernel, "^[0-9a-f]{16}$")

    def test_how_it_ends(self):
        raises = START + ("from fusebook.recipe import *\ndef body():\n"
                          "    step('A title')\n    {}\nrun_recipe(body)\n")
        for text, words, code, said in (
                (PROGRAM, ["--device", "cuda"], 3, "stepped on the CPU"),
                (PROGRAM, ["--thread"], 2, "expected one argument"),
                (PROGRAM, ["--threads", "0"], 2, "from 1 to 1024"),
                (PROGRAM, ["more"], 2, "unrecognized arguments: more"),
                (raises.format("1 / 0"), [], 1,
                 'a_recipe: error: division by zero (in step "A title")'),
                (raises.format("raise KeyboardInterrupt"), [], 130, "")):
            with self.subTest(words=words, said=said):
                done = self.run_program(text, *words)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(said, done.stderr)
                self.assertLessEqual(done.stderr.count("\n"), 1)

    def test_nothing_is_recorded_of_a_run_that_failed(self):
        path = self.folder / "record"
        self.run_program(PROGRAM.replace("opt.step([", "opt.step(["  "1, "),
                         "--record", path)
        self.assertFalse(path.exists())


class Values(unittest.TestCase):
    def test_what_is_refused(self):
        def refused(text, call):
            def body():
                recipe.step("One")
                recipe.measured("us", 1, "us")
                recipe.measured("mb", 1, "MB")
                call()

            with (self.assertRaisesRegex(fusebook.Error, text),
                  contextlib.redirect_stdout(io.StringIO())):
                recipe._current = recipe._Run()
                try:
                    body()
                finally:
                    recipe._current = None

        refused("used twice", lambda: recipe.step("One"))
        refused("used twice", lambda: recipe.measured("us", 2, "us"))
        refused("small letters", lambda: recipe.exact("Us", 2))
        refused("reserved", lambda: recipe.exact("threads", 2))
        refused("finite and positive", lambda: recipe.measured("x", 0, "us"))
        refused("needs measured", lambda: recipe.ratio("x", "us", "none"))
        refused("same unit", lambda: recipe.ratio("x", "us", "mb"))
        refused("from 0 to 1", lambda: recipe.varying("x", np.nan, 0, 1))
        refused("named columns", lambda: recipe.print_row(1, 2))
        refused("end in '@'", lambda: recipe.print("@", recipe.exact("a", 1),
                                                   "@", recipe.varying_text("b", "c")))
        with self.assertRaisesRegex(fusebook.Error, "inside run_recipe"):
            recipe.step("One")


if __name__ == "__main__":
    unittest.main()
