"""How long steps take that move fewer bytes is kept as it is."""

import copy
import json
import unittest

from support import ROOT, BookCase

from fusebook_docs import byte_measurements, measurements
from fusebook_docs.book import Book
from fusebook_docs.byte_measurements import Step
from fusebook_docs.errors import BookError


def toy_bytes():
    """What fewer_bytes.py would write."""
    steps = {("10 x 10", "toy 1.0 AdamW8bit"): (16.0, 12000.0),
             ("10 x 10", "here, float32"): (28.0, 4000.0),
             ("10 x 10", "here, 8-bit states"): (16.0625, 2500.0),
             ("2 x 2", "toy 1.0 AdamW8bit"): (28.0, 900.0),
             ("2 x 2", "here, float32"): (28.0, 20.0),
             ("2 x 2", "here, 8-bit states"): (28.0, 20.0)}
    return copy.deepcopy({
        "device": "Toy CPU 9", "threads": 2, "compiler": "g++ 12.2.0",
        "system": "Debian", "date": "2026-11-25", "processes": 5,
        "rows": [{"case": case, "variant": variant, "bytes": moved, "us": us}
                 for (case, variant), (moved, us) in steps.items()]})


class Bytes(BookCase):
    def keep(self, result):
        file = self.root / "bytes.json"
        file.write_text(json.dumps(result))
        return self.command("measurements", "--name", "bytes", "--json", file,
                            "--command", "./fusebook capture peers")

    def test_comes_back(self):
        self.assertEqual(self.keep(toy_bytes())[0], 0)
        found = byte_measurements.load(self.book)
        self.assertEqual(found.command, "./fusebook capture peers")
        self.assertEqual(found.provenance(), "Toy CPU 9, 2 threads · g++ 12.2.0 · "
                                             "2026-11-25 · medians over 5 processes")
        self.assertEqual(found.cases(), ["10 x 10", "2 x 2"])
        self.assertEqual(found.variants(), ["toy 1.0 AdamW8bit", "here, float32",
                                            "here, 8-bit states"])
        self.assertEqual(found.steps["10 x 10", "here, 8-bit states"],
                         Step(16.0625, 2500.0))
        self.assertEqual(found.of_plain("10 x 10", "here, 8-bit states"), 0.625)
        self.assertEqual(found.of_plain("2 x 2", "toy 1.0 AdamW8bit"), 45)

    def test_one_that_was_edited_is_refused(self):
        self.keep(toy_bytes())
        path = measurements.path(self.book, "bytes")
        path.write_text(path.read_text().replace("2500.0", "250.0", 1))
        with self.assertRaisesRegex(BookError, "edited after"):
            byte_measurements.load(self.book)

    def test_what_is_no_measurement(self):
        for change, words in (
                (lambda r: r.pop("threads"), "lacks 'threads'"),
                (lambda r: r.update(rows=[]), "every other variant for every case"),
                (lambda r: r["rows"].pop(1), "every other variant for every case"),
                (lambda r: r["rows"].pop(), "every other variant for every case"),
                (lambda r: r["rows"][0].pop("variant"), "is not one of 'rows'"),
                (lambda r: r["rows"][0].pop("bytes"),
                 "'bytes' of toy 1.0 AdamW8bit, 10 x 10 is None"),
                (lambda r: r["rows"][1].update(us=0),
                 "'us' of here, float32, 10 x 10 is 0")):
            result = toy_bytes()
            change(result)
            code, out = self.keep(result)
            self.assertEqual(code, 1)
            self.assertIn(words, out)
        self.assertFalse(measurements.path(self.book, "bytes").exists())


class OfTheBook(unittest.TestCase):
    def test_it_is_whole(self):
        found = byte_measurements.load(Book(ROOT))
        self.assertEqual(found.cases(), ["10 x 1024 x 1024", "1000 x 64"])
        packages = {name.split()[0] for name in found.variants()}
        self.assertEqual(packages, {"torch", "deepspeed", "bitsandbytes", "torchao",
                                    "here,"})


if __name__ == "__main__":
    unittest.main()
