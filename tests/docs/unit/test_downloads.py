"""Zips and notebooks: what is in them, and that they are the same every time."""

import contextlib
import io
import json
import os
import re
import shutil
import stat
import tempfile
import unittest
import zipfile
from pathlib import Path

from support import ROOT

from fusebook_docs import downloads, samples, statements
from fusebook_docs.book import Book

NAME = "replaying_a_step"
FOLDER = f"fusebook-{NAME}"


def copy_of_the_book(root):
    for name in (*downloads.FILES, downloads.PRESETS):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    for name in (*downloads.FOLDERS, "docs/samples/cpu"):
        shutil.copytree(ROOT / name, root / name)
    shutil.copy(ROOT / f"recipes/{NAME}.cpp", root / "recipes")
    return Book(root)


class Downloads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.book = Book(ROOT)
        cls.zip = downloads.zip_of(cls.book, NAME)
        cls.notebook = downloads.notebook_of(cls.book, NAME)
        cls.cells = json.loads(cls.notebook)["cells"]

    def temporary(self):
        folder = tempfile.TemporaryDirectory(prefix="download-")
        self.addCleanup(folder.cleanup)
        return Path(folder.name)

    def cell(self, name):
        found, = (cell for cell in self.cells if cell["id"] == name)
        return "".join(found["source"])

    def test_same_bytes_from_another_folder(self):
        other = copy_of_the_book(self.temporary())
        os.utime(other.root / "LICENSE", (1, 1))
        self.assertEqual(downloads.zip_of(other, NAME), self.zip)
        self.assertEqual(downloads.notebook_of(other, NAME), self.notebook)

    def test_all_of_the_library_and_none_of_the_tests(self):
        with zipfile.ZipFile(io.BytesIO(self.zip)) as archive:
            names = set(archive.namelist())
            self.assertTrue(all(n.startswith(f"{FOLDER}/") for n in names))
            presets = json.loads(archive.read(f"{FOLDER}/CMakePresets.json"))
            readme = archive.read(f"{FOLDER}/README.md").decode()
        for folder in ("common", "kernels", "tools"):
            for path in (ROOT / folder).rglob("*.[chs]*"):
                inside = path.relative_to(ROOT).as_posix()
                self.assertIn(f"{FOLDER}/{inside}", names)
        self.assertFalse([n for n in names if "/tests/" in n or "/docs/" in n])
        self.assertEqual([n for n in names if re.search(r"/recipes/.*cpp", n)],
                         [f"{FOLDER}/recipes/{NAME}.cpp"])
        self.assertNotIn("testPresets", presets)
        self.assertEqual({preset["cacheVariables"]["FUSEBOOK_TESTING"] for preset
                          in presets["configurePresets"]
                          if preset.get("hidden")}, {"OFF"})
        self.assertIn(f"./fusebook run {NAME}\n", readme)

    def test_its_readme_names_all_that_a_build_needs(self):
        programs = (ROOT / "tools/lib/programs.sh").read_text()
        needed = re.search(r"need compiler ([a-z ]+)", programs)[1].split()
        readme = downloads.readme(
            self.book.recipe_path(NAME), "A title",
            f"./fusebook run {NAME}").decode().lower()
        for name in ("compiler", *needed):
            self.assertIn(name, readme)

    def test_a_lie_in_its_readme(self):
        readme = downloads.readme_of(self.book, NAME).decode()
        for old, new, words in (
                ("./fusebook run", "./fusebook start", "no command './fusebook start'"),
                (f"run {NAME}", f"run {NAME} --out x", "'--out' is not an option of"),
                ("preset release\ncmake", "preset fast\ncmake", "no preset 'fast'"),
                (f"`recipes/{NAME}.cpp`", "`recipes/none.cpp`",
                 "no file or folder 'recipes/none.cpp'"),
                ("g++ 12", "g++ 9", "the versions of g++ are 12")):
            line = readme[:readme.index(old)].count("\n") + 1
            found = " | ".join(map(str, statements.of_readme(
                self.book, "README.md", readme.replace(old, new, 1))))
            self.assertIn(f"README.md:{line}: ", found)
            self.assertIn(words, found)

    def test_by_hand_all_is_of_one_preset(self):
        for name in self.book.recipe_names():
            readme = downloads.readme_of(self.book, name).decode()
            self.assertLessEqual(set(re.findall(r"(?:--preset |^build/)(\w+)", readme, re.M)),
                                 {"release"})
            self.assertEqual(set(re.findall(r"--target (\w+)|/recipes/(\w+)$", readme, re.M)),
                             {(name, ""), ("", name)} if "--target" in readme else set())

    def test_a_recipe_in_python_brings_the_package(self):
        name = "from_python"
        data = downloads.zip_of(self.book, name)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = {path.removeprefix(f"fusebook-{name}/")
                     for path in archive.namelist()}
            readme = archive.read(f"fusebook-{name}/README.md").decode()
        for path in ("recipes/from_python.py", "pyproject.toml",
                     "python/fusebook/recipe.py", "python/src/module.cpp",
                     "tests/requirements-module.txt"):
            self.assertIn(path, names)
        self.assertIn("NumPy", readme)
        self.assertNotIn("cmake --build", readme)
        cells = json.loads(downloads.notebook_of(self.book, name))["cells"]
        whole = "".join("".join(cell["source"]) for cell in cells)
        self.assertIn('"recipes/from_python.py").write_text', whole)

    def test_a_recipe_of_libtorch_says_so(self):
        path = self.book.recipe_path("in_a_libtorch_program")
        said = downloads.readme(path, "A title", "./fusebook run it").decode()
        self.assertIn("libtorch-dev", said)

    def test_a_recipe_of_several_processes_says_so(self):
        path = self.book.recipe_path("sharded_step")
        command = "./fusebook run sharded_step --ranks 4"
        said = downloads.readme(path, "A title", command).decode()
        self.assertIn("openmpi-bin", said)
        self.assertIn(f"\n{command}\n", said)

    def test_the_entry_can_be_run(self):
        with zipfile.ZipFile(io.BytesIO(self.zip)) as archive:
            for info in archive.infolist():
                mode = info.external_attr >> 16
                self.assertEqual(bool(mode & stat.S_IXUSR),
                                 info.filename == f"{FOLDER}/fusebook")

    def test_the_notebook_has_the_form_of_one(self):
        whole = json.loads(self.notebook)
        self.assertEqual((whole["nbformat"], whole["nbformat_minor"]), (4, 5))
        ids = [cell["id"] for cell in self.cells]
        self.assertEqual(len(set(ids)), len(ids))
        for cell in self.cells:
            self.assertRegex(cell["id"], r"^[a-zA-Z0-9_-]{1,64}$")
            wanted = {"cell_type", "id", "metadata", "source"}
            if cell["cell_type"] == "code":
                wanted |= {"execution_count", "outputs"}
                compile("".join(cell["source"]), cell["id"], "exec")
            self.assertEqual(set(cell), wanted)
            self.assertTrue(all(line.endswith("\n")
                                for line in cell["source"][:-1]))

    def test_the_notebook_writes_what_the_zip_holds(self):
        folder = self.temporary()
        names = {}
        with contextlib.chdir(folder):
            exec(self.cell("unpack"), names)
            exec(self.cell("recipe"), names)
        with zipfile.ZipFile(io.BytesIO(self.zip)) as archive:
            for name in archive.namelist():
                if not name.endswith("/README.md"):
                    self.assertEqual((folder / name).read_bytes(),
                                     archive.read(name), name)

    def test_the_notebook_shows_what_was_captured(self):
        run, = (cell for cell in self.cells if cell["id"] == "run")
        output = "".join(run["outputs"][0]["text"])
        sample = samples.load(self.book, "cpu", NAME)
        for step in sample.steps:
            self.assertIn(f"== {step.title}\n"
                          + samples.filled(step.text, sample.values), output)
        words = self.cell("run-words")
        self.assertIn(sample.provenance["device"], words)


if __name__ == "__main__":
    unittest.main()
