"""`./fusebook new NAME`: a recipe that builds, runs and keeps every rule, to be
changed into one's own.

Its files are made from the templates beside this: the program, its place in the
gallery, what the page says around it, and the answers of its exercises.
"""

import re
from pathlib import Path

from .. import gallery, patches, samples
from ..book import check_name
from ..errors import BookError
from ..translation import entries

_TEMPLATES = Path(__file__).resolve().parent
_ADAM = "{.lr = 0.01}"
# Answer -> what it replaces in the program, and what it says.
_ANSWERS = {
    "amsgrad": ({_ADAM: "{.lr = 0.01, .amsgrad = true}"}, (
        "It keeps the largest average so far, which is loaded and stored as well: "
        "an\nelement costs :value:`36 <bytes per element: #>` bytes.")),
    "weight_decay": ({_ADAM: "{.lr = 0.01, .weight_decay = 0.1}"}, (
        "No: :value:`28 <bytes per element: #>` bytes, as before. The parameter is "
        "in a\nregister already.")),
    "another_optimizer": ({"  Adam ": "  AdamW "}, (
        "Yes, and its kernel moves :value:`28 <bytes per element: #>` bytes per "
        "element,\nlike Adam's.")),
}
# Words of C++, and what CMake, the build or a command call something else.
_TAKEN = set(
    "alignas alignof and asm auto bool break case catch char class concept const "
    "constexpr continue default delete do double else enum explicit export extern "
    "false float for friend goto if inline int long main mutable namespace new "
    "noexcept not nullptr operator or private protected public register requires "
    "return short signed sizeof static struct switch template this throw true try "
    "typedef typeid typename union unsigned using virtual void volatile while xor "
    "fuse std "
    "all clean edit_cache help install package rebuild_cache test unit_tests "
    "bench bench_gpu bench_openmp compile_alone doctest_main examples exercises "
    "fusebook gpu_code_check gpu_report kernels recipe_headers recipes".split())


def make(book, name, title=None):
    """Writes the files of a new recipe; their paths."""
    files = _files(book, name, title or name.replace("_", " ").capitalize())
    for path in files:
        if path.exists() and path != gallery.path(book):
            raise BookError(f"{name} is there already, or what is left of it: "
                            f"{book.show(path)}")
    samples.write_files(files)
    translated = entries.files(book, name)
    samples.write_files(translated)
    return [*files, *translated]


def check(book, name, title=None):
    """Refuses a name that a recipe cannot have."""
    check_name("recipe", name)
    if name in _TAKEN or name.endswith("_test") or name.startswith("fuse_"):
        raise BookError(f"a recipe cannot be called {name!r}: C++ or the build "
                        "uses that name. Take another one")
    if name in book.recipe_names():
        raise BookError(f"there is a recipe {name!r} already: "
                        f"{book.show(book.recipe_path(name))}. Take another name")
    if title is not None and not re.fullmatch(r"[^\s`*|\\][^\n`*|\\]{2,59}", title):
        raise BookError(f"{title!r} is not a title: 3 to 60 characters in one "
                        "line, none of them ` * | or \\")


def _files(book, name, title):
    check(book, name, title)
    words = {"NAME": name, "TITLE": title, "LINE": "=" * max(len(title), 4)}
    program = _filled("recipe.cpp.in", words)
    index = gallery.path(book)
    about = _filled("about.rst.in", words)
    found = {book.recipes / f"{name}.cpp": program,
             gallery.about_path(book, name): about,
             index: index.read_text("utf-8") + _filled("gallery.toml.in", words)}
    for answer, (changes, text) in _ANSWERS.items():
        folder = book.exercises / name
        changed = program
        for old, new in changes.items():
            changed = changed.replace(old, new)
        found[folder / f"{answer}.patch"] = patches.make(f"recipes/{name}.cpp", program, changed)
        found[folder / f"{answer}.rst"] = f"{text}\n"
    return found


def _filled(template, words):
    text = (_TEMPLATES / template).read_text(encoding="utf-8")
    return re.sub(r"@([A-Z]+)@", lambda match: words[match[1]], text)
