"""Tests, samples and the benchmark: what this project says of the device."""

import json
import shutil
import sys

from building import TESTS, exercises_of, program_of
from running import run

# Small enough for a device that is simulated thread by thread.
_TINY = ("--layers", "2", "--width", "8")
_TINY_SCALE = "65536"


def run_tests(report, root, programs, limit):
    report.stage("Tests on the device")
    end = report.left - limit
    for suite in TESTS:
        name = suite.partition("/")[2]
        program = programs / "tests" / program_of(suite)
        if not program.exists():
            report.left_out(f"{name}: not built")
            continue
        done = run([program, f"--source-file=*/{name}.cpp"], report.log(name),
                   report.left - end, root,
                   FUSEBOOK_TEST_DEVICE=report.gpu.device)
        if done.status == 0:
            report.good(f"{name}: {_counts(done)}")
        else:
            report.failed(f"{name}: {done.ending}")


def _counts(done):
    """doctest's own line about its cases."""
    lines = [line for line in done.text.splitlines() if "test cases:" in line]
    skipped = done.text.count("skipped: ")
    text = lines[-1].partition("test cases:")[2].strip() if lines else "?"
    return f"{text}; {skipped} of them found no GPU" if skipped else text


def capture_samples(report, root, programs, recipes, limit):
    """Samples of the recipes, then of their exercises."""
    report.stage("Samples")
    end = report.left - limit
    for name in recipes:
        _capture(report, root, programs / "recipes" / name, name, None, end)
    for name in recipes:
        for exercise in exercises_of(root, name):
            program = programs / "tests" / f"{name}.{exercise}"
            _capture(report, root, program, name, exercise, end)


def _capture(report, root, program, recipe, exercise, end):
    """One sample, in the book at once where the device is a real one."""
    gpu, left, stem = report.gpu, report.left - end, program.name
    kept = report.folder / "samples"
    if left <= 0:
        report.left_out(f"{stem}: no time left")
        return
    if exercise and not program.exists():
        report.left_out(f"{stem}: not built")
        return
    command = [sys.executable, "-B", root / "docs" / "fusebook_docs",
               "capture", "--recipe", recipe, "--program", program,
               "--device", gpu.device, "--as", gpu.folder, "--fresh",
               "--samples", kept, "--timeout", f"{left:.1f}"]
    if exercise:
        command += ["--exercise", exercise]
    if gpu.driver:
        command += ["--driver", gpu.driver]
    command += _tiny_options(report, program)
    done = run(command, report.log(f"sample-{stem}"), left + 5, root)
    if done.status != 0:
        report.failed(f"{stem}: {done.ending}; see {done.log}")
        return
    report.good(stem)
    if not gpu.simulated:
        into_the_book(kept / gpu.folder, root, gpu, stem)


def _tiny_options(report, program):
    if not report.gpu.simulated:
        return []
    done = run([program, "--help"], report.log("help"), 20, None)
    if "--layers" not in done.text:
        return []
    return [f"--option={word}" for word in _TINY]


def into_the_book(kept, root, gpu, stem):
    """Copies a sample to where the pages look for it."""
    folder = root / "docs" / "samples" / gpu.folder
    folder.mkdir(parents=True, exist_ok=True)
    for suffix in ("txt", "json"):
        shutil.copyfile(kept / f"{stem}.{suffix}", folder / f"{stem}.{suffix}")


def run_benchmark(report, root, programs, limit):
    report.stage("Benchmark")
    path = report.folder / "bench.json"
    command = [programs / "tests" / "bench_gpu", "--device",
               report.gpu.device, "--json", path]
    if report.gpu.simulated:
        command += ["--scale", _TINY_SCALE]
    done = run(command, report.log("bench"), limit, root)
    for line in done.text.splitlines()[1:]:
        report.note(line)
    if done.status == 0:
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        report.good(f"{len(rows)} rows")
    else:
        report.failed(f"{done.ending}; see {done.log}")
