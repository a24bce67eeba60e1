"""Builds the whole site: the English pages, and under `zh/` the Chinese ones.

The second build links to what the first one found, so it comes after it.
"""

import subprocess
import sys

from . import catalogues


def build(book, out, doctrees, options=(), log=None):
    """Both editions; the exit code of the first build that failed, or 0. `log` is a
    file that gets what they say."""
    common = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-b", "html",
              "-D", "fusebook_editions=1", *options]
    pages = str(book.root / "docs")
    first = subprocess.run([*common, "-d", str(doctrees), pages, str(out)],
                           stdout=log, stderr=log, check=False)
    if first.returncode or not catalogues.names(book):
        return first.returncode
    folder = catalogues.FOLDER
    second = subprocess.run(
        [*common, "-t", folder, "-D",
         f"fusebook_english={(doctrees / 'english.json').resolve()}",
         "-d", str(doctrees.with_name(f"{doctrees.name}-{folder}")), pages,
         str(out / folder)], stdout=log, stderr=log, check=False)
    return second.returncode
