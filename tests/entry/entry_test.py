"""Tests of the shell entry `./fusebook`, on a tiny checkout of its own.

The tiny checkout has the real entry and presets but recipes that only print
what they were given, so that everything is quick. Nothing is installed: where
an installation is tested, apt-get, sudo and id are stand-ins that write down
how they were called.
"""

import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import tempfile
import textwrap
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What a minimal system has, and nothing that ./fusebook has to install.
BASICS = ("awk basename cat cp dirname env flock head id mkdir nproc "
          "readlink rm sed sh sha256sum tr").split()
PRESETS = ROOT / "CMakePresets.json"

CMAKE_TOP = """
cmake_minimum_required(VERSION 3.25)
project(tiny LANGUAGES CXX)
add_subdirectory(recipes)
"""
CMAKE_RECIPES = """
foreach(name adam broken sgd)
  add_executable(${name} ${name}.cpp)
endforeach()
"""
# Prints its arguments; writes results where --json says.
ADAM = r"""
#include <cstdio>
#include <cstring>
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) std::printf("argument: %s\n", argv[i]);
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--json") != 0) continue;
    std::FILE* file = std::fopen(argv[i + 1], "w");
    if (file == nullptr) return 1;
    std::fputs("{\n  \"recipe\": \"NAME\",\n  \"device\": \"cpu\",\n"
               "  \"eager_us\": 61234.5,\n  \"compiled_us\": 25000,\n"
               "  \"speedup\": 2.449,\n  \"eager_launches\": 130,\n"
               "  \"compiled_launches\": 1,\n  \"compilations\": 2,\n"
               "  \"bitwise_equal\": true\n}\n", file);
    std::fclose(file);
  }
}
"""
# Runs on ranks of MPI, or seems to.
SHARED = r"""
#if 0
#include "fusebook/distributed/sharded_optimizer.h"
#endif
""" + ADAM.replace("NAME", "shared")
# Says how it was called, and starts one process.
MPIRUN = """#!/bin/sh
[ "$1" != --version ] || exec echo "mpirun (Open MPI) 4.1"
echo "FUSEBOOK_THREADS=$FUSEBOOK_THREADS mpirun $*"
while [ ! -x "$1" ]; do shift; done
exec "$@"
"""
# Ends with the exit code it is told, or waits to be interrupted.
BROKEN = r"""
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
int main(int argc, char** argv) {
  if (argc > 2) return std::atoi(argv[2]);
  std::puts("waiting");
  std::fflush(stdout);
  sleep(30);
}
"""


has_doctest = unittest.skipUnless(
    pathlib.Path("/usr/include/doctest").is_dir(), "doctest is not installed")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def make_checkout(folder):
    """A tiny checkout in `folder`."""
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "fusebook", folder / "fusebook")
    shutil.copytree(ROOT / "tools", folder / "tools")
    shutil.copy(PRESETS, folder / "CMakePresets.json")
    write(folder / "CMakeLists.txt", CMAKE_TOP)
    write(folder / "recipes" / "CMakeLists.txt", CMAKE_RECIPES)
    for name in ("adam", "sgd"):
        write(folder / "recipes" / f"{name}.cpp", ADAM.replace("NAME", name))
    write(folder / "recipes" / "broken.cpp", BROKEN)
    return folder


class Entry(unittest.TestCase):
    """Helpers: a scratch folder, a tiny checkout, calls."""

    where = "checkout"

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="fusebook-entry-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.checkout = make_checkout(self.scratch / self.where)
        self.environment = {
            name: value for name, value in os.environ.items()
            if name not in ("CXX", "FUSEBOOK_COMPLETE", "FUSEBOOK_PYTHON",
                            "FUSEBOOK_CHROMIUM", "FUSEBOOK_CACHE_DIR")}

    def call(self, *arguments, entry=None, **options):
        return subprocess.run(
            [str(entry or self.checkout / "fusebook"), *arguments],
            capture_output=True, text=True, stdin=subprocess.DEVNULL,
            env=self.environment, timeout=100, check=False, **options)

    def expect(self, status, *arguments, **options):
        done = self.call(*arguments, **options)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def bare_path(self, **stand_ins):
        """A PATH with a minimal system's programs and the stand-ins."""
        folder = self.scratch / "bin"
        folder.mkdir(exist_ok=True)
        for name in BASICS:
            found = shutil.which(name)
            if found and not (folder / name).exists():
                (folder / name).symlink_to(found)
        for name, text in stand_ins.items():
            path = folder / name.replace("_", "-")
            path.unlink(missing_ok=True)
            path.write_text("#!/bin/sh\n" + text, encoding="utf-8")
            path.chmod(0o755)
        self.environment["PATH"] = str(folder)

    def logged(self):
        path = self.scratch / "calls"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def log_call(self, name):
        return f'echo "{name} $*" >>"{self.scratch}/calls"\n'


class CommandLine(Entry):
    def test_unknown_words_name_the_nearest_and_exit_2(self):
        for arguments, wanted in (
                (["rnu"], "Did you mean 'run'?"),
                (["tset"], "Did you mean 'test'?"),
                (["frobnicate"], "Known: run test lint docs verify capture new"),
                (["run", "adm"], "Did you mean 'adam'? Known: adam broken sgd"),
                (["run", "adam", "nothing at all"], "Known: adam broken sgd"),
                (["run", ""], "Known: adam broken sgd"),
                (["verify", "zzz"], "Known: adam broken sgd"),
                (["verify", "--frsh"], "'--frsh'"),
                (["capture", "--frsh"], "Did you mean '--fresh'?"),
                (["capture", "--device"], "--device needs a name"),
                (["capture", "bench", "adam"], "measure the library"),
                (["new"], "new needs the name of a recipe"),
                (["new", "a", "b"], "new makes one recipe: 'a', or 'b'?"),
                (["new", "a", "--titel", "b"], "Did you mean '--title'?"),
                (["new", "a", "--title"], "--title needs a title"),
                (["lint", "--fixx"], "Did you mean '--fix'?"),
                (["docs", "--prot"], "Did you mean '--port'?"),
                (["docs", "--port", "0"], "1 to 65535"),
                (["docs", "--port", "70000"], "1 to 65535"),
                (["docs", "--port", "x"], "1 to 65535"),
                (["docs", "--port"], "--port needs a number"),
                (["clean", "--all"], "'--all'"),
                (["doctor", "now"], "does not take 'now'"),
                (["bench", "now"], "does not take 'now'"),
                (["bench", "--ranks"], "--ranks needs a number of at least 2"),
                (["bench", "--ranks=1"], "--ranks needs a number of at least 2"),
                (["bench", "--ranks", "x"], "--ranks needs a number of at least 2"),
                (["run", "--preset", "relase"], "Did you mean 'release'?"),
                (["run", "--preset"], "--preset needs a name"),
                (["run", "--json", "x"], "use it with one recipe"),
                (["run", "adam", "--ranks"], "--ranks needs a number"),
                (["run", "adam", "--ranks", "0"], "1 to 9999, not '0'"),
                (["run", "adam", "--ranks=two"], "1 to 9999, not 'two'"),
                (["run", "adam", "--ranks", "2"], "adam runs in one process"),
                (["run", "--ranks", "2"], "adam runs in one process")):
            with self.subTest(arguments=arguments):
                done = self.expect(2, *arguments)
                self.assertIn(wanted, done.stderr)
                self.assertEqual(done.stdout, "")
        self.assertFalse((self.checkout / "build").exists())

    def test_capture_on_a_gpu_is_a_program_of_its_own(self):
        write(self.checkout / "tests" / "gpu_capture" / "__main__.py",
              "import sys\nprint(sys.argv[1:])\nsys.exit(3)\n")
        done = self.expect(3, "capture", "--device=cuda:1", "--out", "x y",
                           "adam")
        self.assertEqual(done.stdout, str(["--device", "cuda:1", "--out",
                                           "x y", "adam"]) + "\n")
        done = self.expect(3, "capture", "--device", "cuda")
        self.assertEqual(done.stdout, str(["--device", "cuda", "adam",
                                           "broken", "sgd"]) + "\n")
        self.assertFalse((self.checkout / "build").exists())
        done = self.expect(3, "capture", "--device", "cuda", "--only",
                           "bench,peers", "adam")
        self.assertEqual(done.stdout, str(["--device", "cuda", "--only",
                                           "bench,peers", "adam"]) + "\n")
        self.expect(2, "capture", "--out", "x")
        self.expect(2, "capture", "--only", "bench")

    def test_new_asks_before_it_builds_and_then_captures(self):
        write(self.checkout / "docs" / "fusebook_docs" / "__main__.py",
              "import sys\nprint(sys.argv[1:])\n"
              "sys.exit(2 if '--recipe=bad' in sys.argv else 0)\n")
        done = self.expect(2, "new", "bad", "--title", "A b")
        self.assertEqual(done.stdout, str(["new", "--recipe=bad", "--title=A b",
                                           "--check"]) + "\n")
        self.assertFalse((self.checkout / "build").exists())
        done = self.expect(0, "new", "adam", "--no-install")
        said = [line for line in done.stdout.split("\n")
                if line.startswith("['")]
        self.assertEqual(said[:2], [str(["new", "--recipe=adam", "--check"]),
                                    str(["new", "--recipe=adam"])])
        self.assertEqual([line.split("'")[1] for line in said[2:]],
                         ["rebase-patch", "capture", "limits", "front"])
        self.assertIn("recipes/adam.cpp is a page now", done.stdout)

    def test_help(self):
        self.bare_path(apt_get=self.log_call("apt-get"), id="echo 0\n")
        for arguments in ([], ["help"], ["--help"], ["-h"], ["run", "--help"],
                          *([command, "--help"] for command in (
                              "test", "lint", "docs", "verify", "capture", "new",
                              "doctor", "clean")), ["test", "adam", "-h"]):
            done = self.expect(0, *arguments)
            self.assertIn("usage: ./fusebook COMMAND", done.stdout)
        self.assertEqual(self.logged(), "")


class Missing(Entry):
    def test_no_install_says_what_is_missing_and_leaves_nothing(self):
        self.bare_path(apt_get=self.log_call("apt-get"), id="echo 0\n")
        done = self.expect(1, "run", "--no-install")
        self.assertIn("Debian packages: g++ cmake ninja-build\n", done.stdout)
        self.assertIn("apt-get install -y --no-install-recommends "
                      "g++ cmake ninja-build\n", done.stderr)
        self.assertEqual(self.logged(), "")
        self.assertFalse((self.checkout / "build").exists())

    def test_ranks_need_mpi(self):
        self.bare_path(apt_get=self.log_call("apt-get"), id="echo 0\n")
        done = self.expect(1, "bench", "--ranks", "2", "--no-install")
        self.assertIn("libopenmpi-dev openmpi-bin", done.stdout)
        self.assertFalse((self.checkout / "build").exists())

    def test_a_recipe_on_ranks_names_the_packages_of_mpi(self):
        self.bare_path(apt_get=self.log_call("apt-get"), id="echo 0\n")
        write(self.checkout / "recipes" / "shared.cpp", SHARED)
        done = self.expect(1, "run", "shared", "--ranks", "2", "--no-install")
        self.assertIn("libopenmpi-dev openmpi-bin", done.stderr)
        done = self.expect(1, "run", "--no-install")
        self.assertIn("shared is left out: MPI is not installed "
                      "(libopenmpi-dev openmpi-bin)\n", done.stderr)
        self.assertNotIn("libopenmpi-dev", done.stdout)

    def test_root_installs_without_sudo(self):
        self.bare_path(apt_get=self.log_call("apt-get") +
                       'case "$*" in *install*) exit 100 ;; esac\n',
                       id="echo 0\n", sudo=self.log_call("sudo"))
        done = self.expect(1, "run", "--yes")
        calls = self.logged().splitlines()
        self.assertEqual(len(calls), 2, calls)
        self.assertRegex(calls[0], "^apt-get .*update$")
        self.assertRegex(calls[1], "^apt-get .*install -y "
                         "--no-install-recommends g[+][+] cmake ninja-build$")
        self.assertIn("apt-get failed", done.stderr)
        self.assertLess(done.stdout.index("Debian packages:"),
                        done.stdout.index("Installing"))

    def test_a_user_goes_through_sudo(self):
        self.bare_path(apt_get="exit 1\n", id="echo 1000\n",
                       sudo=self.log_call("sudo") + "exit 1\n")
        done = self.expect(1, "run")
        self.assertRegex(self.logged(), "^sudo -n env .* update\n$")
        self.assertIn("By hand: sudo -n apt-get install", done.stderr)

    def test_a_user_without_sudo_is_told_the_command(self):
        self.bare_path(apt_get=self.log_call("apt-get"), id="echo 1000\n")
        done = self.expect(1, "run", "--yes")
        self.assertEqual(self.logged(), "")
        self.assertIn("(as root) apt-get install -y", done.stderr)

    def test_another_system_is_told_the_packages(self):
        self.bare_path(id="echo 0\n")
        done = self.expect(1, "run")
        self.assertIn("this system has no apt-get", done.stderr)
        self.assertIn("g++ cmake ninja-build", done.stderr)

    def test_on_a_terminal_it_asks(self):
        self.bare_path(apt_get=self.log_call("apt-get"), id="echo 0\n")
        ours, theirs = pty.openpty()
        child = subprocess.Popen([str(self.checkout / "fusebook"), "run"],
                                 stdin=theirs, stdout=theirs, stderr=theirs,
                                 env=self.environment)
        os.close(theirs)
        os.write(ours, b"n\n")
        seen = b""
        try:
            while data := os.read(ours, 1000):
                seen += data
        except OSError:  # how a terminal says that it was closed
            pass
        os.close(ours)
        self.assertEqual(child.wait(timeout=30), 1)
        self.assertIn(b"Install them now? [Y/n]", seen)
        self.assertEqual(self.logged(), "")

    def test_doctor_says_the_command(self):
        self.bare_path(apt_get=self.log_call("apt-get"), id="echo 0\n")
        done = self.expect(1, "doctor")
        self.assertRegex(done.stdout, r"missing +g\+\+")
        self.assertRegex(done.stdout, "missing +cmake")
        self.assertRegex(done.stderr, "apt-get install -y .*g[+][+] cmake")
        self.assertEqual(self.logged(), "")

    def test_doctor_is_content_when_all_is_there(self):
        self.environment["FUSEBOOK_CHROMIUM"] = "true"
        done = self.call("doctor")
        self.assertRegex(done.stdout, r"ok +g\+\+ +\d+\.\d+")
        self.assertRegex(done.stdout, r"ok +cmake +3\.\d+")
        self.assertRegex(done.stdout, r"not yet +docs")
        self.assertEqual(done.returncode == 0,
                         "Nothing is missing" in done.stdout, done.stdout)

    def test_doctor_knows_devices_without_a_program_of_ours(self):
        self.bare_path(id="echo 0\n", ldconfig="echo libcuda.so.1\n",
                       nvcc="echo Cuda compilation tools, release 12.4, V1\n")
        for name in ("FUSEBOOK_CUDA_HOME", "CUDA_HOME"):
            self.environment[name] = str(self.scratch)
        devices = self.expect(1, "doctor").stdout.split("Devices:\n")[1]
        self.assertRegex(devices, r"ok +cpu ")
        self.assertRegex(devices, r"found +cuda +libcuda\.so\.1")
        self.assertRegex(devices, r"none +NVRTC .*--with-cuda")
        self.assertRegex(devices, r"ok +nvcc +12\.4 \(.*/nvcc\)")
        self.assertRegex(devices, r"none +compute-sanitizer ")
        self.assertRegex(devices, r"ok +cuda-sim ")
        self.assertIn("./fusebook test builds a program that tells more",
                      devices)

    def test_doctor_asks_the_program_that_was_built(self):
        report = self.checkout / "build" / "release" / "tests" / "gpu_report"
        write(report, "#!/bin/sh\necho '  ok       cuda      a driver'\n")
        report.chmod(0o755)
        self.bare_path(id="echo 0\n", ldconfig="exit 1\n")
        devices = self.expect(1, "doctor").stdout.split("Devices:\n")[1]
        self.assertIn("  ok       cuda      a driver\n", devices)
        self.assertNotIn("builds a program that tells more", devices)

    def test_too_old_is_not_ok(self):
        self.environment["CXX"] = str(self.scratch / "old c++")
        path = self.scratch / "old c++"
        path.write_text("#!/bin/sh\necho 9.4.0\n", encoding="utf-8")
        path.chmod(0o755)
        done = self.expect(1, "doctor")
        self.assertRegex(done.stdout, r"too old +g\+\+ +9\.4\.0")
        self.assertIn("set CXX or PATH", done.stderr)


class Run(Entry):
    where = "a (first) book for $5 #1"

    def test_all_recipes_one_recipe_and_failures(self):
        """One build serves all of these: they share it to be quick."""
        self.all_end_with_a_table()
        self.one_gets_the_options()
        self.exit_codes_pass_through()
        self.on_ranks()
        self.interrupted()
        self.interrupted_while_building()
        self.cxx_that_is_no_program()

    def all_end_with_a_table(self):
        (self.checkout / "recipes" / "broken.cpp").rename(
            self.scratch / "broken.cpp")
        recipes = self.checkout / "recipes" / "CMakeLists.txt"
        recipes.write_text(CMAKE_RECIPES.replace("broken", ""),
                           encoding="utf-8")
        done = self.expect(0, "run", "--threads", "2")
        table = done.stdout[done.stdout.rindex("recipe "):].splitlines()
        self.assertEqual([line.split() for line in table], [
            ["recipe", "device", "eager", "compiled", "ratio", "launches",
             "per", "step", "compilations"],
            *[[name, "cpu", "61.23", "ms", "25.00", "ms", "2.45x", "130",
               "->", "1", "2"] for name in ("adam", "sgd")]])
        self.assertEqual(done.stdout.count("argument: --threads"), 2)

        sgd = self.checkout / "recipes" / "sgd.cpp"
        whole = sgd.read_text(encoding="utf-8")
        short = whole
        for line in ('"  \\"eager_us\\": 61234.5,\\n  \\"compiled_us\\": 25000,'
                     '\\n"', '"  \\"speedup\\": 2.449,\\n  '
                     '\\"eager_launches\\": 130,\\n"'):
            self.assertIn(line, short)
            short = short.replace(line, '""')
        sgd.write_text(short, encoding="utf-8")
        done = self.expect(0, "run")
        self.assertEqual(done.stdout.splitlines()[-1].split(),
                         ["sgd", "cpu", "-", "-", "-", "1", "2"])
        sgd.write_text(whole, encoding="utf-8")
        self.expect(0, "run")

        again = self.expect(0, "run")
        self.assertNotIn("Configuring", again.stdout)
        self.assertIn("no work to do", again.stdout)

        (self.scratch / "broken.cpp").rename(
            self.checkout / "recipes" / "broken.cpp")
        recipes.write_text(CMAKE_RECIPES, encoding="utf-8")

    def one_gets_the_options(self):
        link = self.scratch / "a link"
        link.symlink_to(self.checkout / "fusebook")
        elsewhere = self.scratch / "else where"
        elsewhere.mkdir()
        done = self.expect(0, "run", "recipes/adam.cpp", "--layers", "a b",
                           "--json", "out.json", entry=link, cwd=elsewhere)
        self.assertIn("argument: a b\n", done.stdout)
        self.assertNotIn("compilations", done.stdout)
        result = json.loads((elsewhere / "out.json").read_text())
        self.assertEqual(result["recipe"], "adam")

    def exit_codes_pass_through(self):
        for status in (1, 2, 3):
            self.expect(status, "run", "broken", "--status", str(status))
        done = self.expect(3, "run", "--status", "3")
        self.assertIn("failed: broken (exit code 3)", done.stderr)
        self.assertIn("adam ", done.stdout[done.stdout.rindex("recipe "):])
        done = self.expect(130, "run", "broken", "sgd", "--status", "130")
        self.assertNotIn("==> sgd", done.stdout)

    def on_ranks(self):
        recipes = self.checkout / "recipes"
        write(recipes / "shared.cpp", SHARED)
        write(recipes / "CMakeLists.txt", CMAKE_RECIPES.replace("sgd", "sgd shared"))
        folder = self.scratch / "mpi"
        for name in ("mpirun", "mpicxx"):
            write(folder / name, MPIRUN)
            (folder / name).chmod(0o755)
        path = self.environment["PATH"]
        self.environment["PATH"] = f"{folder}{os.pathsep}{path}"
        done = self.expect(0, "run", "shared", "--layers", "a b", "--ranks", "3")
        called = re.search("^FUSEBOOK_THREADS=1 mpirun -n 3 --oversubscribe .*$",
                           done.stdout, re.M)[0]
        self.assertIn("argument: a b\n", done.stdout)
        self.assertNotIn("argument: --ranks", done.stdout)
        said = re.search("^started by: env (.*)$", done.stdout, re.M)[1]
        self.assertTrue(called.startswith(said.replace("NO_COLOR=1 ", "")), called)
        self.assertEqual("--allow-run-as-root" in said, os.getuid() == 0)
        done = self.expect(0, "run", "shared", "--layers", "2")
        self.assertNotIn("mpirun", done.stdout)
        done = self.expect(2, "run", "shared", "adam", "--ranks", "3")
        self.assertIn("--ranks: adam runs in one process; those that run in "
                      "several: shared", done.stderr)
        self.environment["PATH"] = path
        (recipes / "shared.cpp").unlink()
        write(recipes / "CMakeLists.txt", CMAKE_RECIPES)

    def interrupted(self):
        child = subprocess.Popen(
            [str(self.checkout / "fusebook"), "run", "broken"],
            stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
            env=self.environment, start_new_session=True)
        for line in child.stdout:
            if line == "waiting\n":
                break
        os.killpg(child.pid, signal.SIGINT)
        child.stdout.close()
        self.assertEqual(child.wait(timeout=20), 130)

    def interrupted_while_building(self):
        slow = self.scratch / "c++"
        write(slow, "#!/bin/sh\necho compiling >&2\nsleep 30\n")
        slow.chmod(0o755)
        rules = (self.checkout / "build" / "release" / "CMakeFiles" /
                 "rules.ninja")
        rules.write_text(rules.read_text().replace(
            "/usr/bin/c++", str(slow)))
        self.assertIn(str(slow), rules.read_text())
        source = self.checkout / "recipes" / "adam.cpp"
        source.write_text(source.read_text() + "\n", encoding="utf-8")
        for sign, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            child = subprocess.Popen(
                [str(self.checkout / "fusebook"), "run", "adam"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                stdin=subprocess.DEVNULL, env=self.environment,
                start_new_session=True)
            for line in child.stdout:
                if "Building (release)" in line:
                    break
            time.sleep(0.5)
            os.killpg(child.pid, sign)
            errors = child.communicate(timeout=20)[1]
            self.assertEqual(child.returncode, status, errors)
            self.assertNotIn("the build failed", errors)

    def cxx_that_is_no_program(self):
        self.expect(0, "clean")
        self.assertFalse((self.checkout / "build").exists())
        self.environment["CXX"] = "no such; touch hacked"
        done = self.expect(2, "run", cwd=self.scratch)
        self.assertIn("CXX is 'no such; touch hacked'", done.stderr)
        self.assertFalse((self.scratch / "hacked").exists())


# Folders to build in, with names that a shell, CMake, Ninja or a compiler could
# stumble over.
BEARABLE = (
    "it's mine & yours", "two words", " leading and trailing ",
    "$(touch planted)", "`touch planted`", "$HOME $PATH", "&& touch planted",
    "> planted", "< planted", "*", "? [a-z]", "{a,b}", "-o", "--help",
    "@response", "#hash", "~", "%s%n%d", "a:b=c,d", "!important", "(brackets)",
    "kernel.cpp:3:1: error: no", "No space left on device",
    "\u00fcn\u00efc\u00f6d\u00e9 \u7f16\u8bd1", os.fsdecode(b"not utf-8 \xff\xfe\x80"),
    "x" * 200)
UNBEARABLE = (
    "a;b", 'a "book"', "mixed '\" \"' quotes", "; touch planted ;",
    "back\\slash", "| touch planted", "new\nline", "carriage\rreturn",
    "tab\there", "\x1b[31mred", "${HOME}", "$env{HOME}")


class HostilePaths(Entry):
    def test_thirty(self):
        self.assertGreaterEqual(len(BEARABLE) + len(UNBEARABLE), 30)

    def check(self, number, name, check_one):
        parent = self.scratch / str(number)
        folder = make_checkout(parent / name)
        with self.subTest(name=name):
            check_one(folder, parent)
            self.assertEqual(os.listdir(parent), [name])

    def runs(self, folder, parent):
        done = self.expect(0, "run", "adam", "--greeting", folder.name,
                           entry=folder / "fusebook", cwd=parent,
                           errors="surrogateescape")
        self.assertIn(f"argument: {folder.name}\n", done.stdout)

    def is_refused(self, folder, parent):
        done = self.expect(1, "run", entry=folder / "fusebook", cwd=parent)
        self.assertIn("CMake cannot build in a folder", done.stderr)
        self.assertFalse((folder / "build" / "release").exists())

    def test_names_that_are_just_names(self):
        for number, name in enumerate(BEARABLE):
            self.check(number, name, self.runs)

    def test_paths_that_cmake_cannot_bear_are_refused(self):
        for number, name in enumerate(UNBEARABLE):
            self.check(number, name, self.is_refused)


class Cleaning(Entry):
    def test_only_compiled_kernels_leave_the_cache(self):
        cache = self.scratch / "cache"
        kernel = cache / "0123456789abcdef.fbk"
        other = cache / "letter to a friend.fbk"
        for path in (kernel, other):
            write(path, "x")
        self.environment["FUSEBOOK_CACHE_DIR"] = str(cache)
        self.environment["XDG_CACHE_HOME"] = str(self.scratch / "user")
        linted = self.scratch / "user" / "fusebook-lint" / "0123"
        write(linted, "")
        write(self.checkout / "build" / "file", "x")
        self.expect(0, "clean")
        self.assertFalse((self.checkout / "build").exists())
        self.assertTrue(kernel.exists() and linted.exists())
        self.expect(0, "clean", "--cache")
        self.assertFalse(linted.exists())
        self.assertFalse(kernel.exists())
        self.assertTrue(other.exists())


class Environments(Entry):
    def setUp(self):
        super().setUp()
        # A stand-in for python3: `-m venv FOLDER` makes an environment whose
        # python writes its calls down, and fails as long as "offline" exists.
        inner = (self.log_call("python") +
                 f'[ ! -e "{self.scratch}/offline" ]\n')
        write(self.scratch / "inner", "#!/bin/sh\n" + inner)
        self.python = self.scratch / "python"
        write(self.python, textwrap.dedent(f"""\
            #!/bin/sh
            case $1 in -m) ;; -B) exec python3 "$@" ;; *) exit 0 ;; esac
            for folder; do :; done
            mkdir -p "$folder/bin" "$folder/lib/python3.11/site-packages"
            cp "{self.scratch}/inner" "$folder/bin/python"
            chmod +x "$folder/bin/python"
            """))
        self.python.chmod(0o755)
        self.environment["FUSEBOOK_PYTHON"] = str(self.python)
        self.pins = self.checkout / "docs" / "requirements.txt"
        write(self.pins, "sphinx==8.2.3\n")

    def installs(self):
        return self.logged().count("install")

    def test_made_once_and_again_when_a_pin_changes(self):
        done = self.expect(0, "docs")
        self.assertIn("docs/requirements.txt", done.stdout)
        self.assertIn(f"-r {self.pins}", self.logged())
        self.assertIn("docs/fusebook_docs site --out", self.logged())
        self.assertEqual(self.installs(), 1)
        self.expect(0, "docs")
        self.assertEqual(self.installs(), 1)
        write(self.pins, "sphinx==8.2.4\n")
        self.expect(0, "docs")
        self.assertEqual(self.installs(), 2)

    @has_doctest
    def test_one_pip_serves_all_and_pages_use_what_docs_have(self):
        for name in ("requirements-test.txt", "requirements.txt"):
            write(self.checkout / "docs" / name, f"{name}==1\n")
        tests = self.checkout / "tests"
        write(tests / "CMakeLists.txt",
              "add_test(NAME pages COMMAND sh "
              "${CMAKE_CURRENT_SOURCE_DIR}/launch.sh environment pages)\n")
        write(tests / "launch.sh", "exit 0\n")
        with open(self.checkout / "CMakeLists.txt", "a",
                  encoding="utf-8") as file:
            file.write("enable_testing()\nadd_subdirectory(tests)\n")
        self.environment["FUSEBOOK_CHROMIUM"] = "true"
        self.expect(0, "test", "pages")
        python = self.checkout.resolve() / "build" / "python"
        calls = self.logged().splitlines()
        for name, call in zip(("docs", "pages"), calls, strict=True):
            self.assertIn(f"--python {python}/{name}/bin/python", call)
        beside = python / "pages" / "lib" / "python3.11" / "site-packages"
        shared = beside / (beside / "docs.pth").read_text().strip()
        self.assertEqual(shared.resolve(),
                         python / "docs" / "lib/python3.11/site-packages")

    def test_half_installed_is_not_installed(self):
        (self.scratch / "offline").touch()
        done = self.expect(1, "docs")
        self.assertIn("cannot install the Python packages", done.stderr)
        self.assertNotIn("sphinx", self.logged())
        (self.scratch / "offline").unlink()
        self.expect(0, "docs")
        self.assertEqual(self.installs(), 2)

    def bring_nvrtc(self):
        """From now on every environment has what CUDA's packages bring."""
        found = "lib/python3.11/site-packages/nvidia/cu13/lib"
        text = self.python.read_text(encoding="utf-8")
        write(self.python, text + textwrap.dedent(f"""\
            mkdir -p "$folder/{found}"
            : >"$folder/{found}/libnvrtc.so.13"
            """))
        return found

    def test_with_cuda_gets_its_packages_and_tells_cmake(self):
        found = self.bring_nvrtc()
        for name in ("cuda", "cublas"):
            write(self.checkout / "tests" / f"requirements-{name}.txt",
                  f"{name}==1\n")
        done = self.expect(0, "run", "adam", "--with-cuda")
        self.assertIn("tests/requirements-cublas.txt", done.stdout)
        self.assertNotIn("--with-cuda", done.stdout)  # is no recipe's option
        self.assertEqual(self.installs(), 2)
        cache = self.checkout / "build" / "release" / "CMakeCache.txt"
        line = (f"={self.checkout.resolve()}/build/python/cuda/{found}\n")
        self.assertRegex(cache.read_text(encoding="utf-8"),
                         "FUSEBOOK_NVRTC_FOLDER:[A-Z]+" + re.escape(line))
        for options in (["--with-cuda"], []):
            done = self.expect(0, "run", "adam", *options)
            self.assertNotIn("Configuring", done.stdout)
        self.assertEqual(self.installs(), 2)

    def test_packages_without_nvrtc_are_noticed(self):
        done = self.expect(1, "run", "adam", "--with-cuda")
        self.assertIn("contain no libnvrtc", done.stderr)

    def test_with_cuda_configures_what_was_configured_without(self):
        self.bring_nvrtc()
        self.expect(0, "run", "adam")
        self.assertEqual(self.installs(), 0)
        done = self.expect(1, "run", "adam", "--with-cuda", "--no-install")
        self.assertIn("into build/python/cuda:", done.stdout)
        done = self.expect(0, "run", "adam", "--with-cuda")
        self.assertIn("Configuring", done.stdout)

    def test_no_install_makes_none(self):
        done = self.expect(1, "docs", "--no-install")
        self.assertIn("Python packages, into build/python/docs", done.stdout)
        self.assertEqual(self.logged(), "")


CMAKE_TESTS = """
enable_testing()
set(launch sh ${CMAKE_CURRENT_SOURCE_DIR}/launch.sh)
foreach(name broken_test good_test)
  add_executable(${name} ${name}.cpp)
  add_test(NAME ${name} COMMAND ${name})
endforeach()
add_executable(other ${PROJECT_SOURCE_DIR}/recipes/sgd.cpp)
add_test(NAME kept COMMAND sh -c "exec \\"$0\\" kept" $<TARGET_FILE:other>)
add_test(NAME no.program COMMAND ${launch} environment toy)
add_executable(apart EXCLUDE_FROM_ALL good_test.cpp)
add_test(NAME all_and_more COMMAND true ${PROJECT_BINARY_DIR} $<TARGET_FILE:other>
                                   $<TARGET_FILE:apart>)
set_tests_properties(good_test kept PROPERTIES LABELS "unit")
set_tests_properties(good_test PROPERTIES FIXTURES_REQUIRED kept)
set_tests_properties(kept PROPERTIES FIXTURES_SETUP kept)
"""


@has_doctest
class Choosing(Entry):
    """`./fusebook test` of some tests, where not all of them can be built."""

    def setUp(self):
        super().setUp()
        tests = self.checkout / "tests"
        write(tests / "CMakeLists.txt", CMAKE_TESTS)
        write(tests / "good_test.cpp", "int main() {}\n")
        write(tests / "broken_test.cpp", "#error this cannot be built\n")
        write(tests / "launch.sh", "[ -e \"$(dirname \"$0\")/../build/python/$2"
              "/ready\" ]\n")
        write(tests / "requirements-toy.txt", "toy==1\n")
        with open(self.checkout / "CMakeLists.txt", "a",
                  encoding="utf-8") as file:
            file.write("enable_testing()\nadd_subdirectory(tests)\n")
        # Makes environments that install nothing; else it is the real one.
        write(self.scratch / "inner", "#!/bin/sh\n" + self.log_call("python"))
        stand_in = self.scratch / "python"
        write(stand_in, textwrap.dedent(f"""\
            #!/bin/sh
            [ "$1" = -m ] || exec python3 "$@"
            for folder; do :; done
            mkdir -p "$folder/bin" "$folder/lib/python3.11/site-packages"
            cp "{self.scratch}/inner" "$folder/bin/python"
            chmod +x "$folder/bin/python"
            """))
        stand_in.chmod(0o755)
        self.environment["FUSEBOOK_PYTHON"] = str(stand_in)

    def built(self):
        folder = self.checkout / "build" / "release" / "tests"
        return {name for name in ("broken_test", "good_test", "other")
                if (folder / name).exists()}

    def test_only_what_they_need_is_built_and_installed(self):
        self.refuses_what_is_no_test()
        self.one_brings_what_it_stands_on()
        self.labels_and_patterns()
        self.packages_come_when_a_test_needs_them()
        self.new_ones_are_found()
        self.telling_builds_nothing()
        self.what_cannot_be_built_is_said()
        self.what_is_apart_is_built_with_all()

    def refuses_what_is_no_test(self):
        for arguments, wanted in (
                (["good_tset"], "Did you mean 'good_test'?"),
                (["good_test", "-LE", "unit"], "exclude the test 'good"),
                (["-R", "nothing"], "these options choose no test"),
                (["x; touch y"], "unknown test 'x; touch y'")):
            self.assertIn(wanted, self.expect(2, "test", *arguments).stderr)
        self.assertEqual(self.built(), set())

    def one_brings_what_it_stands_on(self):
        done = self.expect(0, "test", "tests/good_test.cpp")
        self.assertIn("100% tests passed, 0 tests failed out of 2",
                      done.stdout)
        self.assertEqual(self.built(), {"good_test", "other"})
        self.assertFalse((self.checkout / "build" / "python").exists())

    def labels_and_patterns(self):
        self.expect(0, "clean")
        self.expect(0, "test", "-R", "^kept")
        self.assertEqual(self.built(), {"other"})
        self.expect(0, "test", "-L", "unit")
        self.assertEqual(self.built(), {"good_test", "other"})

    def packages_come_when_a_test_needs_them(self):
        self.assertEqual(self.logged(), "")
        done = self.expect(1, "test", "no.program", "--no-install")
        self.assertIn("into build/python/toy", done.stdout)
        self.expect(0, "test", "no.program", "-j", "2")
        self.assertIn("requirements-toy.txt", self.logged())

    def new_ones_are_found(self):
        tests = self.checkout / "tests" / "CMakeLists.txt"
        tests.write_text(CMAKE_TESTS + "add_test(NAME late COMMAND true)\n",
                         encoding="utf-8")
        self.assertIn("out of 1", self.expect(0, "test", "late").stdout)

    def telling_builds_nothing(self):
        self.expect(0, "clean")
        self.assertIn("Total Tests: 6", self.expect(0, "test", "-N").stdout)
        self.assertEqual(self.built(), set())

    def what_cannot_be_built_is_said(self):
        done = self.expect(1, "test", "broken_test")
        self.assertIn("this cannot be built", done.stdout)
        self.assertIn("the build failed", done.stderr)

    def what_is_apart_is_built_with_all(self):
        done = self.expect(1, "test", "all_and_more")  # of which one cannot be built
        self.assertIn("Building (release): all tests/apart\n", done.stdout)


@has_doctest
class Linting(Entry):
    """What lint.py is asked to do; what it does is in the pinned packages."""

    def setUp(self):
        super().setUp()
        python = self.checkout / "build" / "python" / "lint" / "bin" / "python"
        write(python, "#!/bin/sh\n" + self.log_call("python") +
              "case $* in *bad.cpp*) exit 1 ;; esac\n")
        python.chmod(0o755)
        key = subprocess.run(["sha256sum"], capture_output=True, text=True,
                             input="", check=True).stdout
        write(python.parent.parent / "ready", key)

    def lint(self, status, *words):
        (self.scratch / "calls").unlink(missing_ok=True)
        done = self.expect(status, "lint", *words)
        build = str(self.checkout.resolve() / "build" / "release")
        return [line.split("lint.py ")[1].replace(build, "BUILD")
                for line in self.logged().splitlines()], done.stderr

    def test_every_file_or_those_named(self):
        self.assertEqual(self.lint(0)[0], ["format", "shell", "workflows",
                                           "headers BUILD", "tidy BUILD"])
        self.assertEqual(self.lint(0, "a.cpp", "b.sh")[0], [
            "format a.cpp b.sh", "shell a.cpp b.sh", "workflows a.cpp b.sh",
            "headers BUILD a.cpp b.sh", "tidy BUILD a.cpp b.sh"])
        self.assertEqual(self.lint(0, "--fix")[0][0], "format --fix")
        calls, said = self.lint(1, "bad.cpp")
        self.assertEqual(len(calls), 5)  # one finding does not hide others
        self.assertIn("there are findings", said)


class Turns(Entry):
    def test_two_calls_at_once_take_turns(self):
        build = self.checkout / "build"
        build.mkdir()
        with subprocess.Popen(
                ["flock", str(build / ".turn"), "-c", "echo held; read wait"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
            self.assertEqual(holder.stdout.readline(), b"held\n")
            waiter = subprocess.Popen(
                [str(self.checkout / "fusebook"), "run", "sgd"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                env=self.environment)
            self.assertIn("Waiting for another", waiter.stdout.readline())
            time.sleep(0.2)
            self.assertIsNone(waiter.poll())
            holder.stdin.close()
            rest = waiter.communicate(timeout=60)[0]
        self.assertEqual(waiter.returncode, 0, rest)


if __name__ == "__main__":
    unittest.main(verbosity=2)
