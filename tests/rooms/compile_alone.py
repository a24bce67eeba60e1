"""The compiler knows no recipe: a program that links the room `compile` alone has
nothing of the rooms above it, nor of libraries that only these use.

    compile_alone.py PROGRAM LIBRARY...     of all rooms above `compile`
"""

import subprocess
import sys
import unittest

FOREIGN = ("nlohmann::", "CLI::", "Json", "Eigen::", "fuse::Adam")


def symbols(path, kinds="T"):
    """Names of functions that a library defines for others."""
    listed = subprocess.run(["nm", "--demangle", "--defined-only", path],
                            capture_output=True, text=True, check=True).stdout
    lines = (line.split(" ", 2) for line in listed.splitlines())
    return {words[2] for words in lines if len(words) == 3 and words[1] in kinds}


class CompileAlone(unittest.TestCase):
    program, libraries = "", []

    def test_it_works(self):
        done = subprocess.run([self.program], capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stderr, done.stdout),
                         (0, "", "44 after 1 launch\n"))

    def test_what_it_is_made_of(self):
        own = symbols(self.program, "Tt")  # some linkers make all of them local
        self.assertIn("fuse::Recorder::flush", {n.split("(")[0] for n in own})
        for library in self.libraries:
            with self.subTest(library=library):
                above = symbols(library)
                self.assertTrue(above)
                self.assertEqual(sorted(own & above), [])
        for word in FOREIGN:
            self.assertEqual([n for n in own if word in n], [])


if __name__ == "__main__":
    CompileAlone.program, *CompileAlone.libraries = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
