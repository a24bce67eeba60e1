"""Configures and builds with what the machine has, without a network."""

import contextlib
import fcntl
import os
import shutil

from running import run

PROGRAMS = ("bench_gpu",)
TESTS = ("gpu_device_test", "device_test", "gpu_numbers_test",
         "cuda_graph_test")


class CannotBuild(Exception):
    """Nothing can be captured without programs."""


def build(report, root, recipes, limit):
    """Builds programs, then tests. Returns the folder they are in."""
    report.stage("Building")
    ninja = shutil.which("ninja")
    if not shutil.which("cmake"):
        raise CannotBuild("cmake is not installed")
    if not ninja and not shutil.which("make"):
        raise CannotBuild("neither ninja nor make is installed")
    if not ninja:
        report.left_out("ninja is not installed: built with make")
    folder = root / "build" / ("release" if ninja else "release-make")
    end = report.left - limit
    with _turn(root):
        _configure(report, root, folder,
                   "Ninja" if ninja else "Unix Makefiles", end)
        _make(report, root, folder, [*recipes, *PROGRAMS], end, "build")
        report.good("recipes and benchmark")
        _build_tests(report, root, folder, end)
    return folder


@contextlib.contextmanager
def _turn(root):
    """Calls of ./fusebook in one checkout build one after the other."""
    (root / "build").mkdir(exist_ok=True)
    with open(root / "build" / ".turn", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build_tests(report, root, folder, end):
    if not _has_doctest(folder):
        report.left_out("tests: doctest is not installed (doctest-dev)")
        return
    try:
        _make(report, root, folder, TESTS, end, "build-tests")
        report.good("tests")
    except CannotBuild as error:
        report.failed(f"tests: {error}")


def _configure(report, root, folder, generator, end):
    done = run(["cmake", "-S", root, "-B", folder, "-G", generator,
                "-DCMAKE_BUILD_TYPE=Release"],
               report.log("configure"), report.left - end, root)
    if done.status != 0:
        raise CannotBuild(f"configuring: {done.ending}; see {done.log}")


def _make(report, root, folder, targets, end, log):
    jobs = str(len(os.sched_getaffinity(0)))
    done = run(["cmake", "--build", folder, "-j", jobs, "--target", *targets],
               report.log(log), report.left - end, root)
    if done.status != 0:
        raise CannotBuild(f"building: {done.ending}; see {done.log}")


def _has_doctest(folder):
    text = (folder / "CMakeCache.txt").read_text(encoding="utf-8")
    return any(line.startswith("doctest_DIR:") and "NOTFOUND" not in line
               for line in text.splitlines())
