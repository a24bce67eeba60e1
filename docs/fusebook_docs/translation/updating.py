"""Brings the catalogues to what the pages say today.

Needs Sphinx: run it with the Python of the docs' environment, as `./fusebook docs
--update-translations` does.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from .. import samples
from ..errors import BookError
from . import catalogues


def update(book):
    """Writes the catalogues that have changed; yields what is to be told."""
    with tempfile.TemporaryDirectory(prefix="fusebook-gettext-") as name:
        folder = Path(name)
        done = subprocess.run(
            [sys.executable, "-m", "sphinx", "-E", "-q", "-b", "gettext", "-d",
             str(folder / "doctrees"), str(book.root / "docs"),
             str(folder / "templates")],
            capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BookError("the messages cannot be read from the pages:\n"
                            f"{done.stderr.strip()}")
        files = catalogues.update(book, folder / "templates")
    for path in catalogues.folder(book).rglob("*.po"):
        if path not in files:
            path.unlink()
            yield f"removed {book.show(path)}: there is no such page"
    for path, text in files.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            samples.write_files({path: text})
            yield f"wrote {book.show(path)}"
