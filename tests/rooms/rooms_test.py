"""The rooms are what CONTRIBUTING.md says: folders, links, includes, tests."""

import re
import unittest
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLOORS = ("kernels", "common")
# Folders of headers that are the system's, and the libraries of others.
SYSTEM = {"sys", "sanitizer"}
LIBRARIES = {"Eigen": "Eigen", "nlohmann": "nlohmann-json",
             "CLI": "CLI11", "ATen": "LibTorch", "c10": "LibTorch",
             "torch": "LibTorch", "mpi": "MPI"}
# Folders of tests that are not a room's: of the site, the entry, all rooms at
# once, or programs of their own.
OTHER_TESTS = {
    "bench_gpu", "bench_ranks", "consumers", "convergence", "docs", "entry", "fuzz",
    "gpu_capture", "gpu_code", "hardening", "interop", "mutants", "new_op",
    "new_recipe", "python", "rooms", "undefined_objects"}
# Of code, in a room and in one of its files: what is more wants to be two.
MOST_FILES = 40
MOST_LINES = 400
# Made when a copy is installed.
INSTALLED = {"fusebook/support/headers.h"}
# How kernels are made and launched. Every program includes fusebook.h: it should not
# have to read this, nor be compiled again when this changes.
NOT_IN_PROGRAMS = {"codegen", "cpu", "nvrtc", "runtime"}
_ROW = re.compile(r"^\| `((?:kernels|common)/\w+)/` \| (.+) \| (.+) \|$", re.M)
_CALL = re.compile(r"^fuse_room\(([^)]*)\)", re.M)
_LIBRARY = re.compile(r"^\| ([\w-]+) \| [^|]+ \| (`[^|]+) \|$", re.M)
_OTHERS_INCLUDE = re.compile(r"^\s*#\s*include\s+<(\w+/|mpi\.h)", re.M)
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def rooms():
    """Folder to the rooms that it links, as CMake has it."""
    found = {}
    for floor in FLOORS:
        for path in sorted((ROOT / floor).glob("*/CMakeLists.txt")):
            call = _CALL.search(path.read_text())
            found[f"{floor}/{path.parent.name}"] = call[1].split()
    return found


def files(floors=FLOORS):
    """What is compiled or included, by name from the root."""
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
            for floor in floors
            for path in sorted((ROOT / floor).rglob("*"))
            if path.suffix in (".h", ".cpp", ".inc", ".def", ".cu", ".in")}


class Rooms(unittest.TestCase):
    def setUp(self):
        self.rooms = rooms()
        self.names = {path.rpartition("/")[2]: path for path in self.rooms}

    def test_they_stay_small(self):
        counts = {}
        for name, text in files().items():
            room = name.rpartition("/")[0]
            counts[room] = counts.get(room, 0) + 1
            with self.subTest(name):
                self.assertLessEqual(text.count("\n"), MOST_LINES)
        for room, count in counts.items():
            with self.subTest(room):
                self.assertLessEqual(count, MOST_FILES)

    def test_the_table(self):
        """Every folder has a row with one sentence and its links."""
        rows = _ROW.findall((ROOT / "CONTRIBUTING.md").read_text())
        folders = [str(path.relative_to(ROOT)) for floor in FLOORS
                   for path in (ROOT / floor).glob("*/")]
        self.assertEqual(sorted(path for path, _, _ in rows), sorted(folders))
        for path, sentence, links in rows:
            with self.subTest(room=path):
                self.assertRegex(sentence, r"^[A-Z`][^.]*(\.\w[^.]*)*\.$")
                listed = [] if links == "nothing" else links.split(", ")
                self.assertEqual(listed, self.rooms[path])

    def test_order(self):
        """A row stands below all that it links; kernels never links common."""
        rows = [path for path, _, _ in
                _ROW.findall((ROOT / "CONTRIBUTING.md").read_text())]
        for path, links in self.rooms.items():
            for link in links:
                with self.subTest(room=path, links=link):
                    self.assertLess(rows.index(self.names[link]),
                                    rows.index(path))

    def below(self, name):
        found = {name}
        for link in self.rooms[self.names[name]]:
            found |= self.below(link)
        return found

    def test_includes_name_a_room_below(self):
        for path, text in files().items():
            name = path.split("/")[1]
            if path == "common/fusebook.h":
                continue
            for include in _INCLUDE.findall(text):
                with self.subTest(file=path, include=include):
                    parts = include.split("/")
                    self.assertEqual((parts[0], len(parts)), ("fusebook", 3))
                    self.assertIn(parts[1], self.below(name))
                    folder = ROOT / self.names[parts[1]]
                    self.assertTrue((folder / parts[2]).is_file()
                                    or include in INSTALLED)

    def test_no_links_in_vain(self):
        """A room includes something of each room that it links."""
        used = {path: set() for path in self.rooms}
        for path, text in files().items():
            if path.count("/") == 2:
                used[path.rpartition("/")[0]] |= {
                    include.split("/")[1] for include in _INCLUDE.findall(text)}
        for path, links in self.rooms.items():
            self.assertEqual(set(links) - used[path], set(), path)

    def test_libraries(self):
        """A library of others is included where CONTRIBUTING.md says."""
        where = dict(_LIBRARY.findall((ROOT / "CONTRIBUTING.md").read_text()))
        found = {name: set() for name in LIBRARIES.values()}
        for path, text in files((*FLOORS, "pack")).items():
            for folder in _OTHERS_INCLUDE.findall(text):
                folder = folder.removesuffix("/").removesuffix(".h")
                if folder == "fmt":
                    self.assertTrue(path.endswith(".cpp"), path)
                elif folder not in SYSTEM:
                    found[LIBRARIES[folder]].add(path.rpartition("/")[0])
        for library, rooms_of_it in found.items():
            with self.subTest(library=library):
                self.assertEqual(set(re.findall(r"[\w/]+", where[library])),
                                 rooms_of_it)

    def test_programs_do_not_include_how_kernels_are_made(self):
        texts = files()

        def refuse(path, way):
            with self.subTest(" <- ".join(way)):
                self.assertNotIn(path.split("/")[1], NOT_IN_PROGRAMS)
            for include in _INCLUDE.findall(texts[path]):
                _, room, name = include.split("/")
                next_path = f"{self.names[room]}/{name}"
                if include not in INSTALLED and next_path not in seen:
                    seen.add(next_path)
                    refuse(next_path, [next_path, *way])

        seen = {"common/fusebook.h"}
        refuse("common/fusebook.h", ["common/fusebook.h"])
        self.assertGreater(len(seen), 50)

    def test_no_circle_of_files(self):
        graph = {}
        for path, text in files().items():
            graph[path] = [
                f"{self.names[parts[1]]}/{parts[2]}"
                for parts in (i.split("/") for i in _INCLUDE.findall(text))
                if len(parts) == 3]
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            self.fail(f"these include each other: {error.args[1]}")

    def test_tests_mirror_the_rooms(self):
        for path in sorted((ROOT / "tests").rglob("*_test.cpp")):
            folder = path.relative_to(ROOT / "tests").parts[0]
            self.assertIn(folder, OTHER_TESTS | set(self.names), path)
        for path in sorted((ROOT / "tests").glob("*/")):
            self.assertIn(path.name, OTHER_TESTS | set(self.names) | {
                "support", "__pycache__"})


if __name__ == "__main__":
    unittest.main()
