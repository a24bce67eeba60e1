"""Puts faults into a copy of the sources, one at a time, and runs the tests.

    python3 tests/mutants/mutants.py             every fault
    python3 tests/mutants/mutants.py WORD...     those with a word in the name
    python3 tests/mutants/mutants.py --here WORD...
                                                 in this checkout and its build
    python3 tests/mutants/mutants.py --list
    python3 tests/mutants/mutants.py --check     do they all still apply?

A fault that no suite notices has survived: a test is missing. The working tree
is only read, unless --here says otherwise: then each fault is put into it for as
long as its suites run, which takes seconds where a copy must be built first.
Exit code: 0 all were noticed, 1 one survived or no longer
applies, 2 a wrong command line.
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from faults import FAULTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "lib"))

import needs_of_tests  # noqa: E402
LEAST = 20
TEST_SECONDS = 600


def source_of(suite):
    """Where a suite is, as a pattern: python.numpy is one of the Python package,
    and distributed.4 one on four ranks."""
    folder, dot, name = suite.partition(".")
    if folder == "distributed" and name.isdigit():
        return "distributed/same_bits.cpp"
    return f"{folder}/{name}_test.py" if dot else f"**/{suite}.cpp"


def problems(root=ROOT):
    """Why the list is no good: nothing when it is."""
    found = []
    names = [fault.name for fault in FAULTS]
    found += [f"'{name}' appears twice" for name in sorted(set(names))
              if names.count(name) > 1]
    if len(FAULTS) < LEAST:
        found.append(f"only {len(FAULTS)} faults; at least {LEAST} are wanted")
    for fault in FAULTS:
        path = root / fault.file
        text = path.read_text() if path.is_file() else ""
        if (times := text.count(fault.old)) != 1:
            found.append(f"'{fault.name}': its text occurs {times} times in "
                         f"{fault.file}; write it anew in "
                         "tests/mutants/faults.py")
        if fault.old == fault.new or not fault.suites:
            found.append(f"'{fault.name}' changes nothing, or names no suite")
        for suite in fault.suites:
            if not any((root / "tests").glob(source_of(suite))):
                found.append(f"'{fault.name}': there is no suite {suite}")
    return found


def copy_sources(to):
    """Copies what git knows, and what is new; without git, all but build/."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others",
         "--exclude-standard"], capture_output=True, check=False)
    if listed.returncode != 0:
        shutil.copytree(ROOT, to, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("build", ".git"))
        return
    for name in filter(None, listed.stdout.split(b"\0")):
        source = ROOT / os.fsdecode(name)
        if not source.is_file():
            continue  # removed, but not yet from git
        target = to / os.fsdecode(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)


def make_copy(root):
    """The sources, configured for a build of their own."""
    copy_sources(root)
    (root / "build").mkdir()
    (root / "build/python").symlink_to(ROOT / "build/python")
    # Tests shall find the faults, not warnings of what is not used any more.
    command = ["cmake", "--preset", "release", "-DFUSEBOOK_LIBFUZZER=OFF",
               "-DFUSEBOOK_WERROR=OFF"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True,
                          check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


class Tree:
    """Configured sources; kernels are kept in `scratch`."""

    def __init__(self, root, scratch, jobs):
        self.root = root
        self.scratch = scratch
        self.jobs = jobs
        self.build_folder = root / "build/release"
        self.commands = needs_of_tests.commands(self.build_folder)

    def program_of(self, suite):
        if suite.startswith("distributed."):
            return pathlib.Path(self.commands[suite][-1]).name
        if "." in suite:
            return "fusebook_python"
        return pathlib.Path(self.commands[suite][0]).name

    def build(self, suites):
        """What the compiler says, if it says no."""
        programs = {self.program_of(suite) for suite in suites}
        done = subprocess.run(
            ["cmake", "--build", str(self.build_folder), "-j", self.jobs,
             "--target", *sorted(programs)], capture_output=True, text=True,
            check=False)
        return done.stdout[-3000:] if done.returncode else ""

    def passes(self, suite):
        return not self.what_fails(suite)

    def what_fails(self, suite):
        """How a suite goes red: nothing if it is green."""
        environment = {**os.environ,
                       "FUSEBOOK_CACHE_DIR": str(self.scratch / "kernel-cache")}
        # Suites that are killed must not leave children in our way.
        test = subprocess.Popen(self.commands[suite],
                                cwd=self.root, env=environment,
                                stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL,
                                start_new_session=True)
        try:
            return suite if test.wait(timeout=TEST_SECONDS) else ""
        except subprocess.TimeoutExpired:
            os.killpg(test.pid, 9)
            test.wait()
            return f"{suite} does not end"

    def judge(self, fault):
        """Whether a suite goes red, and which; or what else happened."""
        path = self.root / fault.file
        right = path.read_text()
        path.write_text(right.replace(fault.old, fault.new))
        try:
            for suite in fault.suites:
                if said := self.build([suite]):
                    if only_warnings(said):
                        return True, "the compiler warns"
                    return False, f"does not compile:\n{said}"
                if red := self.what_fails(suite):
                    return True, red
            return False, "no suite goes red: " + ", ".join(fault.suites)
        finally:
            path.write_text(right)


def only_warnings(said):
    """Whether nothing stands in the way but warnings, which are errors here."""
    errors = re.findall(r"\berror: .*", said)
    return bool(errors) and all("[-Werror" in error for error in errors)


def check_unchanged(tree, faults):
    suites = sorted({suite for fault in faults for suite in fault.suites})
    if said := tree.build(suites):
        sys.exit(f"the sources do not build:\n{said}")
    if red := [suite for suite in suites if not tree.passes(suite)]:
        sys.exit(f"red before anything was changed: {', '.join(red)}")


def check_here():
    """Nothing may be lost if a fault is left behind."""
    if not (ROOT / "build/release/build.ninja").is_file():
        sys.exit("--here needs a build: ./fusebook test")
    changed = subprocess.run(
        ["git", "-C", str(ROOT), "status", "--porcelain", "--",
         *sorted({fault.file for fault in FAULTS})],
        capture_output=True, text=True, check=True).stdout
    if changed:
        sys.exit(f"--here changes files; commit these first:\n{changed}")


def run(faults, jobs, here):
    killed = 0
    # So that the fault is taken out again.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    with tempfile.TemporaryDirectory(prefix="fusebook-mutants-") as folder:
        scratch = pathlib.Path(folder)
        root = ROOT if here else scratch
        if not here:
            make_copy(root)
        tree = Tree(root, scratch, jobs)
        check_unchanged(tree, faults)
        print(f"{len(faults)} faults; the suites pass without them", flush=True)
        for fault in faults:
            begin = time.monotonic()
            is_killed, how = tree.judge(fault)
            killed += is_killed
            print(f"{'killed  ' if is_killed else 'SURVIVED'}"
                  f"{time.monotonic() - begin:6.0f} s  {fault.file}: "
                  f"{fault.name} ({how})", flush=True)
        if here:  # the programs still have the faults
            tree.build({suite for fault in faults for suite in fault.suites})
    print(f"{killed} killed, {len(faults) - killed} survived")
    return 0 if killed == len(faults) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--here", action="store_true")
    parser.add_argument("--jobs", default=str(os.cpu_count() or 1))
    given = parser.parse_args()
    if found := problems():
        sys.exit("\n".join(found))
    if given.check:
        print(f"{len(FAULTS)} faults apply")
        return 0
    faults = [fault for fault in FAULTS
              if not given.words or any(word in fault.name + " " + fault.file
                                        for word in given.words)]
    if not faults:
        parser.error(f"no fault has {' or '.join(given.words)} in its name")
    if given.list:
        for fault in faults:
            print(f"{fault.file:30}{fault.name}")
        return 0
    if given.here:
        check_here()
    return run(faults, given.jobs, given.here)


if __name__ == "__main__":
    sys.exit(main())
