"""Configures and builds with what the machine has, without a network."""

import contextlib
import fcntl
import os
import re
import shutil
import sys

from running import run

PROGRAMS = ("bench_gpu",)
# Suites, as ROOM/SUITE; those of a room are one program. These come first, and a
# simulated GPU, which every test run has, gets no others.
FIRST = ("device/gpu_device_test", "device/device_test",
         "trace/gpu_numbers_test", "compile/cuda_graph_test",
         "tensor/device_copies_test", "tensor/sums_of_tensors_test")
_TESTS_A_DEVICE = re.compile(r'support/tested_device\.h|FUSEBOOK_TEST_DEVICE')


class CannotBuild(Exception):
    """Nothing can be captured without programs."""


def suites(root, gpu):
    """The suites for a device: of a real one, all that look at which is tested."""
    if gpu.simulated:
        return FIRST
    known = sorted((root / "tests").glob("*/*_test.cpp"))
    found = [f"{path.parent.name}/{path.stem}" for path in known
             if _TESTS_A_DEVICE.search(path.read_text("utf-8"))]
    return (*FIRST, *(suite for suite in found if suite not in FIRST))


def program_of(suite):
    """The program that a suite is part of."""
    return f"{suite.partition('/')[0]}_tests"


def exercises_of(root, recipe):
    """The names of the patches of a recipe."""
    folder = root / "docs" / "exercises" / recipe
    return sorted(path.stem for path in folder.glob("*.patch"))


def recipes_of(root):
    """The recipes that use a GPU: LibTorch's tensors lie in host memory. Those of
    several processes need MPI, without which the build leaves them out."""
    without = ['"fusebook/libtorch/']
    if not shutil.which("mpicxx") or not shutil.which("mpirun"):
        without.append('"fusebook/distributed/')
    texts = {path.stem: path.read_text("utf-8")
             for path in (root / "recipes").glob("*.cpp")}
    return sorted(name for name, text in texts.items()
                  if not any(word in text for word in without))


def build(report, root, recipes, limit):
    """Builds recipes and benchmark, then tests and exercises.

    Nothing can be done without the first; of the others, what fails holds up
    nobody. Returns the folder they are in.
    """
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
        _build_rest(report, root, folder, recipes, end)
    return folder


@contextlib.contextmanager
def _turn(root):
    """Calls of ./fusebook in one checkout build one after the other."""
    (root / "build").mkdir(exist_ok=True)
    with open(root / "build" / ".turn", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build_rest(report, root, folder, recipes, end):
    targets = [f"{recipe}.{exercise}" for recipe in recipes
               for exercise in exercises_of(root, recipe)]
    if _has_doctest(folder):
        programs = map(program_of, suites(root, report.gpu))
        targets = [*dict.fromkeys(programs), *targets]
    else:
        report.left_out("tests: doctest is not installed (doctest-dev; "
                        "the variable doctest_DIR may name a copy's folder "
                        "of doctestConfig.cmake)")
    if not targets:
        return
    for target in targets:  # what cannot be built shall not be an old one
        (folder / "tests" / target).unlink(missing_ok=True)
    try:
        _make(report, root, folder, targets, end, "build-rest",
              keep_going=True)
        report.good("tests and exercises")
    except CannotBuild as error:
        report.failed(f"not all of the tests and exercises: {error}")


def _configure(report, root, folder, generator, end):
    done = run(["cmake", "-S", root, "-B", folder, "-G", generator,
                "-DCMAKE_BUILD_TYPE=Release",
                # Whatever compiler there is, and whatever it is wary of.
                "-DFUSEBOOK_WERROR=OFF",
                f"-DFUSEBOOK_PYTHON={sys.executable}"],
               report.log("configure"), report.left - end, root)
    if done.status != 0:
        raise CannotBuild(f"configuring: {done.ending}; see {done.log}")


def _make(report, root, folder, targets, end, log, keep_going=False):
    jobs = str(len(os.sched_getaffinity(0)))
    words = ["cmake", "--build", folder, "-j", jobs, "--target", *targets]
    if keep_going:
        words += ["--", "-k0" if (folder / "build.ninja").exists() else "-k"]
    done = run(words, report.log(log), report.left - end, root)
    if done.status != 0:
        raise CannotBuild(f"building: {done.ending}; see {done.log}")


def _has_doctest(folder):
    text = (folder / "CMakeCache.txt").read_text(encoding="utf-8")
    return any(line.startswith("doctest_DIR:") and "NOTFOUND" not in line
               for line in text.splitlines())
