"""Builds programs outside of the repository with an installed copy of the library.

    python3 consumers_test.py --build=BUILD ARCHIVE...
                                    from what was built in BUILD
    python3 consumers_test.py       from the sources, and with a shared library

The copy is moved before it is used, so that nothing may depend on its place.
"""

import functools
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

from copies import HERE, Copies, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from lint import NOT_ALONE  # noqa: E402

# Nothing may be left out because something is not installed.
COMPLETE = bool(os.environ.get("FUSEBOOK_COMPLETE"))


def run_packed(build, *words, compiler="/nowhere", **variables):
    """What the program of `packed` prints, on a machine without that compiler."""
    variables["FUSEBOOK_CACHE_DIR"] = "off"
    if compiler:
        variables["FUSEBOOK_CXX"] = compiler
    return Copies.good(build / "training", *words, env={**os.environ, **variables})


def compilers():
    """The one that builds, and each clang that the headers are promised for."""
    found = [os.environ.get("CXX", "c++").split()]
    for version in range(15, 30):
        path = shutil.which(f"clang++-{version}")
        if path:
            found.append([path])
    if COMPLETE and len(found) == 1:
        raise RuntimeError("no clang++-15 or newer is installed: "
                           "apt-get install clang-15")
    return found


def change(path, at, to):
    """Other bytes in a file; from `at` on."""
    data = bytearray(path.read_bytes())
    data[at:at + len(to)] = to
    path.write_bytes(data)


# Files of kernels that must not be loaded: a name, what is told, what is done.
SPOILED = (
    ("cut", "is truncated", lambda path: os.truncate(path, 5000)),
    ("flipped", "is damaged: its checksum does not match",
     lambda path: change(path, 5000, b"#")),
    ("newer", "has format 2, and this version reads format 1",
     lambda path: change(path, len("Fusebook kernels, format "), b"2")),
    ("open", "is writable by others (mode 664", lambda path: path.chmod(0o664)),
)


class Consumers(Copies):
    """What must hold for any installed copy."""

    def test_a_program_finds_the_package_and_its_components(self):
        build = self.built("installed", self.prefix)
        wanted = HERE / "installed" / "training.txt"
        self.assertEqual(self.good(build / "training"), wanted.read_text())

    def test_a_program_steps_its_own_memory(self):
        build = self.built("own_memory", self.prefix)
        wanted = (HERE / "own_memory" / "own_memory.txt").read_text()
        self.assertEqual(self.good(build / "own_memory"), wanted)
        version = re.search(r"project\(fusebook VERSION (\S+)",
                            (ROOT / "CMakeLists.txt").read_text())[1]
        self.assertIn(f"Fusebook {version}:", wanted)

    def test_pkg_config_knows_it(self):
        environment = {**os.environ, "PKG_CONFIG_PATH": str(
            next(self.prefix.rglob("fusebook.pc")).parent)}
        build = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        self.good("cmake", "-S", HERE / "own_memory", "-B", build,
                  "-DWITH_PKG_CONFIG=ON", env=environment)
        self.good("cmake", "--build", build)
        self.assertIn("equal", self.good(build / "own_memory"))

    def test_a_program_runs_without_a_compiler(self):
        build = self.packed()
        kernels = build / "training.kernels"
        bits = self.bits(run_packed(build, compiler=None), compiled=1)
        for words, named in (((), kernels), (("cpu", kernels), "")):
            text = run_packed(build, *words, FUSEBOOK_KERNELS=str(named))
            self.assertEqual(self.bits(text, packed=1), bits)
            self.assertNotIn("fusebook:", text)
        for name, why, spoil in SPOILED:
            with self.subTest(name):
                spoiled = build / f"{name}.kernels"
                shutil.copy(kernels, spoiled)
                spoil(spoiled)
                text = run_packed(build, FUSEBOOK_KERNELS=str(spoiled))
                self.assertEqual(self.bits(text), bits)
                self.assertEqual(text.count("fusebook: warning:"), 1, text)
                self.assertIn(f"'{spoiled}' cannot be used: the file {why}", text)
                self.assertIn("steps are interpreted: no host compiler", text)

    def test_a_program_runs_on_a_gpu_without_a_compiler(self):
        build = self.packed()
        kernels = build / "gpu.kernels"
        self.good(self.prefix / "bin" / "fusebook-pack", "--output", kernels,
                  "--cpu", "x86-64", "--gpu", "cuda-sim", "--", build / "training",
                  "cuda-sim")
        text = run_packed(build, "cuda-sim", kernels)
        self.assertIn("compiled: 0, from the cache: 0, packed: ", text)
        self.assertNotIn("fusebook:", text)
        self.assertEqual(text.splitlines()[-1],
                         run_packed(build, compiler=None).splitlines()[-1])

    @classmethod
    @functools.cache
    def packed(cls):
        return cls.built("packed", cls.prefix)

    def bits(self, text, compiled=0, packed=0):
        """What steps gave, by a program whose kernels came from there."""
        self.assertIn(f"compiled: {compiled}, from the cache: 0, packed: {packed}",
                      text)
        self.assertIn("kernels of steps: 1", text)
        return text.splitlines()[-1]

    def test_nothing_names_the_checkout_or_the_first_prefix(self):
        for path in self.prefix.rglob("*"):
            if path.suffix in (".cmake", ".pc", ".h"):
                text = path.read_text(encoding="utf-8")
                self.assertNotIn(str(ROOT), text, path)
                self.assertNotIn(str(self.folder / "first"), text, path)

    def test_an_unknown_component_is_named(self):
        project = self.folder / "unknown"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(x LANGUAGES CXX)\n"
            "find_package(fusebook CONFIG REQUIRED COMPONENTS optimizers)\n")
        code, text = self.configure(project, project / "build", self.prefix)
        self.assertNotEqual(code, 0)
        self.assertIn("Fusebook has no component optimizers",
                      " ".join(text.split()))

    def test_headers_and_library_of_two_builds_do_not_link(self):
        prefix = self.folder / "mixed"
        shutil.copytree(self.prefix, prefix)
        sources = self.folder / "changed"
        for layer in ("common", "kernels"):
            shutil.copytree(ROOT / layer, sources / layer)
        table = sources / "kernels" / "ops" / "ops.def"
        table.write_text(table.read_text() + "// one row more\n")
        made = self.folder / "made"
        self.good("cmake", "-D", f"ROOT={sources}", "-D", f"OUT={made}",
                  "-D", "VERSION=0.1.0",
                  "-P", ROOT / "cmake" / "headers_hash.cmake")
        shutil.copy(made / "headers.h",
                    prefix / "include" / "fusebook" / "support" / "headers.h")
        build = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        code, text = self.configure("own_memory", build, prefix)
        self.assertEqual(code, 0, text)
        code, text = run("cmake", "--build", build)
        self.assertNotEqual(code, 0)
        self.assertRegex(text, r"undefined .*fuse::headers_\w+")

    def test_an_old_compiler_is_refused(self):
        for name, version, refused in (("Clang", "14.0.6", True),
                                       ("Clang", "15.0.0", False),
                                       ("GNU", "11.4.0", True),
                                       ("GNU", "12.2.0", False)):
            code, text = run("cmake", f"-DCMAKE_CXX_COMPILER_ID={name}",
                             f"-DCMAKE_CXX_COMPILER_VERSION={version}",
                             "-DCMAKE_CXX_COMPILER=c++",
                             "-P", next(self.prefix.rglob("compiler.cmake")))
            self.assertEqual(code != 0, refused, text)
            if refused:
                self.assertIn(f"c++ is {name} {version}",
                              " ".join(text.split()))


class Installed(Consumers, unittest.TestCase):
    """A library for each room."""

    @classmethod
    def setUpClass(cls):
        cls.make_folder()
        cls.prefix = cls.installed(BUILD, "static")

    def test_every_library_is_there(self):
        self.assertEqual({path.name for path in self.prefix.rglob("*.a")},
                         set(ARCHIVES))


class FromSources(Consumers, unittest.TestCase):
    """One shared library, and the sources in a project."""

    @classmethod
    def setUpClass(cls):
        cls.make_folder()
        build = cls.folder / "build"
        for command in (("cmake", "-S", ROOT, "-B", build,
                         "-DFUSEBOOK_RECIPES=OFF", "-DBUILD_SHARED_LIBS=ON"),
                        ("cmake", "--build", build, "-j2")):
            code, text = run(*command)
            if code != 0:
                raise RuntimeError(text)
        cls.prefix = cls.installed(build, "shared")

    def test_only_our_names_are_visible(self):
        library = next(self.prefix.rglob("libfusebook.so"))
        names = [line.split(" ", 2)[2] for line in self.good(
            "nm", "-D", "-C", "--defined-only", library).splitlines()]
        foreign = [name for name in names if "fuse::" not in name]
        self.assertEqual(foreign, [])

    def test_sources_in_a_project_bring_the_library_alone(self):
        build = self.folder / "added"
        code, text = self.configure("added", build, "",
                                    f"-DFUSEBOOK_SOURCE={ROOT}")
        self.assertEqual(code, 0, text)
        self.good("cmake", "--build", build, "-j2")
        self.assertIn("equal", self.good(build / "bench"))
        listed = self.good("ctest", "--test-dir", build, "-N")
        self.assertIn("Total Tests: 1", listed)

    def test_headers_compile_alone(self):
        include = self.prefix / "include"
        headers = sorted(path.relative_to(include) for path in
                         (include / "fusebook").rglob("*.h")
                         if path.parent.name not in NOT_ALONE)
        self.assertGreater(len(headers), 100)
        for compiler in compilers():
            for standard in ("c++20", "c++2b"):  # clang 15 calls it so
                command = [*compiler, f"-std={standard}", "-fsyntax-only",
                           "-Wall", "-Wextra", "-Wconversion", "-Werror",
                           f"-I{include}", "-x", "c++", "-"]
                for path in headers:
                    with self.subTest(path, compiler=compiler, standard=standard):
                        self.good(*command, input=f'#include "{path}"\n')


if __name__ == "__main__":
    BUILD, ARCHIVES = None, []
    if sys.argv[1:]:
        build, *archives = sys.argv[1:]
        if not build.startswith("--build=") or not archives:
            sys.exit(__doc__)
        BUILD = pathlib.Path(build.removeprefix("--build=")).resolve()
        ARCHIVES = [pathlib.Path(path).name for path in archives
                    if path.endswith(".a")]
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(
        FromSources if BUILD is None else Installed)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    sys.exit(0 if result.wasSuccessful() else 1)
