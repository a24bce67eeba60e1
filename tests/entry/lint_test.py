"""Tests of what lint.py decides by itself, without the pinned programs."""

import concurrent.futures
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import time
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import joined_sources  # noqa: E402
import lint  # noqa: E402

FILES = {
    "kernels/ir/plan.h": "#pragma once\n",
    "kernels/ir/plan.cpp": '#include "plan.h"\n#include <vector>\n',
    "kernels/ir/simplify.cpp": '#include "plan.h"\n',
    "kernels/alone.cpp": "",
    "kernels/alone.h": "",
    "tests/run.sh": "",
    ".clang-tidy": "Checks: '*'\n",
    "tests/requirements-lint.txt": "clang-tidy==1\n",
}


class Lint(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="fusebook-lint-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name).resolve()

    def checkout(self, name):
        root = self.scratch / name
        for path, text in FILES.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        for patch in (mock.patch.object(lint, "ROOT", root),
                      mock.patch.object(lint, "PINS", root / "tests" /
                                        "requirements-lint.txt")):
            patch.start()
            self.addCleanup(patch.stop)
        return root

    def keys(self, root):
        commands = {path: [f"c++ -I{root}/kernels -c {path}"]
                    for path in lint.sources(".cpp")}
        return {path.name: key
                for path, key in lint.tidy_keys(commands).items()}

    def test_a_result_holds_in_every_checkout(self):
        first = self.keys(self.checkout("one"))
        self.assertEqual(first, self.keys(self.checkout("a longer/name")))

    def test_what_is_looked_at_is_in_the_key(self):
        root = self.checkout("one")
        before = self.keys(root)
        (root / "kernels/ir/plan.h").write_text("int x;\n", encoding="utf-8")
        after = self.keys(root)
        self.assertEqual({name for name in before
                          if before[name] != after[name]},
                         {"plan.cpp", "simplify.cpp"})
        (root / ".clang-tidy").write_text("", encoding="utf-8")
        self.assertEqual(set(after.values()) & set(self.keys(root).values()),
                         set())

    def test_a_header_is_checked_through_the_source_of_its_name(self):
        root = self.checkout("one")
        commands = {path: [f"c++ -I{root}/kernels"]
                    for path in lint.sources(".cpp")}

        def chosen(*names):
            return [path.name for path in lint.sources_of(
                [str(root / "kernels" / name) for name in names], commands)]

        self.assertEqual(chosen("ir/plan.h"), ["plan.cpp"])
        (root / "kernels/ir/plan.cpp").unlink()
        del commands[root / "kernels/ir/plan.cpp"]
        self.assertEqual(chosen("ir/plan.h"), ["simplify.cpp"])
        self.assertEqual(chosen("alone.h"), [])
        self.assertEqual(len(lint.sources_of([], commands)), 2)
        with self.assertRaises(SystemExit):
            chosen("missing.cpp")

    def suites(self, root, *texts, kind="_test"):
        folder = root / "tests" / "ir"
        folder.mkdir(parents=True)
        commands = {}
        for number, text in enumerate(texts):
            path = folder / f"suite_{number}{kind}.cpp"
            path.write_text(text, encoding="utf-8")
            commands[path] = [f"c++ -O{number} -DX -o x.o -c {path}"]
        return commands

    def run_with(self, root, commands):
        """The sources that are clean for a program that looks for BAD."""
        (root / "tests" / ".clang-tidy").write_text("", encoding="utf-8")
        program = self.scratch / "clang-tidy"
        program.write_text("#!/bin/sh\necho \"$@\" >>" + str(self.log) +
                           "\nfor file; do\n"
                           "  [ -f \"$file\" ] || continue\n"
                           "  grep -q BAD \"$file\" && exit 1\n"
                           "done\nexit 0\n", encoding="utf-8")
        program.chmod(0o755)
        with (concurrent.futures.ThreadPoolExecutor(2) as pool,
              contextlib.redirect_stdout(io.StringIO())):
            run = lint.Run(str(program), root, pool, len(commands))
            run.joined(joined_sources.groups(
                {path: texts[0] for path, texts in commands.items()}),
                self.scratch / "joined")
            run.one_by_one([path for path in commands
                            if path not in run.clean])
        return {path.name for path in run.clean}

    def test_suites_are_read_together(self):
        root = self.checkout("one")
        (self.scratch / "joined").mkdir()
        self.log = self.scratch / "log"
        commands = self.suites(root, "int a;\n", "int b;\n", "int c;\n",
                               "#define X\n")
        self.assertEqual(len(self.run_with(root, commands)), 4)
        calls = self.log.read_text(encoding="utf-8").splitlines()
        self.assertEqual(len(calls), 2)
        self.assertIn("-DX", calls[0])
        self.assertNotIn("-O", calls[0])

    def test_a_finding_among_joined_suites_is_that_of_one(self):
        root = self.checkout("one")
        (self.scratch / "joined").mkdir()
        self.log = self.scratch / "log"
        commands = self.suites(root, "int a;\n", "int BAD;\n", "int c;\n")
        self.assertEqual(self.run_with(root, commands),
                         {"suite_0_test.cpp", "suite_2_test.cpp"})

    def test_a_finding_in_a_room_is_that_of_one_source(self):
        root = self.checkout("one")
        (self.scratch / "joined").mkdir()
        self.log = self.scratch / "log"
        commands = self.suites(root, "int a;\n", "int b;\n", "int BAD;\n",
                               "int d;\n", kind="")
        self.assertEqual(self.run_with(root, commands),
                         {"suite_0.cpp", "suite_1.cpp", "suite_3.cpp"})
        calls = self.log.read_text(encoding="utf-8").splitlines()
        # All four, two halves, and the two of the half with the finding.
        self.assertEqual(len(calls), 5)

    def names_of_groups(self, texts):
        """Sources of rooms that see their own headers; the names of those joined."""
        root = self.checkout("one")
        commands = {}
        for name, text in texts.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            if path.suffix == ".cpp":
                commands[path] = (f"c++ -I/b/rooms/{path.parent.name} "
                                  f"-fmacro-prefix-map={path.parent}=x -c {path}")
        contents = lint.Contents()
        found = joined_sources.groups(
            commands, lambda path: contents.headers(path, [root]))
        for _, words in found:
            self.assertEqual([word for word in words if "-iquote" not in word],
                             ["-I/b/rooms/all"])
        return [[path.name for path in files] for files, _ in found]

    def test_rooms_are_read_together(self):
        self.assertEqual(self.names_of_groups(
            {"a/one.cpp": "int one() {\n}\n", "b/two.cpp": "int two() {\n}\n"}),
            [["one.cpp", "two.cpp"]])

    def test_a_name_of_two_rooms_parts_them(self):
        self.assertEqual(self.names_of_groups(
            {"a/one.cpp": "int one() {\n}\n", "b/two.cpp": "int one() {\n}\n",
             "c/three.cpp": "int three() {\n}\n"}), [["one.cpp", "three.cpp"]])

    def test_a_name_in_a_header_of_another_room_parts_them(self):
        for first, second in (("one", "two"), ("two", "one")):
            with self.subTest(first):
                self.assertEqual(self.names_of_groups(
                    {"b/sum.h": "int sum(int x);\n",
                     f"a/{first}.cpp": '#include "b/sum.h"\nint one = sum(1);\n',
                     f"a/{second}.cpp": "int sum(int x) {\n}\n",
                     "b/three.cpp": '#include "b/sum.h"\nint sum(int x) {\n}\n'}),
                    [[f"{first}.cpp", "three.cpp"]])

    def test_sources_with_settings_of_their_own_are_not_joined(self):
        self.assertEqual(self.names_of_groups(
            {"a/one.cpp": "", "b/two.cpp": "", "b/.clang-tidy": "", "c/three.cpp": ""}),
            [["one.cpp", "three.cpp"]])

    def test_texts_are_pasted_behind_the_includes_of_all(self):
        """The analyzer follows the paths of the main file alone."""
        root = self.checkout("one")
        commands = self.suites(root, '#include <vector>\nint a;\n',
                               '#include <vector>\n\n#include "b.h"\nint b;\n')
        text = joined_sources.joined(list(commands))
        first, second = commands
        self.assertEqual(text, f"""\
#include <vector>
#include "b.h"
namespace joined_0 {{
#line 1 "{first}"

int a;

}}
namespace joined_1 {{
#line 1 "{second}"



int b;

}}
""")

    def test_what_others_would_change_stands_alone(self):
        def joined(name, text):
            return joined_sources.can_be_joined(pathlib.Path(name), text)

        for text in ('#if X\n#include "a.h"\n#endif\n',
                     '#define X\n#include "a.def"\n#undef X\n',
                     "#define X\n", "#undef X\n#define X\n", "#undef X\n",
                     '#include "a.h"\n#if X\n#endif\n',
                     "#pragma GCC optimize(1)\n",
                     "void* operator new(int);\n",
                     '#include "a.h"\n#include "a.h"\n'):
            with self.subTest(text):
                self.assertFalse(joined("a_test.cpp", text))
                self.assertFalse(joined("a.cpp", text))
        for text in ('#include "a.h"\n#if defined(__x86_64__)\n#endif\n',
                     '#include "a.h"\n#ifdef FUSEBOOK_X\n#endif\n',
                     '#include "a.h"\n#define X\n#undef X\n'):
            with self.subTest(text):
                self.assertTrue(joined("a_test.cpp", text))
                self.assertTrue(joined("a.cpp", text))
        # In a namespace it would mean something else.
        self.assertFalse(joined("a_test.cpp", "namespace fuse {\n}\n"))
        self.assertFalse(joined("a.cpp", "namespace fuse {\n}\nint main() {}\n"))
        self.assertTrue(joined("a.cpp", "namespace fuse {\n}\n"))
        self.assertTrue(joined("a_test.cpp",
                               '#include "a.h"\nnamespace {\nint x;\n}\n'))

    def test_programs_stand_in_namespaces_of_their_own(self):
        root = self.checkout("one")
        commands = self.suites(root, "int main() {\n}\n", "int main() {\n}\n",
                               kind="")
        text = joined_sources.joined(list(commands))
        self.assertEqual(text.count("namespace joined_"), 2)
        (files, _), = joined_sources.groups(
            {path: texts[0] for path, texts in commands.items()})
        self.assertEqual(len(files), 2)

    def test_what_declares_a_name_twice_is_not_joined(self):
        root = self.checkout("one")
        commands = self.suites(
            root,
            "namespace {\nstruct Row {\n  int x;\n};\n}\n",
            "namespace {\nconst std::vector<Row> rows = {};\n}\n",
            "namespace {\nconstexpr int Row = 1;\n}\n",
            "using namespace fuse;\nusing Row = int;\n",
            "using namespace fuse;\nstd::string rows(int x, int y);\n", kind="")
        found = joined_sources.groups(
            {path: texts[0] for path, texts in commands.items()})
        self.assertEqual([[path.stem for path in files] for files, _ in found],
                         [["suite_0", "suite_1"], ["suite_2", "suite_4"]])

    def test_what_is_compiled_together(self):
        root = self.checkout("one")
        sources = list(self.suites(root, "int a;\n", "#define X\n", "int a;\n",
                                   "int b;\n"))
        program, = self.suites(self.scratch / "two", "int main() {\n}\n", kind="")
        found = joined_sources.compiled_together([*sources, program], 2)
        # Suites have namespaces of their own; a program's main() must stay outside.
        self.assertEqual([[path.stem for path in files] for files in found],
                         [["suite_0_test", "suite_2_test"]])
        out = self.scratch / "new" / "joined.cpp"
        joined_sources.join(out, found[0])
        self.assertEqual(out.read_text(encoding="utf-8"),
                         joined_sources.joined(found[0]))
        # When one has changed so that it must stand alone, the next build sees to it.
        found[0][1].write_text("#define X\n", encoding="utf-8")
        with self.assertRaisesRegex(SystemExit, "suite_2_test.cpp. Build again"):
            joined_sources.join(out, found[0])
        self.assertTrue((out.parent / "groups.stamp").is_file())

    def test_a_source_of_several_programs_is_read_once_if_they_read_it_alike(self):
        root = self.checkout("one")
        path, = self.suites(root, '#include "b.h"\nint x = A;\n')
        (path.parent / "b.h").write_text("int y = B;\n", encoding="utf-8")

        def command(*words):
            return " ".join(["c++", *words, "-o", "x.o", "-c", str(path)])

        def chosen(*texts):
            return lint.command_for_all(path, list(texts), lint.Contents())

        plain, more = command(), command("-DC=1", "-O3", "-I/a")
        self.assertEqual(chosen(plain), plain)
        self.assertEqual(chosen(plain, more), more)
        for word in ("-DA=2", "-DB", "-fopenmp"):
            with self.subTest(word):
                self.assertIsNone(chosen(plain, command(word)))
        # Other folders, not more of them: another library under the same names.
        self.assertIsNone(chosen(command("-I/a"), command("-I/b", "-DC", "-DD")))

    def tidied(self, root, quick):
        """How many sources clang-tidy looked at, and what it was told."""
        self.log = self.scratch / "log"
        self.log.write_text("", encoding="utf-8")
        program = self.scratch / "clang-tidy"
        program.write_text(f"#!/bin/sh\necho \"$@\" >>{self.log}\n",
                           encoding="utf-8")
        program.chmod(0o755)
        commands = {path: [f"c++ -c {path}"] for path in lint.sources(".cpp")}
        with (mock.patch.object(lint, "tool", lambda name: str(program)),
              mock.patch.object(lint, "entries", lambda build: commands),
              mock.patch.object(lint, "cache_folder",
                                lambda: self.scratch / "results"),
              mock.patch.object(lint, "copy_settings"),
              contextlib.redirect_stdout(io.StringIO()) as said):
            self.assertEqual(lint.tidy_command(root, [], quick), 0)
        return said.getvalue().splitlines()[-1], self.log.read_text()

    def test_quick_leaves_out_the_analyzer_and_full_makes_up_for_it(self):
        root = self.checkout("one")
        count = len(lint.sources(".cpp"))
        for quick, unchanged in ((True, 0), (True, count), (False, 0),
                                 (False, count), (True, count)):
            said, calls = self.tidied(root, quick)
            self.assertIn(f"{count} files, {unchanged} unchanged", said)
            self.assertEqual(bool(calls), unchanged == 0)
            if calls:
                self.assertEqual(lint.WITHOUT_ANALYZER in calls, quick)
        (root / "kernels/ir/plan.h").write_text("int y;\n", encoding="utf-8")
        self.assertNotIn(f"{count} unchanged", self.tidied(root, False)[0])
        # What the analyzer found clean needs no other look.
        self.assertIn(f"{count} unchanged", self.tidied(root, True)[0])
        # A quick look is none at tests.
        self.suites(root, "int a;\n")
        self.assertIn(f"{count} files, {count} unchanged", self.tidied(root, True)[0])
        self.assertIn(f"{count + 1} files, {count} unchanged",
                      self.tidied(root, False)[0])

    def test_results_are_kept_for_two_months(self):
        folder = self.scratch / "cache"
        lint.Clean(folder).add("key")
        self.assertIn("key", lint.Clean(folder))
        old = time.time() - 61 * 24 * 3600
        os.utime(folder / "key", (old, old))
        self.assertNotIn("key", lint.Clean(folder))

    def test_a_cache_that_cannot_be_written_is_done_without(self):
        (self.scratch / "file").write_text("", encoding="utf-8")
        clean = lint.Clean(self.scratch / "file" / "lint")
        clean.add("key")
        self.assertNotIn("key", clean)


if __name__ == "__main__":
    unittest.main(verbosity=2)
