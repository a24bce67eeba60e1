"""Runs Doxygen over the headers of the library."""

import shutil
import subprocess
from pathlib import Path

from ..errors import BookError

# common/ is what users include; of the compiler below it they meet a few names.
FOLDERS = ("common", "kernels")


def link_rooms(folders, to):
    """A folder from which "fusebook/ROOM/..." can be included."""
    shutil.rmtree(to, ignore_errors=True)
    (to / "fusebook").mkdir(parents=True)
    for folder in folders:
        for room in folder.glob("*/"):
            (to / "fusebook" / room.name).symlink_to(room.resolve())
    return to


def run(book, out):
    """Writes the XML of all headers into `out`. Throws for every warning."""
    program = shutil.which("doxygen")
    if program is None:
        raise BookError("doxygen is not installed: apt-get install doxygen")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    folders = [book.root / name for name in FOLDERS]
    includes = link_rooms(folders, out.parent / "include")
    inputs = " ".join(f'"{path}"' for path in folders if path.is_dir())
    settings = (
        (book.root / "docs" / "Doxyfile").read_text(encoding="utf-8")
        + f'\nINPUT = {inputs}\nOUTPUT_DIRECTORY = "{out.parent}"'
        f'\nINCLUDE_PATH = "{includes}"'
        f'\nXML_OUTPUT = {out.name}\nSTRIP_FROM_PATH = "{book.root}"\n')
    done = subprocess.run([program, "-"], input=settings, text=True,
                          capture_output=True, check=False, cwd=book.root)
    told = done.stderr.strip()
    if done.returncode or told:
        where = f"{book.root}{'/'}"
        raise BookError("doxygen: " + (told or done.stdout).replace(where, ""))
    return Path(out)
