"""No room uses what is defined in a room that it does not link: a header of its own
may declare it, and programs then link by luck. And no
code for CPUs of a higher level than the program's runs when it starts.

    symbols.py LIBRARY...     of all rooms
"""

import platform
import re
import subprocess
import sys
import unittest
from pathlib import Path

from rooms_test import rooms

# Functions and objects, tables of virtual functions, types and guards.
OURS = re.compile(r"_Z(?:TV|TI|TS|GV)?NK?4fuse")
INITIALIZERS = "_GLOBAL__sub_I_"  # of a file


def lines_of_nm(*arguments):
    return subprocess.run(["nm", "--format=posix", *arguments], capture_output=True,
                          text=True, check=True).stdout.splitlines()


def symbols(library, *which):
    """Names of ours that a library defines for others, or needs of them."""
    words = (line.split() for line in lines_of_nm(*which, library))
    return {word[0] for word in words if len(word) > 1 and OURS.match(word[0])}


def all_below(room, links):
    """A room and what it links, to any depth."""
    found, todo = set(), [room]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += links[name]
    return found


class Symbols(unittest.TestCase):
    libraries = ()

    def test_what_a_room_needs_is_in_those_that_it_links(self):
        links = {path.rpartition("/")[2]: names for path, names in rooms().items()}
        files = {Path(path).stem.removeprefix("libfusebook_"): path
                 for path in self.libraries}
        defined = {room: symbols(path, "--defined-only", "--extern-only")
                   for room, path in files.items()}
        self.assertGreater(len(set().union(*defined.values())), 500)
        for room, path in files.items():
            below = all_below(room, links)
            there = set().union(*(defined[name] for name in below if name in defined))
            above = set().union(*(names for name, names in defined.items()
                                  if name not in below))
            with self.subTest(room):
                self.assertEqual(sorted(symbols(path, "--undefined-only")
                                        & above - there), [])

    def test_files_for_higher_levels_have_no_initializers(self):
        found = [line.split(": ", 1) for path in self.libraries
                 for line in lines_of_nm("--print-file-name", path)
                 if "_x86_64_v" in line.partition(": ")[0]]
        if platform.machine() == "x86_64":
            self.assertGreater(len(found), 500)
        if any(symbol.startswith("__asan_init") for _, symbol in found):
            self.skipTest("the address sanitizer adds initializers to all files")
        self.assertEqual([line for line in found
                          if line[1].startswith(INITIALIZERS)], [])


if __name__ == "__main__":
    Symbols.libraries = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
