"""Builds the whole site: the English pages, and under `zh/` the Chinese ones.

The second build links to what the first one found, so it starts once the first one
has read all its pages; then both write side by side.
"""

import contextlib
import shutil
import subprocess
import sys
import tempfile
import time

from . import catalogues

ENGLISH = "english.json"  # in the folder of doctrees: what the first build found


def build(book, out, doctrees, options=(), log=None):
    """Both editions; the exit code of the first build that failed, or 0. `log` is a
    file that gets what they say."""
    common = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-b", "html",
              "-D", "fusebook_editions=1", *options]
    pages = str(book.root / "docs")
    found = doctrees.resolve() / ENGLISH
    found.unlink(missing_ok=True)
    with contextlib.ExitStack() as running, tempfile.TemporaryFile() as said:
        first = _start(running, [*common, "-d", str(doctrees), pages, str(out)], log)
        second = None
        if catalogues.names(book) and _appears(found, first):
            folder = catalogues.FOLDER
            second = _start(
                running,
                [*common, "-t", folder, "-D", f"fusebook_english={found}",
                 "-d", str(doctrees.with_name(f"{doctrees.name}-{folder}")), pages,
                 str(out / folder)], said)
        code = first.wait()
        if code or second is None:
            return code
        code = second.wait()
        said.seek(0)
        _show(said, log)
        return code


def _start(running, command, log):
    """A process that does not outlive `running`."""
    process = running.enter_context(
        subprocess.Popen(command, stdout=log, stderr=log and subprocess.STDOUT))
    running.callback(process.terminate)
    return process


def _appears(path, process):
    """Waits for the file that the process writes. False if it ended without."""
    while not path.exists():
        if process.poll() is not None:
            return path.exists()
        time.sleep(0.05)
    return True


def _show(said, log):
    """What the second build said comes after the words of the first one."""
    to = log or sys.stdout
    to.flush()
    shutil.copyfileobj(said, getattr(to, "buffer", to))
    to.flush()
