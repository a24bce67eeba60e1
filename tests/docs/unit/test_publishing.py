"""What publishes the site looks first whether it is true."""

import re
import unittest

from support import ROOT

_CHECKS = ("./fusebook verify", "python3 -B docs/fusebook_docs limits")


class Workflows(unittest.TestCase):
    def test_verified_before_it_is_kept(self):
        publishing = 0
        for path in sorted((ROOT / ".github" / "workflows").glob("*.y*ml")):
            text = path.read_text()
            for match in re.finditer(r"path: build/docs/html", text):
                publishing += 1
                job = text[:match.start()]
                for check in _CHECKS:
                    with self.subTest(path.name, check=check):
                        self.assertIn(f"- run: {check}\n", job)
                        self.assertLess(job.rindex(check),
                                        job.rindex("./fusebook docs"))
        self.assertGreater(publishing, 0)


if __name__ == "__main__":
    unittest.main()
