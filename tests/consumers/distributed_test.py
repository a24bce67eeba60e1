"""Builds a program of several processes outside of the repository, with an
installed copy, and runs it on one, two and four ranks.

    python3 distributed_test.py --build=BUILD ARCHIVE...
    python3 distributed_test.py --build=BUILD --write
                                    keeps what it prints, for the page
"""

import pathlib
import re
import sys
import unittest

from copies import HERE, Copies

BUILD = None
LAUNCH = HERE.parent / "launch.sh"
PRINTED = HERE / "distributed" / "training.txt"


class Distributed(Copies, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.make_folder()
        prefix = cls.installed(BUILD, "copy")
        cls.program = cls.built("distributed", prefix) / "training"

    def test_any_number_of_ranks(self):
        text = "".join(self.good("sh", LAUNCH, "ranks", ranks, self.program)
                       for ranks in (1, 2, 4))
        if "--write" in sys.argv:
            PRINTED.write_text(text)
        self.assertEqual(text, PRINTED.read_text())
        ends = set(re.findall(r"ranks \d+: (.*)", text))
        self.assertEqual(len(ends), 1, text)


if __name__ == "__main__":
    if not sys.argv[1:] or not sys.argv[1].startswith("--build="):
        sys.exit(__doc__)
    BUILD = pathlib.Path(sys.argv[1].removeprefix("--build=")).resolve()
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Distributed)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    sys.exit(0 if result.wasSuccessful() else 1)
