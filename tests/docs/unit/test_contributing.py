"""CONTRIBUTING.md and README.md show code that a test compiles, not code that
once did."""

import re
import unittest

from support import ROOT

_BLOCK = re.compile(r"(?:<!-- (\S+) -->\n)?```cpp\n(.*?)```\n", re.S)
_EXAMPLES = {"tests/support/lion.h", "tests/support/halve_lr.h"}


def blocks():
    """(file, code) of every piece of C++ in CONTRIBUTING.md."""
    return _BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text())


class Examples(unittest.TestCase):
    def test_code_is_that_of_the_file(self):
        for path, code in blocks():
            with self.subTest(path=path, code=code.split("\n", 1)[0]):
                self.assertTrue(path, "name its file before the block")
                self.assertIn("\n" + code, (ROOT / path).read_text())

    def test_every_example_is_there_and_compiled(self):
        self.assertEqual({path for path, _ in blocks()}, _EXAMPLES)
        programs = [p.read_text() for p in (ROOT / "tests").rglob("*_test.cpp")]
        for path in _EXAMPLES:
            include = f'#include "{path.removeprefix("tests/")}"'
            self.assertTrue(any(include in text for text in programs), path)

    def test_the_example_in_the_header(self):
        """What scheduler.h shows of HalveLR is that example too."""
        header = (ROOT / "common/lr_scheduler/scheduler.h").read_text()
        shown = "".join(line.removeprefix("///     ").removeprefix("///")
                        for line in header.splitlines(keepends=True)
                        if line.startswith("///"))
        code = next(code for path, code in blocks() if "halve" in path)
        struct = code[:code.index("/// Halves")]
        self.assertIn(struct, shown)

    def test_of_the_readme(self):
        """Its other program is an example of the book (test_front.py)."""
        readme = (ROOT / "README.md").read_text()
        readme = re.sub(r"<!-- made.*?<!-- end -->", "", readme, flags=re.S)
        tests = ["".join(path.read_text().split())
                 for path in (ROOT / "tests").rglob("*_test.cpp")]
        shown = _BLOCK.findall(readme)
        self.assertEqual(len(shown), 1)
        for _, code in shown:
            with self.subTest(code=code):
                words = "".join(code.split())
                self.assertTrue(any(words in text for text in tests))


if __name__ == "__main__":
    unittest.main()
