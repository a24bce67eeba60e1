"""compute-sanitizer's four tools over a reduced set of programs."""

import re
import shutil
from pathlib import Path

from running import run

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
_PLACES = ("/usr/local/cuda/bin/compute-sanitizer",
           "/usr/local/cuda/compute-sanitizer/compute-sanitizer")
_SCALE = "4096"
_UNSUPPORTED = "Device not supported"
_FOUND = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:error|hazard)")


def check(report, root, programs, limit):
    report.stage("compute-sanitizer")
    if report.gpu.simulated:
        report.left_out("a simulated GPU has none")
        return
    tool = _find()
    if tool is None:
        report.note("unavailable  compute-sanitizer is not installed")
        return
    end = report.left - limit
    for number, name in enumerate(TOOLS):
        # What is left is shared evenly.
        seconds = (report.left - end) / (len(TOOLS) - number)
        done = run([tool, "--tool", name, "--error-exitcode", "99",
                    programs / "tests" / "bench_gpu", "--device",
                    report.gpu.device, "--scale", _SCALE, "--only-bits", "1"],
                   report.log(f"sanitizer-{name}"), seconds, root)
        _tell(report, name, done)


def _tell(report, name, done):
    kind, text = verdict(done)
    if kind == "ok":
        report.good(f"{name}: {text}")
    elif kind == "failed":
        report.failed(f"{name}: {text}; see {done.log}")
    else:
        report.note(f"{kind:11}  {name}: {text}")


def verdict(done):
    """What a tool found: its own summary counts, not the exit code alone."""
    found = _FOUND.findall(done.text)
    if done.status is None:
        return "unfinished", done.ending
    if _UNSUPPORTED in done.text:
        return "unavailable", _UNSUPPORTED
    if not found:
        return "unavailable", done.last_line
    if int(found[-1]) > 0:
        return "failed", f"{found[-1]} found"
    if done.status != 0:
        return "failed", done.ending
    return "ok", "nothing found"


def _find():
    known = shutil.which("compute-sanitizer")
    if known:
        return known
    return next((path for path in _PLACES if Path(path).is_file()), None)
