"""Tests, samples and the benchmark: what this project says of the device."""

import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed

from building import exercises_of, program_of, suites
from running import end_all, run

# Small enough for a device that is simulated thread by thread.
_TINY = ("--layers", "2", "--width", "8")
_TINY_SCALE = "65536"


def run_tests(report, root, programs, limit):
    """Much of a suite is compiling kernels and loops on the host, so on a real GPU
    some run side by side."""
    report.stage("Tests on the device")
    end = report.left - limit

    def outcome_of(suite):
        name = suite.partition("/")[2]
        return run([programs / "tests" / program_of(suite),
                    f"--source-file=*/{name}.cpp"], report.log(name),
                   report.left - end, root, **_of_device(report.gpu))

    some = suites(root, report.gpu)
    built = [suite for suite in some
             if (programs / "tests" / program_of(suite)).exists()]
    for suite in some:
        if suite not in built:
            report.left_out(f"{suite.partition('/')[2]}: not built")
    at_once = 1 if report.gpu.simulated else max(1, (os.cpu_count() or 1) // 2)
    with ThreadPoolExecutor(at_once) as pool:
        asked = {pool.submit(outcome_of, suite): suite for suite in built}
        try:
            for done in as_completed(asked):
                _tell(report, asked[done].partition("/")[2], done.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            end_all()
            raise


def _of_device(gpu):
    """What suites are told; a real GPU has time for more programs."""
    programs = {} if gpu.simulated else {"FUSEBOOK_DEVICE_PROGRAMS": "1000"}
    return {"FUSEBOOK_TEST_DEVICE": gpu.device, **programs}


def _tell(report, name, done):
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
