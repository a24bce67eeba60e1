"""What was measured on ranks is kept as it is, and quoted by name."""

import copy
import json
import unittest

from support import ROOT, BookCase

from fusebook_docs import measurements, quotes, rank_measurements
from fusebook_docs.book import Book
from fusebook_docs.errors import BookError
from fusebook_docs.quotes import Home

WHERE = " @ docs/measurements/ranks.json"


def sent(gradients):
    return {"gradients": gradients, "parameters": 4000, "sums": 0, "agreement": 96,
            "calls": 8, "exchanges": 3, "messages": 11}


def toy_ranks():
    """What bench --ranks --json would write."""
    plan = [{"case": case, "ranks": ranks, "mode": mode, "owned": size // ranks,
             "gradients": ranks, "transport_us": 1000.0 * (ranks - 1) * times,
             "own_us": 500.0 * size / ranks, "sent": sent(size * (ranks - 1) * times)}
            for case, size in (("small", 1024), ("large one", 4096))
            for ranks in (1, 2, 8, 16) for mode, times in (("exact", 4), ("fast", 1))]
    return copy.deepcopy({
        "device": "Toy CPU 9", "threads": 1, "compiler": "g++ 12.2.0",
        "system": "Debian", "date": "2026-11-21", "mpi": "Toy MPI 3", "cores": 2,
        "ranks": 4, "fitted_at": 2,
        "values": {"call_us": {"value": 2.5, "unit": "us"},
                   "exchange_us": {"value": 5, "unit": "us"}},
        "calls": [{"ranks": 2, "us": 2.5}],
        "exchanges": [{"ranks": ranks, "pattern": pattern, "bytes": count,
                       "us": 10.0 * ranks + count / 100, "model_us": 20 + count / 100}
                      for ranks in (2, 4) for count in (256, 65536)
                      for pattern in ("gradients", "parameters")],
        "steps": [{"ranks": ranks, "mode": mode, "us": 9000.0 * ranks,
                   "limit_us": 3000, "owned": 512, "gradients": 8,
                   "bytes_per_element": 56, "sent": sent(2048)}
                  for ranks in (1, 2) for mode in ("exact", "fast")],
        "plan": plan})


class Ranks(BookCase):
    def keep(self, result):
        file = self.root / "ranks.json"
        file.write_text(json.dumps(result))
        return self.command("measurements", "--name", "ranks", "--json", file,
                            "--command", "./fusebook bench --ranks 4")

    def test_comes_back(self):
        self.assertEqual(self.keep(toy_ranks())[0], 0)
        found = rank_measurements.load(self.book)
        self.assertEqual(found.command, "./fusebook bench --ranks 4")
        self.assertEqual(found.provenance(),
                         "Toy CPU 9, 2 cores · Toy MPI 3 · 4 processes of one "
                         "machine · g++ 12.2.0 · 2026-11-21")
        self.assertEqual(found.cases(), ["small", "large one"])
        self.assertEqual([row["ranks"] for row in found.planned("small", "fast")],
                         [1, 2, 8, 16])
        with self.assertRaisesRegex(BookError, "there are: small, large one"):
            found.planned("tiny", "fast")

    def test_pages_quote_it(self):
        self.keep(toy_ranks())
        for name, text in (("call_us", "2.500 us"), ("cores", "2"),
                           ("exchange_us / call_us", "2.00x"),
                           ("exact_2_ms", "18.00 ms"),
                           ("exact_2_ms / exact_2_limit_ms", "6.00x"),
                           ("large_fast_8_transport_ms", "7.000 ms"),
                           ("fast_8_sent_mb", "0.01126 MB")):
            self.assertEqual(quotes.quoted(self.book, "value", name + WHERE,
                                           Home()).text, text)
        for what, words in (("quick_us", "no value 'quick_us' in docs/measurements"),
                            ("5 us <call_us>", "would go stale")):
            with self.assertRaisesRegex(BookError, words):
                text = what.replace(">", WHERE + ">") if "<" in what else what + WHERE
                quotes.quoted(self.book, "value", text, Home())

    def test_one_that_was_edited_is_refused(self):
        self.keep(toy_ranks())
        path = measurements.path(self.book, "ranks")
        before = path.read_text()
        for old, new in (("2.5", "1.5"), ("Toy MPI 3", "Toy MPI 4")):
            path.write_text(before.replace(old, new, 1))
            self.assertNotEqual(path.read_text(), before)
            with self.assertRaisesRegex(BookError, "edited after"):
                rank_measurements.load(self.book)

    def test_what_is_no_measurement(self):
        for change, words in (
                (lambda r: r.pop("mpi"), "lacks 'mpi'"),
                (lambda r: r.update(steps=[]), "lacks 'steps'"),
                (lambda r: r["plan"][0].pop("own_us"), "is not one of 'plan'"),
                (lambda r: r["steps"][0].update(us=-1), "us of one of 'steps' is -1"),
                (lambda r: r["plan"][0]["sent"].pop("calls"), "what was sent")):
            result = toy_ranks()
            change(result)
            code, out = self.keep(result)
            self.assertEqual(code, 1)
            self.assertIn(words, out)
        self.assertFalse(measurements.path(self.book, "ranks").exists())


class OfTheBook(unittest.TestCase):
    def test_it_holds(self):
        found = rank_measurements.load(Book(ROOT))
        for case in found.cases():
            for mode in rank_measurements.MODES:
                ranks = [row["ranks"] for row in found.planned(case, mode)]
                self.assertTrue({8, 4096} <= set(ranks))
        # Nothing leaves the only rank.
        for row in found.steps:
            self.assertEqual(rank_measurements.bytes_of(row["sent"]) == 0,
                             row["ranks"] == 1)


if __name__ == "__main__":
    unittest.main()
