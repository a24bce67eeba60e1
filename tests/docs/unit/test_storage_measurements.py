"""Where trainings ended, by storage, is kept as it is and judged by its seeds."""

import copy
import json
import unittest

from support import ROOT, BookCase

from fusebook_docs import measurements, storage_measurements
from fusebook_docs.book import Book
from fusebook_docs.errors import BookError
from fusebook_docs.storage_measurements import Ended


def toy_storages():
    """What convergence --json would write."""
    losses = {("Adam", "float32"): [2.0, 1.0, 3.0],
              ("Adam", "8-bit states"): [0.5, 1.0, 1.125],
              ("Adam", "bfloat16, split"): [5.0, 3.0, 1.0],
              ("Lion", "float32"): [1.5, 1.25, 1.25],
              ("Lion", "8-bit states"): [1.25, 1.25, 1.5],
              ("Lion", "bfloat16, split"): [1.75, 1.5, 1.5]}
    return copy.deepcopy({
        "device": "Toy CPU 9", "compiler": "g++ 12.2.0", "system": "Debian",
        "date": "2026-11-25", "text": "docs/toy.rst", "letters": 1234,
        "parameters": 10000, "steps": 2000, "seeds": 3,
        "rows": [{"optimizer": optimizer, "storage": storage, "losses": each}
                 for (optimizer, storage), each in losses.items()]})


class Storages(BookCase):
    def keep(self, result):
        file = self.root / "storages.json"
        file.write_text(json.dumps(result))
        return self.command("measurements", "--name", "storages", "--json", file,
                            "--command", "./fusebook capture storages")

    def test_comes_back(self):
        self.assertEqual(self.keep(toy_storages())[0], 0)
        found = storage_measurements.load(self.book)
        self.assertEqual(found.command, "./fusebook capture storages")
        self.assertEqual(found.provenance(),
                         "2,000 steps, 3 seeds · 10,000 parameters · 1,234 letters of "
                         "docs/toy.rst · Toy CPU 9 · g++ 12.2.0 · 2026-11-25")
        self.assertEqual(found.optimizers(), ["Adam", "Lion"])
        self.assertEqual(found.storages(), ["8-bit states", "bfloat16, split"])

    def test_a_storage_holds_if_its_mean_is_among_the_seeds_of_float32(self):
        self.keep(toy_storages())
        found = storage_measurements.load(self.book)
        self.assertEqual(found.spread("Adam"), (1.0, 3.0))
        self.assertEqual(found.spread("Lion"), (1.25, 1.5))
        self.assertEqual(found.ended("Adam", "8-bit states"), Ended(0.875, 2, False))
        self.assertEqual(found.ended("Adam", "bfloat16, split"), Ended(3.0, 2, True))
        self.assertEqual(found.ended("Lion", "8-bit states").among, 3)
        self.assertFalse(found.ended("Lion", "bfloat16, split").holds)

    def test_one_that_was_edited_is_refused(self):
        self.keep(toy_storages())
        path = measurements.path(self.book, "storages")
        path.write_text(path.read_text().replace("1.125", "1.625", 1))
        with self.assertRaisesRegex(BookError, "edited after"):
            storage_measurements.load(self.book)

    def test_what_is_no_measurement(self):
        for change, words in (
                (lambda r: r.pop("steps"), "lacks 'steps'"),
                (lambda r: r.update(rows=[]), "every optimizer with float32"),
                (lambda r: r["rows"].pop(3), "every optimizer with float32"),
                (lambda r: r["rows"].pop(), "every optimizer with float32"),
                (lambda r: r["rows"][0]["losses"].pop(), "with 3 losses"),
                (lambda r: r["rows"][0].pop("storage"), "is not one of 'rows'"),
                (lambda r: r["rows"][1]["losses"].__setitem__(0, None),
                 "a loss of Adam, 8-bit states is None")):
            result = toy_storages()
            change(result)
            code, out = self.keep(result)
            self.assertEqual(code, 1)
            self.assertIn(words, out)
        self.assertFalse(measurements.path(self.book, "storages").exists())


class OfTheBook(unittest.TestCase):
    def test_it_is_whole(self):
        found = storage_measurements.load(Book(ROOT))
        self.assertEqual(found.optimizers(), ["Adam", "AdamW", "Lion", "SGD", "RMSprop"])
        self.assertEqual(len(found.storages()), 5)
        self.assertGreaterEqual(found.facts["steps"], 2000)
        self.assertEqual(found.facts["seeds"], 5)


if __name__ == "__main__":
    unittest.main()
