"""The ladder of fusion, read from what a recipe printed, and drawn."""

import re
import unittest

from support import ROOT

from fusebook_docs import ladder, samples
from fusebook_docs.book import Book
from fusebook_docs.errors import BookError
from fusebook_docs.values import Value, quantity_text

TEXT = """slow_one: 6 launches, 40.00 MB, @{slow_us}
launch    tensor 0  tensor 1  ...  tensor 9
lerp             1         3  ...         5
mul              2         4  ...         6

quick: 1 launch, 10.00 MB, @{quick_us}
launch    tensor 0  tensor 1  ...  tensor 9
lerp             1         1  ...         1
mul              1         1  ...         1
"""


def times(slow=200.0, quick=50.0, unit="us"):
    return {name: Value("measured", value, quantity_text(value, unit), unit)
            for name, value in (("slow_us", slow), ("quick_us", quick))}


class Reading(unittest.TestCase):
    def test_rungs(self):
        slow, quick = ladder.read(TEXT, times())
        self.assertEqual((slow.name, slow.launches, slow.megabytes),
                         ("slow one", 6, 40.0))
        self.assertEqual((quick.name, quick.launches_text, quick.time_text),
                         ("quick", "1 launch", "50.00 us"))
        self.assertEqual(slow.tensors, (0, 1, 9))
        self.assertEqual(slow.cells, ((1, 2), (3, 4), (5, 6)))

    def test_frames_are_the_launches(self):
        slow, quick = ladder.read(TEXT, times())
        self.assertEqual(ladder.frames(quick), [(1, 0, 2, 0, 1)])
        self.assertEqual(len(ladder.frames(slow)), 6)
        self.assertIn((4, 1, 1, 1, 1), ladder.frames(slow))

    def test_what_is_no_ladder(self):
        ragged = TEXT.replace("mul              1         1", "mul    1")
        for text, values, word in (
                ("", times(), "no ladder"),
                (TEXT.partition("\n\n")[0], times(), "no ladder"),
                (ragged, times(), "equal length"),
                (TEXT, times(unit="ms"), "not a measured time")):
            with self.subTest(word), self.assertRaisesRegex(BookError, word):
                ladder.read(text, values)


class Drawing(unittest.TestCase):
    def bars(self, svg):
        return [float(width) for width in re.findall(
            r'class="bar"[^>]*? width="([\d.]+)"', svg)][2:]

    def test_bars_are_in_proportion(self):
        svg = ladder.svg(ladder.read(TEXT, times()))
        slow, much, quick, little = self.bars(svg)
        self.assertEqual((slow, much), (slow, slow))
        self.assertAlmostEqual(quick, slow / 4)
        self.assertAlmostEqual(little, much / 4)

    def test_readable_without_colour(self):
        """Two fills tell the bars apart, and each has its number beside it."""
        svg = ladder.svg(ladder.read(TEXT, times()))
        fills = set(re.findall(r'class="bar"[^>]*fill-opacity="([\d.]+)"', svg))
        self.assertEqual(fills, {"1", "0.12"})
        for text in ("time of a step", "bytes moved", "200.0 us", "40.00 MB",
                     "6 launches"):
            self.assertIn(f">{text}</text>", svg)
        self.assertEqual(set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg)),
                         {"currentColor"})

    def test_in_words(self):
        svg = ladder.svg(ladder.read(TEXT, times()))
        self.assertIn('aria-label="Slow one: 6 launches, 40.00 MB, 200.0 us. '
                      'Quick: 1 launch, 10.00 MB, 50.00 us."', svg)

    def test_of_the_book(self):
        """The one on the page has its four rungs, and draws every launch of the
        printed tensors."""
        sample = samples.load(Book(ROOT), "cpu", "compiling_optimizer")
        rungs = ladder.read(sample.text_of("The ladder"), sample.values)
        self.assertEqual([rung.name for rung in rungs],
                         ["op by op", "horizontal", "vertical", "both"])
        for rung in rungs:
            shown = {launch for cells in rung.cells for launch in cells}
            self.assertEqual({frame[0] for frame in ladder.frames(rung)}, shown)


if __name__ == "__main__":
    unittest.main()
