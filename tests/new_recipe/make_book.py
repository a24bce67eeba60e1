"""Makes a book in FOLDER that has the recipes of this one and a new one, NAME:

    make_book.py FOLDER NAME

and writes the program of each of its answers to FOLDER/ANSWER/recipes/NAME.cpp.
"""

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))

from fusebook_docs import new_recipe, patches, samples  # noqa: E402
from fusebook_docs.book import Book  # noqa: E402


def main():
    folder, name = Path(sys.argv[1]), sys.argv[2]
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "recipes", folder / "recipes")
    (folder / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "gallery.toml", folder / "docs")
    book = Book(folder)
    new_recipe.make(book, name)
    for answer in book.exercise_names(name):
        path = folder / answer / "recipes" / f"{name}.cpp"
        samples.write_files({path: patches.patched(book, name, answer)})


if __name__ == "__main__":
    main()
