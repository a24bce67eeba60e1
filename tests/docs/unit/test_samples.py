"""samples.py: the formats, there and back, and damaged."""

import json
import random
import unittest

from support import RUN, BookCase, toy_record

from fusebook_docs import samples
from fusebook_docs.errors import BookError
from fusebook_docs.samples import Step


def sample_of(record):
    return samples.from_record(record, "record", source_sha256="1" * 64)


class Text(unittest.TestCase):
    def there_and_back(self, *steps):
        text = samples.format_text(steps)
        self.assertEqual(samples.parse_text(text, "s.txt"), steps, text)

    def test_awkward_texts(self):
        for text in ("", "\n", "a", "a\n", "\n\n", "== a\n", "\\", "\\\n",
                     "\\== a", "\\ no newline at the end\n", "a\n== b\n\\c",
                     "\u2028\x0b\n", "===\n", " == a\n"):
            with self.subTest(text):
                self.there_and_back(Step("One", text), Step("Two", text))
                if text:
                    self.there_and_back(Step("", text), Step("Two", text))

    def test_random_texts(self):
        seed = random.randrange(2**32)
        dice = random.Random(seed)
        with self.subTest(seed=seed):
            for _ in range(500):
                text = "".join(dice.choices("= \\\nab", k=dice.randrange(12)))
                self.there_and_back(Step("One", text), Step("Two", text[::-1]))

    def test_cut_off(self):
        with self.assertRaisesRegex(BookError, "s.txt: damaged"):
            samples.parse_text("== One\nab", "s.txt")
        with self.assertRaisesRegex(BookError, "s.txt:2: damaged"):
            samples.parse_text("== One\n\\ab\n", "s.txt")


class Placeholders(unittest.TestCase):
    def test_pieces(self):
        self.assertEqual(samples.pieces("a @{b} @@{c} @ {@{d_us}"),
                         ["a ", ("b",), " @{c} @ {", ("d_us",)])

    def test_broken(self):
        for text in ("@{", "@{}", "@{a b}", "@{1}"):
            with self.subTest(text), self.assertRaisesRegex(BookError,
                                                            "placeholder"):
                samples.pieces(text)


class Record(unittest.TestCase):
    def refused(self, change, *words):
        record = toy_record()
        change(record)
        with self.assertRaises(BookError) as caught:
            sample_of(record)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_every_field_is_needed(self):
        for name in ("format", "recipe", "device", "options", "provenance",
                     "steps", "values", "kernels"):
            with self.subTest(name):
                self.refused(lambda r, n=name: r.pop(n), repr(name))
                self.refused(lambda r, n=name: r.update({n: None}), repr(name))

    def test_other_format(self):
        self.refused(lambda r: r.update(format=2), "format 2")

    def test_provenance(self):
        self.refused(lambda r: r["provenance"].pop("date"), "date")
        for date in ("yesterday", "2026-13-01", "21.11.2026"):
            self.refused(lambda r, d=date: r["provenance"].update(date=d), repr(date))

    def test_steps(self):
        self.refused(lambda r: r["steps"].append({"title": "x"}), "text")
        self.refused(lambda r: r["steps"].append(r["steps"][1]), "twice")
        self.refused(lambda r: r["steps"].append({"title": "", "text": "a"}),
                     "without a title")

    def test_kernels(self):
        for kernels in ([1], [None], [""]):
            self.refused(lambda r, k=kernels: r.update(kernels=k), "hashes")

    def test_placeholder_without_value(self):
        self.refused(lambda r: r["values"].pop("ratio"), RUN, "@{ratio}")

    def test_values(self):
        for name, field in (("eager_us", "unit"), ("eager_us", "value"),
                            ("ratio", "low"), ("here", "value"),
                            ("cpu_name", "shown")):
            self.refused(lambda r, n=name, f=field: r["values"][n].pop(f),
                         name, field)
            self.refused(lambda r, n=name, f=field:
                         r["values"][n].update({f: []}), name, field)
        self.refused(lambda r: r["values"]["ratio"].update(kind="odd"), "kind")


class Stored(BookCase):
    def setUp(self):
        super().setUp()
        self.sample = sample_of(toy_record())
        self.text, self.json = samples.store(self.book, self.sample)

    def load(self):
        return samples.load(self.book, "cpu", "toy_optimizer")

    def refused(self, pattern):
        with self.assertRaisesRegex(BookError, pattern):
            self.load()

    def test_there_and_back(self):
        self.assertEqual(self.load(), self.sample)
        self.assertEqual({p.name for p in self.text.parent.iterdir()},
                         {"toy_optimizer.txt", "toy_optimizer.json"})

    def test_text_is_for_people(self):
        self.assertIn(f"== {RUN}\nlaunches: 5\neager:    @{{eager_us}}\n",
                      self.text.read_text())

    def test_damaged(self):
        for path in (self.text, self.json):
            good = path.read_bytes()
            path.write_bytes(good[: len(good) // 2])
            self.refused(f"docs/samples/cpu/{path.name}")
            path.write_bytes(b"\xff\xfe")
            self.refused("not UTF-8")
            path.write_bytes(good)
        self.assertEqual(self.load(), self.sample)

    def test_missing_says_how_to_make_it(self):
        for path in (self.text, self.json):
            good = path.read_bytes()
            path.unlink()
            self.refused(r"./fusebook capture toy_optimizer")
            path.write_bytes(good)

    def test_of_another_recipe(self):
        raw = json.loads(self.json.read_text())
        self.json.write_text(json.dumps({**raw, "recipe": "other"}))
        self.refused("other")

    def test_names_cannot_leave_the_folder(self):
        for name in ("../x", "a/b", "", "A", "a.b"):
            with self.subTest(name), self.assertRaises(BookError):
                self.book.recipe_path(name)


if __name__ == "__main__":
    unittest.main()
