"""Runs programs that must end in time, with all they print in a file."""

import os
import signal
import subprocess
import time
from dataclasses import dataclass

GRACE = 3.0  # seconds between asking a program to end and killing it
_running = set()


@dataclass(frozen=True)
class Outcome:
    """How a program ended: `status` is None when its time was up."""

    status: int | None
    seconds: float
    log: object

    @property
    def text(self):
        """What it printed."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def last_line(self):
        lines = [line for line in self.text.splitlines() if line.strip()]
        return lines[-1].strip() if lines else "it printed nothing"

    @property
    def ending(self):
        """Why it did not end well."""
        if self.status is None:
            return f"not finished after {self.seconds:.0f} s"
        if self.status < 0:
            return f"killed by {signal.Signals(-self.status).name}"
        return f"exit code {self.status}: {self.last_line}"


def run(command, log, seconds, folder, **environment):
    """Runs a command for at most so many seconds; its output goes to `log`."""
    begin = time.monotonic()
    with open(log, "wb") as file:
        file.write(f"$ {' '.join(map(str, command))}\n".encode())
        file.flush()
        try:
            process = subprocess.Popen(
                command, cwd=folder, env={**os.environ, **environment},
                stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                start_new_session=True)
        except OSError as error:
            file.write(f"cannot be run: {error.strerror}\n".encode())
            return Outcome(127, 0.0, log)
        _running.add(process)
        try:
            status = _wait(process, seconds)
        finally:
            _running.discard(process)
    return Outcome(status, time.monotonic() - begin, log)


def end_all():
    """Ends what other threads run."""
    for process in list(_running):
        _signal(process, signal.SIGKILL)


def _wait(process, seconds):
    try:
        return process.wait(max(seconds, 0.1))
    except subprocess.TimeoutExpired:
        _end(process)
        return None
    except BaseException:
        _end(process)
        raise


def _end(process):
    """Ends a program and what it started: first as Ctrl-C does."""
    _signal(process, signal.SIGINT)
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        pass
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process, number):
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass
