"""Runs the tests of the book's tools and pages.

    python3 tests/docs/run.py unit               standard library alone
    PYTHON tests/docs/run.py site                needs docs/requirements.txt
    PYTHON tests/docs/run.py pages --site DIR    needs requirements-test.txt
                                                 and a chromium on PATH
    python3 tests/docs/run.py downloads --site DIR [--all]
                                                 needs a compiler; --all builds
                                                 and runs every one of them

`unit` tests the tools with toy programs, and the real recipes' limits and
patches. `site` builds a toy book and looks at the HTML. `pages` opens the
built site DIR (and a toy book with two devices) in headless Chromium.
`downloads` unpacks what the pages of DIR give away into an empty folder.
Exit codes: 0 passed, 1 failed, 2 wrong usage.
"""

import argparse
import os
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
# `site` itself is a module of Python.
SUITES = {"unit": "unit", "site": "build_site", "pages": "pages",
          "downloads": "downloads"}
OF_A_SITE = ("pages", "downloads")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("suite", choices=tuple(SUITES))
    parser.add_argument("--site", type=Path, metavar="DIR",
                        help="a built site (pages, downloads)")
    parser.add_argument("--all", action="store_true",
                        help="build and run everything (downloads)")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    if options.suite in OF_A_SITE:
        if options.site is None or not (options.site / "index.html").is_file():
            parser.error(f"{options.suite} needs --site DIR, a folder with a "
                         "built site")
        os.environ["FUSEBOOK_SITE"] = str(options.site.resolve())
    if options.all:
        os.environ["FUSEBOOK_DOWNLOADS"] = "all"
    sys.path.insert(0, str(HERE))
    suite = unittest.TestLoader().discover(str(HERE / SUITES[options.suite]),
                                           top_level_dir=str(HERE))
    runner = unittest.TextTestRunner(verbosity=1 + options.verbose)
    result = runner.run(suite)
    return 0 if result.wasSuccessful() and result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
