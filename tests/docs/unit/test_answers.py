"""answers.py: what an exercise shows beside the recipe it changes."""

import unittest

from support import RUN, BookCase, toy_record

from fusebook_docs import answers, prose, samples
from fusebook_docs.errors import BookError


def sample(change=None):
    record = toy_record()
    record["steps"][1]["text"] = "".join(
        f"line {n}  // @{{here}}\n" for n in range(60))
    if change:
        change(record)
    return samples.from_record(record, "record", source_sha256="0")


class Steps(unittest.TestCase):
    def test_only_text_that_is_another(self):
        def change(record):
            record["steps"][1]["text"] += "more\n"
            record["values"]["eager_us"].update(value=7.0, shown="7.000 us")

        found = answers.changed(sample(change), sample())
        self.assertEqual([step.title for step in found], ["Model setup"])

    def test_timings_that_moved(self):
        def change(value):
            return lambda r: r["values"]["eager_us"].update(
                value=value, shown=f"{value} us")

        for value in (747.2 * 1.2, 747.2 / 1.2):
            self.assertEqual(answers.timings(sample(change(value)), sample()),
                             [])
        for value in (8000.0, 8.0):
            answer = sample(change(value))
            self.assertEqual(answers.timings(answer, sample()), [
                ("eager_us", "747.2 us", f"{value} us")])
            told = [step for step in answer.steps if step.title == RUN]
            self.assertEqual(answers.timings(answer, sample(), told), [])

    def test_has_timings(self):
        whole = sample()
        self.assertTrue(answers.has_timings(whole, []))
        told = [step for step in whole.steps if step.title == RUN]
        self.assertFalse(answers.has_timings(whole, told))


    def test_has_others(self):
        def varying(shown):
            return lambda record: record["values"]["eager_us"].update(
                kind="varying", low=0.0, high=1e9, unit="", value=float(shown),
                shown=shown)

        page, whole = sample(varying("7.5")), sample(varying("8.5"))
        self.assertTrue(answers.has_others(whole, page, []))
        self.assertFalse(answers.has_others(page, page, []))
        told = [step for step in whole.steps if step.title == RUN]
        self.assertFalse(answers.has_others(whole, page, told))


class Difference(unittest.TestCase):
    def difference(self, change, title="Model setup"):
        return answers.difference(sample(change), sample(), title)

    def test_a_short_output_is_shown_whole(self):
        self.assertIsNone(self.difference(None, RUN))

    def test_lines_around_a_change(self):
        def change(record):
            text = record["steps"][1]["text"]
            record["steps"][1]["text"] = text.replace(
                "line 30 ", "line thirty").replace("line 3 ", "line  3    ")

        place = "recipes/toy_optimizer.cpp:45"
        self.assertEqual(self.difference(change).split("\n"), [
            f" line 29  // {place}", f"-line 30  // {place}",
            f"+line thirty // {place}", f" line 31  // {place}"])

    def test_hunks(self):
        def change(record):
            text = record["steps"][1]["text"]
            record["steps"][1]["text"] = text.replace(
                "line 3 ", "x").replace("line 50 ", "y")

        self.assertEqual(self.difference(change).split("\n").count("@@"), 1)


class Words(BookCase):
    def said(self, text):
        path = self.book.answer_path("toy_optimizer", "amsgrad")
        path.write_text(text)
        return prose.answer(self.book, "toy_optimizer", "amsgrad")

    def test_one_to_three_sentences(self):
        self.assertEqual(self.said("No: ``a. b.`` is\nit.\n"),
                         ["No: ``a. b.`` is", "it."])
        self.said("Yes. It is 0.5 :value:`a. b. c <x. y.>`. It is!\n")
        for text in ("", "no end", "A. B. C. D."):
            with self.subTest(text), self.assertRaisesRegex(
                    BookError, "amsgrad.rst:1: .*one to three sentences"):
                self.said(text)

    def test_missing(self):
        self.book.answer_path("toy_optimizer", "amsgrad").unlink()
        with self.assertRaisesRegex(BookError, "missing answer"):
            prose.answer(self.book, "toy_optimizer", "amsgrad")


if __name__ == "__main__":
    unittest.main()
