"""What publishes the site looks first whether it is true."""

import re
import unittest

from support import ROOT

_WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.y*ml"))
_SITE = r"path: build/docs/html|directory=build/docs html"
_CHECKS = ("./fusebook verify", "python3 -B docs/fusebook_docs limits")


class Workflows(unittest.TestCase):
    def test_verified_before_it_is_kept(self):
        publishing = 0
        for path in _WORKFLOWS:
            text = path.read_text()
            for match in re.finditer(_SITE, text):
                publishing += 1
                job = text[:match.start()]
                for check in _CHECKS:
                    with self.subTest(path.name, check=check):
                        self.assertIn(f"- run: {check}\n", job)
                        self.assertLess(job.rindex(check),
                                        job.rindex("./fusebook docs"))
        self.assertEqual(publishing, 2)  # the pages, and a release

    def test_actions_are_those_of_one_commit(self):
        """A tag or a branch may be moved to other code."""
        pinned = 0
        for path in _WORKFLOWS:
            for line in re.findall(r"uses:.*", path.read_text()):
                with self.subTest(path.name, line=line):
                    self.assertRegex(line, r"^uses: [\w./-]+@[0-9a-f]{40} # v[\d.]+$")
                pinned += 1
        self.assertGreater(pinned, 5)


if __name__ == "__main__":
    unittest.main()
