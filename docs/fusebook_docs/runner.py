"""Runs a recipe and reads the record it wrote."""

import os
import signal
import subprocess
import tempfile
from pathlib import Path

from . import samples
from .errors import BookError

_TAIL = 20


def run(book, program, recipe, device, timeout, words=(), ranks=None):
    """The record of one run as parsed JSON; `words` are its own options, and
    `ranks` says on how many processes it runs.

    It has a kernel cache of its own, so that a first call compiles, as it does
    for whoever runs a recipe for the first time.
    """
    path = Path(program).resolve()
    if not os.access(path, os.X_OK) or path.is_dir():
        raise BookError(f"{recipe}: no program at {program}; build it first")
    with tempfile.TemporaryDirectory(prefix="fusebook-") as folder:
        record = Path(folder) / "record.json"
        start = ["sh", str(book.root / "tests" / "launch.sh"), "ranks", str(ranks)]
        command = [*(start if ranks else ()), str(path), "--device", device,
                   "--record", str(record), *words]
        status, out, err = _execute(command, book.root, timeout,
                                    Path(folder) / "kernels")
        if status is None:
            raise BookError(f"{recipe}: still running after {timeout:g} s, "
                            f"{_place(out)}; stopped{_quoted(err)}")
        if status != 0:
            raise BookError(f"{recipe}: {_ending(status)}, {_place(out)}"
                            f"{_quoted(err)}")
        if not record.is_file():
            raise BookError(f"{recipe}: succeeded but wrote no record")
        return samples.parse_json(record.read_bytes(), f"record of {recipe}")


def _execute(command, folder, timeout, cache):
    """Exit status (None after a timeout), stdout and stderr."""
    environment = {name: value for name, value in os.environ.items()
                   if name != "FUSEBOOK_LOGS"}
    environment["FUSEBOOK_CACHE_DIR"] = str(cache)
    try:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True)
    except OSError as error:
        raise BookError(f"{command[0]}: cannot be run: "
                        f"{error.strerror}") from None
    try:
        out, err = process.communicate(timeout=timeout)
        return process.returncode, _decoded(out), _decoded(err)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        return None, _decoded(out), _decoded(err)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def _decoded(data):
    return data.decode("utf-8", "replace")


def _ending(status):
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"failed with exit code {status}"


def _place(out):
    headings = [line[len(samples.HEADING):] for line in out.split("\n")
                if line.startswith(samples.HEADING)]
    return f"in step {headings[-1]!r}" if headings else "before its first step"


def _quoted(err):
    lines = err.rstrip().split("\n")[-_TAIL:]
    if lines == [""]:
        return "; it wrote nothing to stderr"
    return "".join(["; its stderr:", *(f"\n    {line}" for line in lines)])
