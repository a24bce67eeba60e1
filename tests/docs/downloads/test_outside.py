"""Zip, program and notebook of a page, outside of the repository.

What is looked at is the folder FUSEBOOK_SITE of a built site. A zip is unpacked
into an empty folder. Usually it is configured, and the recipe itself compiled;
with FUSEBOOK_DOWNLOADS=all every zip is built and run by its one command, then
another page's program beside it, then the notebook.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

from support import ROOT

from fusebook_docs import samples
from fusebook_docs.book import Book

ALL = os.environ.get("FUSEBOOK_DOWNLOADS") == "all"
_KEPT = ("PATH", "CXX", "LANG", "Eigen3_ROOT", "CMAKE_CXX_COMPILER_LAUNCHER",
         "CCACHE_DIR", "TMPDIR")
_RUN_CELLS = """import json, sys
for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        exec("".join(cell["source"]))
"""


class Outside(unittest.TestCase):
    def setUp(self):
        self.book = Book(ROOT)
        self.files = Path(os.environ["FUSEBOOK_SITE"]) / "_downloads"
        folder = tempfile.TemporaryDirectory(prefix="outside-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def names(self):
        return [name for name in self.book.recipe_names()
                if "cpu" in self.book.devices(name)]

    def built_here(self):
        """Those that need nothing which may be absent."""
        return [name for name in self.names() if not re.search(
            '"fusebook/(libtorch|distributed)/',
            self.book.recipe_path(name).read_text("utf-8"))]

    def call(self, *words, folder):
        """What a command prints, which must succeed."""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        done = subprocess.run(
            [str(word) for word in words], cwd=folder, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**kept, "HOME": str(self.folder)})
        self.assertEqual(done.returncode, 0, done.stdout[-4000:])
        return done.stdout

    def unpacked(self, name):
        with zipfile.ZipFile(self.files / f"{name}.zip") as archive:
            for info in archive.infolist():  # as unzip does
                path = Path(archive.extract(info, self.folder))
                path.chmod(info.external_attr >> 16)
        return self.folder / f"fusebook-{name}"

    def prints_the_page(self, name, output):
        sample = samples.load(self.book, "cpu", name)
        for title in sample.titles:
            self.assertIn(f"== {title}\n", output)

    def test_every_page_has_its_downloads(self):
        for name in self.names():
            self.assertTrue((self.files / f"{name}.zip").is_file(), name)
            self.assertTrue((self.files / f"{name}.ipynb").is_file(), name)

    def test_a_zip_is_complete(self):
        name = self.built_here()[0]
        root = self.unpacked(name)
        self.call("cmake", "--preset", "release", folder=root)
        self.call("ninja", f"recipes/CMakeFiles/{name}.dir/{name}.cpp.o",
                  folder=root / "build/release")

    @unittest.skipUnless(ALL, "FUSEBOOK_DOWNLOADS is not all: builds no library")
    def test_everything_runs(self):
        names = self.built_here()
        for name, other in zip(names, [*names[1:], names[0]]):
            with self.subTest(name):
                root = self.unpacked(name)
                run = ("./fusebook", "run", "--no-install")
                self.prints_the_page(name, self.call(*run, name, folder=root))
                program = self.book.recipe_path(other)
                (root / "recipes" / program.name).write_bytes(
                    program.read_bytes())
                self.prints_the_page(other, self.call(*run, other, folder=root))
                output = self.notebook(name)
                self.prints_the_page(name, output)

    @unittest.skipUnless(ALL, "FUSEBOOK_DOWNLOADS is not all: builds no library")
    def test_a_notebook_alone(self):
        name = self.built_here()[-1]
        self.prints_the_page(name, self.notebook(name))

    def notebook(self, name):
        """What its cells print, in a Python of their own."""
        path = self.files / f"{name}.ipynb"
        self.assertEqual(json.loads(path.read_text())["nbformat"], 4)
        return self.call(sys.executable, "-c", _RUN_CELLS, path,
                         folder=self.folder)


if __name__ == "__main__":
    unittest.main()
