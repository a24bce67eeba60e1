"""What a capture has found so far, on disk after every stage."""

import os
import shutil
import tarfile
import time
from pathlib import Path

SUMMARY = "summary.txt"


class Refused(Exception):
    """The output folder cannot be used."""


class Report:
    """The output folder: a summary, logs, results, and at last an archive."""

    def __init__(self, folder, gpu, budget):
        self.folder, self.gpu, self.budget = Path(folder), gpu, budget
        self.begin = time.monotonic()
        self.lines, self.failures = [], 0
        _make_anew(self.folder)
        for name in ("logs", "samples"):
            (self.folder / name).mkdir()
        self._write()

    @property
    def left(self):
        """Seconds of the budget that are left."""
        return self.begin + self.budget - time.monotonic()

    def log(self, name):
        return self.folder / "logs" / f"{name}.log"

    def stage(self, title):
        self._say(f"\n{title} (after {time.monotonic() - self.begin:.0f} s)")

    def good(self, text):
        self._say(f"  ok           {text}")

    def left_out(self, text):
        self._say(f"  skipped      {text}")

    def failed(self, text):
        self.failures += 1
        self._say(f"  FAILED       {text}")

    def note(self, text):
        self._say(f"  {text}")

    def end(self, how):
        self._say(f"\n{how} after {time.monotonic() - self.begin:.0f} s; "
                  f"failed: {self.failures}.")

    def archive(self):
        """Packs everything into one file beside the rest."""
        name = f"fusebook-{self.gpu.folder}"
        path = self.folder / f"{name}.tar.gz"
        aside = self.folder / f".{name}.tar.gz"
        with tarfile.open(aside, "w:gz") as file:
            for part in (SUMMARY, "logs", "samples", "bench.json",
                         "peers.json"):
                if (self.folder / part).exists():
                    file.add(self.folder / part, f"{name}/{part}")
        os.replace(aside, path)
        return path

    def _say(self, line):
        print(line, flush=True)
        self.lines.append(line)
        self._write()

    def _write(self):
        driver = f", {self.gpu.driver}" if self.gpu.driver else ""
        head = f"Fusebook on {self.gpu.name}{driver} ({self.gpu.device})"
        aside = self.folder / f".{SUMMARY}"
        aside.write_text("\n".join([head, *self.lines]) + "\n",
                         encoding="utf-8")
        os.replace(aside, self.folder / SUMMARY)


def _make_anew(folder):
    """An empty folder; only what an earlier capture left is removed."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / SUMMARY).is_file():
            raise Refused(f"{folder} is not a capture's folder; choose "
                          "another with --out")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
