"""What the benchmark measured is kept as it is, or not at all."""

import copy
import json
import unittest

from support import ROOT, BookCase

from fusebook_docs import measurements
from fusebook_docs.book import Book
from fusebook_docs.errors import BookError

LARGE = "10 x 1024 x 1024"


def step(of_case, variant, us, ratio):
    return {"case": of_case, "variant": variant, "us": us, "ratio": ratio,
            "divided_by": "limit", "gb_per_s": 3e8 / us / 1e3}


def toy_result():
    """What bench --json would write."""
    return copy.deepcopy({
        "device": "Toy CPU 9", "threads": 2, "compiler": "g++ 12.2.0",
        "system": "Debian", "date": "2026-11-21", "processes": 3,
        "rows": [step(LARGE, "compiled", 5000.5, 1.02),
                 step(LARGE, "by hand", 4900, 1.0),
                 step(LARGE, "foreach", 20000, 4.1),
                 step(LARGE, "limit", 4900, 1.0),
                 step("1000 x 64", "compiled", 20, 1.9),
                 step("1000 x 64", "limit", 10.5, 1.0)],
        "tail": [], "gradients": [], "groups": [], "memory": [{"case": LARGE, "variant": "p",
                                                   "bytes": 7}],
        "host": [{"case": "2 threads", "variant": "region", "us": 3}],
        "compile": [{"case": f"{n} tensors", "variant": name, "us": us}
                    for n in (1, 100) for name, us in (("cold", 90000 + n),
                                                       ("disk", 700 + n))]})


class Kept(BookCase):
    def keep(self, result, words="./fusebook bench"):
        file = self.root / "bench.json"
        file.write_text(json.dumps(result))
        return self.command("measurements", "--json", file, "--command", words)

    def test_comes_back(self):
        self.assertEqual(self.keep(toy_result())[0], 0)
        found = measurements.load(self.book)
        self.assertEqual(found.command, "./fusebook bench")
        self.assertEqual(found.provenance(), "Toy CPU 9, 2 threads · g++ 12.2.0 · "
                         "2026-11-21 · medians over 3 processes")
        row = found.row("step", LARGE, "compiled")
        self.assertEqual((row.us, row.ratio, row.divided_by),
                         (5000.5, 1.02, "limit"))
        self.assertIsNone(found.row("compile", "1 tensors", "cold").ratio)

    def test_the_version_of_a_peer(self):
        result = toy_result()
        result["rows"].append(step(LARGE, "torch 2.1.0 fused", 6000, 1.2))
        self.keep(result)
        found = measurements.load(self.book)
        self.assertEqual(found.row("step", LARGE, "torch # fused").us, 6000)
        self.assertIn(" · PyTorch 2.1.0 · 2026", found.provenance())
        with self.assertRaises(BookError):
            found.row("step", LARGE, "torch # foreach")

    def test_a_label_of_another_row(self):
        result = toy_result()
        result["rows"] += [step(LARGE, f"torch 2.1.0 {name}", 6000, 1.2)
                           for name in ("fused", "foreach", "torch.compile")]
        self.keep(result)
        found = measurements.load(self.book)
        for label, variant in (("PyTorch, fused", "torch # fused"),
                               ("PyTorch, eager (foreach)", "torch # foreach"),
                               ("PyTorch, compiled", "torch # torch.compile"),
                               ("here, compiled", "compiled"),
                               ("one list after the other", "foreach")):
            self.assertEqual(found.labelled("step", LARGE, variant, label).us,
                             found.row("step", LARGE, variant).us)
        for label, variant in (("PyTorch, fused", "torch # foreach"),
                               ("PyTorch, fused", "compiled"),
                               ("here, fused", "torch # fused"),
                               ("here, compiled", "foreach"),
                               ("compiled", "by hand")):
            with self.subTest(label), self.assertRaisesRegex(
                    BookError, "is not what has this name"):
                found.labelled("step", LARGE, variant, label)

    def test_a_name_that_nothing_has(self):
        self.keep(toy_result())
        found = measurements.load(self.book)
        for words, wanted in (((LARGE, "quick"), "compiled, by hand, foreach"),
                              (("2 x 2", "compiled"), LARGE)):
            with self.assertRaises(BookError) as raised:
                found.row("step", *words)
            self.assertIn(wanted, str(raised.exception))

    def test_one_that_was_edited_is_refused(self):
        self.keep(toy_result())
        path = measurements.path(self.book)
        before = path.read_text()
        for old, new in (("5000.5", "500.5"), ("Toy CPU 9", "Toy CPU 10"),
                         ("./fusebook bench", "./fusebook bench --fast")):
            path.write_text(before.replace(old, new, 1))
            self.assertNotEqual(path.read_text(), before)
            with self.assertRaisesRegex(BookError, "edited after"):
                measurements.load(self.book)

    def test_what_does_not_belong_together(self):
        """Though its digest is right."""
        for change, message in (
                (dict(us=500.05), "'compiled' of '10 x 1024 x 1024' has the ratio 1.02, "
                                  "but its time by that of 'limit' is 0.102"),
                (dict(ratio=10.2), "has the ratio 10.2"),
                (dict(divided_by="eager"), "was divided by 'eager', which was not"),
                (dict(us=4900.4), "moved 29.* bytes, by its time and GB/s")):
            result = toy_result()
            result["rows"][0].update(change)
            code, out = self.keep(result)
            self.assertEqual(code, 1)
            self.assertRegex(out, message)

    def test_every_file_is_looked_at(self):
        self.assertEqual(list(measurements.problems(Book(ROOT))), [])
        self.keep(toy_result())
        path = measurements.path(self.book)
        path.write_text(path.read_text().replace("Toy CPU 9", "Toy CPU 10"))
        found = list(map(str, measurements.problems(self.book)))
        self.assertEqual(len(found), len(measurements.HOW))
        self.assertIn("docs/measurements/cpu.json: was edited after", found[0])
        self.assertIn("docs/measurements/peers.json: cannot be read", found[1])

    def test_faster_than_the_machine_is_not_kept(self):
        result = toy_result()
        result["rows"][0]["ratio"] = 0.9
        code, out = self.keep(result)
        self.assertEqual(code, 1)
        self.assertIn("compiled, 10 x 1024 x 1024: 0.9 of the machine's limit",
                      out)
        self.assertFalse(measurements.path(self.book).exists())

    def test_a_case_that_was_measured_again(self):
        again = toy_result()
        again.update(host=[], compile=[],
                     rows=[step(LARGE, "compiled", 5100, 1.05)])
        found = measurements.merged(toy_result(), again)
        self.assertEqual([row["us"] for row in found["rows"]],
                         [5100, 4900, 20000, 4900, 20, 10.5])
        self.assertEqual(found["compile"], toy_result()["compile"])
        for change, words in (
                (lambda r: r.update(date="2026-11-22"), "'date'"),
                (lambda r: r["rows"][0].update(variant="new"), "before")):
            other = copy.deepcopy(again)
            change(other)
            with self.assertRaisesRegex(BookError, words):
                measurements.merged(toy_result(), other)

    def test_cases_that_were_measured_apart(self):
        """Each may lack whole kinds; they come in the order of the files."""
        more = toy_result()
        more.update(host=[], compile=[],
                    rows=[step("7 x 7", "compiled", 9, 1.5),
                          step("7 x 7", "limit", 6, 1.0)])
        files = []
        for name, result in (("a", toy_result()), ("b", more)):
            files.append(self.root / f"{name}.json")
            files[-1].write_text(json.dumps(result))
        code, out = self.command("measurements", "--name", "peers", "--json",
                                 files[0], "--also", files[1], "--command", "x")
        self.assertEqual(code, 0, out)
        self.assertIn("docs/measurements/peers.json", out)
        found = measurements.load(self.book, "peers")
        self.assertEqual([row.us for row in found.rows["step"]],
                         [5000.5, 4900, 20000, 4900, 20, 10.5, 9, 6])
        self.assertEqual(len(found.rows["compile"]), 4)
        more["device"] = "Toy CPU 10"
        files[1].write_text(json.dumps(more))
        code, out = self.command("measurements", "--json", files[0], "--also",
                                 files[1], "--command", "x")
        self.assertEqual(code, 1)
        self.assertIn("'device' is 'Toy CPU 10'", out)

    def test_a_measurement_that_does_not_exist(self):
        with self.assertRaisesRegex(BookError, "no measurement 'gpu'; there are: "
                                               "cpu, peers"):
            measurements.load(self.book, "gpu")
        with self.assertRaisesRegex(BookError, "./fusebook capture peers"):
            measurements.load(self.book, "peers")

    def test_what_is_not_a_measurement(self):
        for change, words in (
                (lambda r: r.pop("host"), "lacks 'host': measure everything"),
                (lambda r: r.pop("date"), "lacks 'date'"),
                (lambda r: r.update(processes=0), "lacks 'processes'"),
                (lambda r: r["host"][0].pop("us"), "is not a row of bench"),
                (lambda r: r["host"][0].update(us=0), "took 0.0 us")):
            result = toy_result()
            change(result)
            code, out = self.keep(result)
            self.assertEqual(code, 1)
            self.assertIn(words, out)


class OfTheBook(unittest.TestCase):
    def test_it_holds(self):
        for name in ("cpu", "peers"):
            found = measurements.load(Book(ROOT), name)
            self.assertEqual(list(measurements.unfit(found)), [])
            self.assertTrue(name == "peers" or all(found.rows.values()))


if __name__ == "__main__":
    unittest.main()
