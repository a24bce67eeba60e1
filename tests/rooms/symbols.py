"""No room uses what is defined in a room that it does not link: a header of its own
may declare it, and programs then link by luck.

    symbols.py LIBRARY...     of all rooms
"""

import re
import subprocess
import sys
import unittest
from pathlib import Path

from rooms_test import rooms

# Functions and objects, tables of virtual functions, types and guards.
OURS = re.compile(r"_Z(?:TV|TI|TS|GV)?NK?4fuse")


def symbols(library, *which):
    """Names of ours that a library defines for others, or needs of them."""
    listed = subprocess.run(["nm", "--format=posix", *which, library],
                            capture_output=True, text=True, check=True).stdout
    words = (line.split() for line in listed.splitlines())
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


if __name__ == "__main__":
    Symbols.libraries = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
