"""quotes.py: numbers in prose, compared with samples and with code."""

import unittest

from support import RUN, BookCase, amsgrad_record, toy_record

from fusebook_docs import quotes
from fusebook_docs.errors import BookError
from fusebook_docs.quotes import Home

TOY = Home("toy_optimizer", RUN)


class QuoteCase(BookCase):
    def setUp(self):
        super().setUp()
        record = toy_record()
        record["steps"][1]["text"] += (
            "launches: 70, 754 MB\nloads: params, grads, means\n"
            "stores: nothing\nstep  loss\n  20  0.2000\n 120  0.0996\n")
        record["values"]["base_us"] = {"kind": "measured", "value": 1494.4,
                                       "unit": "us", "shown": "1494 us"}
        self.capture(record)
        self.run_on("capture", amsgrad_record(), exercise="amsgrad")

    def shows(self, role, content, text, home=TOY):
        self.assertEqual(quotes.quoted(self.book, role, content, home).text,
                         text)

    def refused(self, role, content, *words, home=TOY):
        with self.assertRaises(BookError) as caught:
            quotes.quoted(self.book, role, content, home)
        for word in words:
            self.assertIn(word, str(caught.exception))


class Value(QuoteCase):
    def test_what_varies_by_its_name(self):
        self.shows("value", "eager_us", "747.2 us")
        quote = quotes.quoted(self.book, "value", "ratio", TOY)
        self.assertEqual((quote.text, quote.kind), ("2.5x", "varying"))
        self.shows("value", "base_us / eager_us", "2.00x")

    def test_what_is_printed(self):
        self.shows("value", "754 MB <launches: 70, # MB>", "754 MB")
        self.shows("value", "launches: 70, # MB", "754")
        self.shows("value", "ten <parameters: #>", "ten")
        self.shows("value", "0.1 <120 #>", "0.1")

    def test_the_step_around_it_comes_first(self):
        self.shows("value", "five <launches: #>", "five")
        self.shows("value", "seventy <launches: # @ Model setup>", "seventy")
        self.shows("value", "seventy\n  <launches: #\n  @ Model setup>",
                   "seventy")
        self.refused("value", "five <launches: #>", "several numbers",
                     "'Model setup'", home=Home("toy_optimizer"))

    def test_lists_are_counted(self):
        self.shows("value", "three <loads: ...>", "three")
        self.shows("value", "no <stores: ...>".replace("no", "zero"), "zero")
        self.refused("value", "four <loads: ...>", "says 'four'", "is 3")

    def test_of_another_sample(self):
        where = "@ toy_optimizer"
        self.shows("value", f"five <launches: # @ {RUN} {where}>", "five",
                   Home())
        self.shows("value", "launches: 5, arrays: # @ toy_optimizer.amsgrad",
                   "5", Home())
        self.shows("value", "arrays: #", "5",
                   Home("toy_optimizer", None, "amsgrad", True))
        self.refused("value", "arrays: #", "does not appear",
                     home=Home("toy_optimizer", None, "amsgrad", False))

    def test_of_another_device(self):
        self.capture(toy_record("cuda"), "--device", "cuda", "--as", "h200")
        self.shows("value", "eager_us @ h200", "747.2 us")

    def test_refused(self):
        self.refused("value", "six <launches: #>", "says 'six'", "it is 5",
                     "docs/samples/cpu/toy_optimizer.txt", RUN)
        self.refused("value", "eager", "no value 'eager'", "eager_us, ratio",
                     "docs/samples/cpu/toy_optimizer.json")
        self.refused("value", "747.2 us <eager_us>", "go stale")
        self.refused("value", "5 <lunches: #>", "'lunches: #' does not appear")
        self.refused("value", "5 <launches: # @ No step>", "no step 'No step'")
        self.refused("value", "5 <#: #>", "one #")
        self.refused("value", "ratio / eager_us", "not a ratio")
        self.refused("value", "eager_us", "which recipe", home=Home())
        self.refused("value", "8 <@ x: #>", "does not appear")
        # A number is whole: not the end or the beginning of a longer one.
        self.refused("value", "7 <launches: #0, 754>", "does not appear")


class Constant(QuoteCase):
    def test_code(self):
        self.shows("constant", "five <i < #; ++i>", "five")
        self.shows("constant", "5 <for (int i = 0; i < #; ++i) { fused_step>",
                   "5")
        self.shows("constant", "10.0", "10.0")

    def test_comments_are_no_code(self):
        path = self.book.recipe_path("toy_optimizer")
        path.write_text(path.read_text() + "// i < 77; ++i\n")
        self.refused("constant", "77", "not in the code")

    def test_the_code_of_an_answer(self):
        path = self.book.patch_path("toy_optimizer", "amsgrad")
        text = path.read_text()
        path.write_text(text.replace("{.amsgrad = true}", "{.lr = 0.25}"))
        for is_answer in (False, True):
            self.shows("constant", "0.25", "0.25",
                       Home("toy_optimizer", None, "amsgrad", is_answer))
        self.refused("constant", "0.25", "not in the code")

    def test_a_file(self):
        path = self.root / "common" / "room" / "policy.h"
        path.parent.mkdir(parents=True)
        path.write_text("enum class Policy { promote,  // one\n specialize };\n"
                        "constexpr int limit = 1'000;  // limit = 9\n")
        for home in (TOY, Home()):
            self.shows("constant", "two <enum class Policy { ... } @ "
                       "common/room/policy.h>", "two", home)
            self.shows("constant", "a thousand <limit = # @ "
                       "common/room/policy.h>", "a thousand", home)
        self.refused("constant", "nine <limit = # @ common/room/policy.h>",
                     "says 'nine'", "it is 1000", "common/room/policy.h")

    def test_refused(self):
        self.refused("constant", "six <i < #; ++i>", "says 'six'", "it is 5",
                     "recipes/toy_optimizer.cpp")
        self.refused("constant", "0.75", "'0.75' is not in the code")
        self.refused("constant", "5", "too common")
        self.refused("constant", "five", "too common")
        self.refused("constant", "5 <j < #>", "does not appear")
        self.refused("constant", "5 <i < #>", "which recipe", home=Home())


if __name__ == "__main__":
    unittest.main()
