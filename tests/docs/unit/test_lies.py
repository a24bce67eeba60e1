"""Lies planted in a book that is true: each is told by the check for it.

Every lie is an edit of one file. What it is called, the file and the line (or
step) must be in the message. Lies about what only the real book has, its code,
commands, versions and links, are planted in test_statements.py, test_code_names.py,
test_claims.py and test_equations.py; those of the Chinese in test_translation.py.
"""

import re
import unittest

from support import RUN, BookCase, amsgrad_record, store_gpu, toy_record

from fusebook_docs import checking, patches, prose, samples
from fusebook_docs.errors import BookError

RECIPE = "toy_optimizer"
TEXT = f"docs/samples/cpu/{RECIPE}.txt"
JSON = f"docs/samples/cpu/{RECIPE}.json"
CPP = f"recipes/{RECIPE}.cpp"


def true_record(device="cpu"):
    record = toy_record(device)
    record["steps"][1]["text"] += "loads: params, grads\nseed: 7\n"
    record["values"]["base_us"] = {"kind": "measured", "value": 1494.4,
                                   "unit": "us", "shown": "1494 us"}
    record["values"]["speedup"] = {
        "kind": "ratio", "value": 1494.4 / 747.2, "unit": "x", "low": 0.97,
        "above": "base_us", "below": "eager_us", "shown": "2.00x"}
    record["steps"][2]["text"] += "speedup: @{speedup} of @{base_us}\n"
    return record


class Lies(BookCase):
    def setUp(self):
        super().setUp()
        self.capture(true_record())
        self.run_on("capture", amsgrad_record(), exercise="amsgrad")
        store_gpu(self.book, record=true_record("cuda"))
        page = self.root / "docs" / "background" / "page.rst"
        page.parent.mkdir()
        page.write_text(
            "A page\n======\n\nIt was :value:`five <launches: # @ Compile *and* "
            "run: \"both\" @ toy_optimizer>` launches.\n")
        (self.book.answer_path(RECIPE, "amsgrad")).write_text(
            "It loads :value:`five <arrays: #>` arrays.\n")
        self.assertEqual(self.messages(), [])

    def messages(self):
        """What limits, verify and the build of the docs say."""
        try:
            return [str(problem) for problem in self.problems()]
        except BookError as error:
            return [str(error)]

    def problems(self):
        source = checking.source_of(self.book, RECIPE)
        texts = [*prose.of_recipe(self.book, RECIPE, source),
                 *prose.of_pages(self.book)]
        for text in texts:
            yield from prose.problems(self.book, text)
        found = {device: samples.load(self.book, device, RECIPE)
                 for device in self.book.devices(RECIPE)}
        yield from checking.disagreements(self.book, found, source)
        yield from checking.titles("the recipe", source.step_titles,
                                   "its sample", found["cpu"].titles)
        patches.patched(self.book, RECIPE, "amsgrad")

    def lie(self, name, old, new, *words):
        """Edits a file, and looks for `words` in what is said."""
        path = self.root / name
        good = path.read_text()
        self.assertIn(old, good)
        path.write_text(good.replace(old, new, 1))
        line = good[:good.index(old)].count("\n") + 1
        found = " | ".join(self.messages())
        path.write_text(good)
        self.assertNotEqual(found, "", "nobody noticed")
        for word in (name, *words):
            self.assertIn(word.replace("LINE", f":{line}: "), found)
        self.assertEqual(self.messages(), [])

    # ---- in the prose -------------------------------------------------------

    def test_a_number_in_a_recipe(self):
        self.lie(CPP, "five <i = 0", "six <i = 0", "LINE", "says 'six'")
        self.lie(CPP, "five <launches", "six <launches", "says 'six'")
        self.lie(CPP, "We call it a few times", "We call it six times", "LINE",
                 "'six' is not quoted")

    def test_a_number_on_a_page(self):
        name = "docs/background/page.rst"
        self.lie(name, "five <", "three <", "LINE", "says 'three'")
        self.lie(name, "A page", "Three pages", "LINE", "'Three'")

    def test_a_number_in_an_answer(self):
        name = f"docs/exercises/{RECIPE}/amsgrad.rst"
        self.lie(name, "five <", "two <", "LINE", "says 'two'")
        self.lie(name, "It loads", "It loads 28 bytes in", "LINE", "'28'")

    def test_a_number_in_an_exercise(self):
        self.lie(CPP, "How many arrays move now?", "Which 28 arrays move now?",
                 "LINE", "'28'")

    def test_an_alt_text_and_a_caption(self):
        plot = "// .. recipe-plot:: Model setup\n//    :alt: {}\n//\n//    {}\n//\n"
        old = "// A stack of layers."
        for alt, caption in (("Six curves.", "A caption."),
                             ("A curve.", "Above: 28 bytes.")):
            new = plot.format(alt, caption).replace("\n//", "\n  //")
            self.lie(CPP, old, f"{new}  {old}", "is not quoted")

    def test_output_typed_into_the_prose(self):
        old = "// A stack of layers."
        for typed in ("// .. code-block:: text\n  //\n  //    launches: 5",
                      "// It prints::\n  //\n  //    launches: 5"):
            self.lie(CPP, old, f"{typed}\n  //\n  {old}", "LINE",
                     "recipe-excerpt")
        self.lie(CPP, old, f"// ``2.00x``\n  {old}", "LINE", "'2.00x'")

    def test_a_value_that_there_is_not(self):
        self.lie(CPP, "`eager_us`", "`compiled_us`", "no value 'compiled_us'")

    # ---- in a sample --------------------------------------------------------

    def test_text(self):
        path = self.root / TEXT
        path.write_text(path.read_text().replace("seed: 7", "seed: 8"))
        found, = self.messages()
        self.assertRegex(found, rf"{JSON}:\d+: was edited")

    def test_a_value(self):
        self.lie(JSON, '"value": 747.2', '"value": 74.72', "'speedup'",
                 "'base_us' / 'eager_us' is 20.0")
        self.lie(JSON, '"value": 2.0,', '"value": 20.0,', "'speedup'", "is 20.0")
        self.lie(JSON, '"value": 2.5', '"value": 3.5', "shows '2.5x'")

    def test_what_is_shown(self):
        self.lie(JSON, '"shown": "2.00x"', '"shown": "27.7x"', "'speedup'",
                 "shows '27.7x'")

    def test_value_and_shown_together(self):
        self.lie(JSON, '"value": 2.5,\n      "low": 1.0,\n      "high": 10.0,\n'
                 '      "shown": "2.5x"', '"value": 3.5,\n      "low": 1.0,\n'
                 '      "high": 10.0,\n      "shown": "3.5x"', "was edited")

    def test_provenance(self):
        self.lie(JSON, "Toy CPU 9", "Toy CPU 10", "was edited")
        self.lie(JSON, "2026-11-21", "2027-11-21", "was edited")
        self.lie(JSON, '"threads": 2', '"threads": 64', "was edited")

    def test_bounds_and_kernels(self):
        self.lie(JSON, '"high": 10.0', '"high": 99.0', "was edited")
        self.lie(JSON, '"00aa"', '"00ab"', "was edited")

    def test_swapped_steps(self):
        path = self.root / TEXT
        first, second, third = re.split(r"^== ", path.read_text(),
                                        flags=re.M)[1:]
        path.write_text(f"== {second}== {first}== {third}")
        self.assertIn("was edited", self.messages()[0])

    def test_faster_than_the_limit(self):
        record = true_record()
        record["values"]["base_us"].update(value=672.48, shown="672.5 us")
        record["values"]["speedup"].update(value=672.48 / 747.2, shown="0.900x")
        code, out = self.run_on("capture", record)
        self.assertEqual(code, 1)
        self.assertIn("'speedup' is 0.9, below the lowest possible value 0.97",
                      out)
        self.assertEqual(self.run_on("verify", record)[0], 0)

    def test_an_answer_of_another_machine(self):
        """Each has its own digest; side by side their timings mean nothing."""
        own = samples.load(self.book, "cpu", RECIPE)
        for name, value in (("device", "Toy CPU 10"), ("threads", 64),
                            ("compiler", "g++ 15.1.0")):
            record = amsgrad_record()
            record["provenance"][name] = value
            answer = samples.from_record(record, "record", exercise="amsgrad",
                                         source_sha256="0")
            found, = map(str, checking.of_another_machine(self.book, own, answer))
            for word in (f"docs/samples/cpu/{RECIPE}.amsgrad.json:1: {name!r} is "
                         f"{value!r}", f"./fusebook capture {RECIPE} --fresh"):
                self.assertIn(word, found)

    def test_verify_tells_it_too(self):
        path = self.root / JSON
        path.write_text(path.read_text().replace("Toy CPU 9", "Toy CPU 10"))
        code, out = self.run_on("verify", true_record())
        self.assertEqual(code, 1)
        self.assertIn("was edited", out)

    # ---- in the program -----------------------------------------------------

    def test_a_stale_seed(self):
        self.lie(CPP, "Generator gen(0)", "Generator gen(1)",
                 "has changed since its output was captured",
                 f"./fusebook capture {RECIPE}")

    def test_a_renamed_step(self):
        path = self.root / CPP
        path.write_text(path.read_text().replace('"A quiet step"', '"Quiet"'))
        self.assertIn("Quiet", " | ".join(self.messages()))

    def test_a_patch_that_does_not_apply(self):
        path = self.book.patch_path(RECIPE, "amsgrad")
        path.write_text(path.read_text().replace("-  Adam opt(", "-  Adam o("))
        self.assertRegex(self.messages()[0],
                         r"amsgrad.patch:\d+: no longer applies")

    # ---- of another device --------------------------------------------------

    def test_a_forged_device(self):
        """Copied from the CPU's and edited: it has the digest of another."""
        folder = self.book.samples / "h999"
        folder.mkdir()
        for path in self.book.sample_paths("cpu", RECIPE):
            text = path.read_text().replace('"cpu"', '"h999"')
            (folder / path.name).write_text(text.replace("2.00x", "999x"))
        found = " | ".join(self.messages())
        self.assertRegex(found, rf"docs/samples/h999/{RECIPE}.json:\d+: ")

    def test_a_device_that_counts_otherwise(self):
        """The digest is right, the launches are not the CPU's."""
        record = true_record("cuda")
        record["steps"][2]["text"] = record["steps"][2]["text"].replace(
            "launches: 5", "launches: 1")
        store_gpu(self.book, record=record)
        found, = self.messages()
        for word in (f"docs/samples/cuda/{RECIPE}.txt", RUN, "launches: 1",
                     "by device"):
            self.assertIn(word, found)
        path = self.root / CPP
        text = path.read_text()
        path.write_text(text.replace('both\\"");', 'both\\"");  // by device'))
        self.assertNotEqual(path.read_text(), text)
        self.assertEqual(self.messages(), [])


if __name__ == "__main__":
    unittest.main()
