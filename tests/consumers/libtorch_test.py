"""Builds a program of LibTorch outside of the repository, with an installed copy.

    python3 libtorch_test.py --build=BUILD ARCHIVE...
                            the program of the page "Use it in your program", and
                            all that must hold for such programs
    python3 libtorch_test.py --build=BUILD --pytorch ARCHIVE...
                            the same with the LibTorch inside of this Python's
                            PyTorch

ARCHIVE is what is installed of BUILD. Where BUILD has sanitizers, the programs have
them, too.
"""

import importlib.util
import pathlib
import re
import sys
import unittest

from copies import HERE, Copies

BUILD = None
OPTIONS = []
TARGETS = ["training", "tests", "adapter_steps"]


def sanitizers():
    """Options for a project like those of BUILD."""
    cache = (BUILD / "CMakeCache.txt").read_text()
    names = re.search(r"^FUSEBOOK_SANITIZE:\w+=(.+)$", cache, re.MULTILINE)
    if names is None:
        return []
    return [f"-DCMAKE_CXX_FLAGS=-fsanitize={names[1]} -fno-sanitize-recover=all"]


class LibTorch(Copies, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.make_folder()
        prefix = cls.installed(BUILD, "copy")
        cls.build = cls.built("libtorch", prefix, *OPTIONS, *sanitizers(),
                              targets=TARGETS)

    def test_a_program_changes_one_line(self):
        wanted = HERE / "libtorch" / "training.txt"
        self.assertEqual(self.good(self.build / "training"), wanted.read_text())

    def test_all_that_must_hold(self):
        print(self.good(self.build / "tests"))


if __name__ == "__main__":
    if not sys.argv[1:] or not sys.argv[1].startswith("--build="):
        sys.exit(__doc__)
    BUILD = pathlib.Path(sys.argv[1].removeprefix("--build=")).resolve()
    if "--pytorch" in sys.argv:
        torch = pathlib.Path(importlib.util.find_spec("torch").origin).parent
        OPTIONS.append(f"-DPYTORCH={torch}")
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(LibTorch)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    sys.exit(0 if result.wasSuccessful() else 1)
