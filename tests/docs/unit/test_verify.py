"""`verify` and `capture`: what is red, and what is left alone."""

import json
import os
import unittest
from dataclasses import replace
from unittest import mock

from support import (RUN, BookCase, amsgrad_record, toy_record,
                     write_program)

from fusebook_docs import currency, samples

RECIPE = "toy_optimizer"


class VerifyCase(BookCase):
    def setUp(self):
        super().setUp()
        self.capture()

    def verify(self, record=None, **program):
        return self.run_on("verify", record or toy_record(), **program)

    def red(self, record, *words, **program):
        code, out = self.verify(record, **program)
        self.assertEqual(code, 1, out)
        for word in (RECIPE, *words):
            self.assertIn(word, out)
        return out


class Verify(VerifyCase):
    def test_green(self):
        code, out = self.verify()
        self.assertEqual(code, 0, out)

    def test_green_when_only_what_varies_moved(self):
        record = toy_record()
        record["values"]["eager_us"].update(value=1.5, shown="1.500 us")
        record["values"]["ratio"].update(value=9.5, shown="9.5x")
        record["values"]["cpu_name"].update(value="Other", shown="Other")
        record["provenance"]["date"] = "2027-01-01"
        code, out = self.verify(record)
        self.assertEqual(code, 0, out)

    def test_changed_number_in_the_sample(self):
        path = self.book.sample_paths("cpu", RECIPE)[0]
        path.write_text(path.read_text().replace("launches: 5",
                                                 "launches: 6"))
        self.red(toy_record(), f"step {RUN!r}", "-launches: 6", "+launches: 5",
                 "docs/samples/cpu/toy_optimizer.txt",
                 "./fusebook capture toy_optimizer")

    def test_changed_output(self):
        record = toy_record()
        record["steps"][3]["text"] = "not so quiet\n"
        self.red(record, "step 'A quiet step'", "+not so quiet")

    def test_missing_final_newline(self):
        record = toy_record()
        record["steps"][1]["text"] = record["steps"][1]["text"][:-1]
        self.red(record, "step 'Model setup'")

    def test_text_before_the_first_step(self):
        record = toy_record()
        record["steps"][0]["text"] = "hello\n"
        self.red(record, "before the first step", "+hello")

    def test_other_kernels(self):
        """Their text is what a GPU would run: nothing printed shows it."""
        for kernels, words in ((["00aa", "22cc"], "1 new, 1 gone, 1 unchanged"),
                               (["00aa"], "0 new, 1 gone, 1 unchanged"),
                               (["00aa", "11bb", "22cc"], "1 new, 0 gone")):
            record = toy_record()
            record["kernels"] = kernels
            self.red(record, "different kernels", words,
                     "./fusebook capture toy_optimizer")
        record["kernels"] = ["11bb", "00aa"]
        self.assertEqual(self.verify(record)[0], 0)

    def test_kernels_of_a_gpu(self):
        """Those of the CPU's sample must be among them."""
        for kernels, status, words in (
                (["00aa", "11bb"], 0, "the kernels of the CPU's sample, 2"),
                (["00aa", "11bb", "22cc"], 0, "2 of them"),
                (["00aa", "22cc"], 1, "1 of the 2 kernels"),
                ([], 1, "2 of the 2 kernels")):
            record = toy_record("cuda-sim")
            record["kernels"] = kernels
            code, out = self.run_on("kernels", record)
            self.assertEqual(code, status, out)
            self.assertIn(words, out)
            self.assertIn("toy_optimizer (cuda-sim)", out)
        record["kernels"] = ["00aa", "11bb"]
        record["steps"][1]["title"] = "Setup"
        self.assertEqual(self.run_on("kernels", record)[0], 1)

    def test_kernels_are_looked_at_on_a_small_model(self):
        for options, words in (({"layers": 10, "width": 64, "seed": 1},
                                "--layers 2 --width 8"), ({"seed": 1}, "")):
            page = samples.load(self.book, "cpu", RECIPE)
            samples.store(self.book, replace(page, options=options))
            program = write_program(self.root / "p", toy_record("cuda-sim"))
            program.write_text(program.read_text().replace(
                "import json", f"import sys\nassert sys.argv[5:] == "
                f"{words.split()!r}, sys.argv\nimport json", 1))
            code, out = self.command("kernels", "--program", program,
                                     "--recipe", RECIPE)
            self.assertEqual(code, 0, out)

    def test_skipped_step(self):
        record = toy_record()
        del record["steps"][1]
        self.red(record, "step 'Model setup'")

    def test_renamed_step(self):
        record = toy_record()
        record["steps"][1]["title"] = "Setup"
        self.red(record, "step 'Model setup'", "step 'Setup'")

    def test_steps_in_another_order(self):
        record = toy_record()
        record["steps"][1:3] = record["steps"][2:0:-1]
        self.red(record, "order", f"step {RUN!r}")

    def test_source_and_program_disagree(self):
        path = self.book.recipe_path(RECIPE)
        path.write_text(path.read_text().replace('step("Model setup")',
                                                 'step("Models")'))
        self.red(toy_record(), "its source", "'Models'", "'Model setup'")

    def test_program_that_throws(self):
        self.red(toy_record(), "exit code 3", f"in step {RUN!r}",
                 "lists of unequal length", stop=3, exit_code=3,
                 stderr="error: lists of unequal length\n")

    def test_program_that_throws_at_once(self):
        self.red(toy_record(), "exit code 2", "before its first step", stop=0,
                 exit_code=2)

    def test_program_that_hangs(self):
        path = self.root / "program"
        code, out = self.run_on("verify", toy_record(), "--timeout", "0.5",
                                sleep=60)
        self.assertEqual(code, 1)
        self.assertIn("still running after 0.5 s", out)
        self.assertTrue(path.exists())

    def test_program_without_record(self):
        self.red(toy_record(), "no record", write=False)

    def test_no_program(self):
        code, out = self.command("verify", "--program", self.root / "none",
                                 "--recipe", RECIPE)
        self.assertEqual(code, 1)
        self.assertIn("build it first", out)

    def test_no_sample(self):
        code, out = self.run_on("verify", toy_record("cuda"), "--device",
                                "cuda")
        self.assertEqual(code, 1)
        self.assertIn("./fusebook capture toy_optimizer --device cuda", out)

    def test_sample_of_a_gpu(self):
        """It is kept under the GPU's own name, with its driver."""
        record = toy_record("cuda:0")
        code, out = self.run_on(
            "capture", record, "--device", "cuda", "--as", "h200",
            "--driver", "driver 1.2", "--samples", self.root / "else",
            "--option=--layers", "--option=2", any_device=True)
        self.assertEqual(code, 0, out)
        self.assertEqual(self.book.devices(RECIPE), ["cpu"])
        book = replace(self.book, kept_samples=self.root / "else")
        sample = samples.load(book, "h200", RECIPE)
        self.assertEqual(sample.device, "h200")
        self.assertEqual(sample.provenance["driver"], "driver 1.2")
        self.assertEqual(sample.gpu_code_sha256,
                         currency.gpu_code(self.book))
        self.assertEqual(sample.kernels, ("00aa", "11bb"))
        cpu = samples.load(self.book, "cpu", RECIPE)
        self.assertIsNone(cpu.gpu_code_sha256)
        self.red(record, "device 'cuda:0'", any_device=True)

    def test_record_of_something_else(self):
        record = toy_record()
        record["recipe"] = "other"
        self.red(record, "'other'")
        self.red(toy_record("cuda"), "device 'cuda'", any_device=True)

    def test_unknown_recipe(self):
        code, out = self.command("verify", "--program", "x", "--recipe",
                                 "nothing_such")
        self.assertEqual(code, 1)
        self.assertIn("nothing_such", out)


class Values(VerifyCase):
    """Values are checked one by one; each problem names its step."""

    def changed(self, name, **fields):
        record = toy_record()
        record["values"][name].update(fields)
        return record

    def test_measured(self):
        for value, words in ((float("nan"), "finite"), (0, "positive"),
                             (float("inf"), "finite"), (-1.0, "positive")):
            with self.subTest(value):
                self.red(self.changed("eager_us", value=value), words,
                         "eager_us", f"step {RUN!r}")

    def test_measured_null(self):
        self.red(self.changed("eager_us", value=None), "eager_us", "number")

    def test_unit(self):
        self.red(self.changed("eager_us", unit="ms"), "unit", "'ms'", "'us'")

    def test_options(self):
        record = toy_record()
        record["options"]["layers"] = 99
        self.red(record, "ran with the options layers 99, width 64, but the page with "
                 "layers 10, width 64")

    def test_bounds(self):
        self.red(self.changed("ratio", value=10.5), "outside", f"step {RUN!r}")
        self.red(self.changed("ratio", value=0.5), "outside")
        self.red(self.changed("ratio", high=11.0), "high", "11.0", "10.0")

    def test_place(self):
        self.red(self.changed("here", value="recipes/toy_optimizer.cpp:46"),
                 ":46", ":45", f"step {RUN!r}")

    def test_value_gone_or_new(self):
        record = toy_record()
        record["values"]["new_us"] = record["values"]["eager_us"]
        self.red(record, "'new_us' is in this run, but not on")
        record = toy_record()
        text = record["steps"][2]["text"].replace("@{eager_us}", "7 us")
        record["steps"][2]["text"] = text
        del record["values"]["eager_us"]
        self.red(record, "'eager_us' is on the page", "+eager:    7 us")

    def test_kind(self):
        record = self.changed("eager_us", kind="varying", low=0.0, high=1e9)
        self.red(record, "kind", "'varying'", "'measured'")


class Capture(BookCase):
    def test_what_a_page_shows_was_measured(self):
        with mock.patch.dict(os.environ, FUSEBOOK_QUICK="1"):
            self.capture()
            self.assertNotIn("FUSEBOOK_QUICK", os.environ)

    def test_untouched_when_only_timings_moved(self):
        self.capture()
        before = self.files()
        record = toy_record()
        record["values"]["eager_us"].update(value=9.0, shown="9.000 us")
        record["provenance"]["device"] = "Another CPU"
        self.assertIn("only timings changed", self.capture(record))
        self.assertEqual(self.files(), before)
        self.capture(record, "--fresh")
        self.assertNotEqual(self.files(), before)

    def test_written_whole_when_the_kernels_moved(self):
        """Times belong to the kernels that they were taken of."""
        self.capture()
        record = toy_record()
        record["kernels"] = ["22cc"]
        record["values"]["eager_us"].update(value=9.0, shown="9.000 us")
        self.assertIn("captured in", self.capture(record))
        sample = samples.load(self.book, "cpu", RECIPE)
        self.assertEqual(sample.kernels, ("22cc",))
        self.assertEqual(sample.values["eager_us"].value, 9.0)

    def test_written_when_the_text_moved(self):
        self.capture()
        self.capture(amsgrad_record())
        page = samples.load(self.book, "cpu", RECIPE)
        self.assertIn("arrays: 5", page.text_of(RUN))

    def test_written_when_the_program_changed(self):
        self.capture()
        path = self.book.recipe_path(RECIPE)
        path.write_text(path.read_text() + "static int more;\n")
        code, out = self.run_on("verify", toy_record())
        self.assertEqual(code, 1)
        self.assertIn("the code has changed since", out)
        self.assertIn("captured in", self.capture())
        self.assertNotIn("changed", self.run_on("verify", toy_record())[1])

    def test_untouched_when_prose_changed(self):
        self.capture()
        before = self.files()
        path = self.book.recipe_path(RECIPE)
        path.write_text(path.read_text().replace("A stack of", "A pile of"))
        self.capture()
        self.assertEqual(self.files(), before)

    def test_places_move_alone(self):
        self.capture()
        record = toy_record()
        place = "recipes/toy_optimizer.cpp:99"
        record["values"]["here"].update(value=place, shown=place)
        record["values"]["eager_us"].update(value=9.0, shown="9.000 us")
        self.assertIn("only source lines changed", self.capture(record))
        values = samples.load(self.book, "cpu", RECIPE).values
        self.assertEqual(values["here"].value, place)
        self.assertEqual(values["eager_us"].value, 747.2)

    def test_failed_run_writes_nothing(self):
        wrong = toy_record()
        wrong["values"]["eager_us"]["value"] = 0
        renamed = toy_record()
        renamed["steps"][1]["title"] = "Setup"
        for record, program in ((toy_record(), {"exit_code": 1}),
                                (toy_record(), {"write": False}),
                                (wrong, {}), (renamed, {})):
            code, out = self.run_on("capture", record, **program)
            self.assertEqual(code, 1, out)
            self.assertEqual(self.files(), {})

    def test_damaged_sample_is_replaced(self):
        self.capture()
        path = self.book.sample_paths("cpu", RECIPE)[1]
        path.write_text("{")
        self.capture()
        json.loads(path.read_text())

    def test_exercise(self):
        out = self.capture(amsgrad_record(), exercise="amsgrad")
        self.assertIn("toy_optimizer.amsgrad.txt", out)
        code, out = self.run_on("verify", amsgrad_record(),
                                exercise="amsgrad")
        self.assertEqual(code, 0, out)
        code, out = self.run_on("verify", toy_record(), exercise="amsgrad")
        self.assertEqual(code, 1)
        self.assertIn("exercise amsgrad", out)


if __name__ == "__main__":
    unittest.main()
