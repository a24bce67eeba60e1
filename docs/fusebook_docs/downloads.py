"""What a recipe's page gives away: a zip that builds alone, and a notebook.

Both hold the library and what builds it, as they are in the checkout, so that
`./fusebook run NAME` does there what it does here. Every build makes the same
bytes.
"""

import base64
import functools
import io
import json
import lzma
import tarfile
import textwrap
import zipfile

from . import gallery, literate, samples

# Of the checkout; what a program is made of, and nothing that tests or prints it.
FILES = ("CMakeLists.txt", "LICENSE", "fusebook", "recipes/CMakeLists.txt")
FOLDERS = ("cmake", "common", "kernels", "tools")
# Besides, of a recipe in Python: the package, and what builds that.
PYTHON = ("pyproject.toml", "tests/requirements-module.txt", "python")
PRESETS = "CMakePresets.json"
_TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip can hold
_WIDTH = 96  # of a line of the library in a notebook


def folder_name(name):
    return f"fusebook-{name}"


def library(book, recipe):
    """Every file but the recipe itself: path -> bytes."""
    more = PYTHON if recipe.suffix == ".py" else ()
    found = {}
    for name in (*FILES, *FOLDERS, *more):
        place = book.root / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.is_file() and "__pycache__" not in path.parts:
                found[path.relative_to(book.root).as_posix()] = path.read_bytes()
    found[PRESETS] = _without_tests((book.root / PRESETS).read_text("utf-8"))
    return dict(sorted(found.items()))


def _without_tests(presets):
    """Tests and fusebook-pack stay behind, so nothing may ask for them."""
    whole = json.loads(presets)
    whole = {name: part for name, part in whole.items()
             if name not in ("testPresets", "workflowPresets")}
    for preset in whole["configurePresets"]:
        if preset.get("hidden"):
            variables = preset.setdefault("cacheVariables", {})
            variables |= {"FUSEBOOK_TESTING": "OFF", "FUSEBOOK_PACK": "OFF"}
    return (json.dumps(whole, indent=2) + "\n").encode()


def is_program(name):
    return name == "fusebook"


def needed(recipe):
    """A name for what a recipe needs to be built besides what all do."""
    if recipe.suffix == ".py":
        return "Python"
    text = recipe.read_text("utf-8")
    libraries = {"libtorch": "LibTorch", "distributed": "MPI"}
    return next((name for room, name in libraries.items()
                 if f'"fusebook/{room}/' in text), "")


_PACKAGES = {
    "": "",
    "Python": ", and Python 3.11 with nanobind and NumPy",
    "LibTorch": ", and LibTorch (Debian: libtorch-dev)",
    "MPI": ", and MPI (Debian: libopenmpi-dev and openmpi-bin)",
}


def readme(recipe, title, command):
    """What the zip of a recipe says; `command` runs it."""
    name = recipe.stem
    by_hand = "" if recipe.suffix == ".py" else textwrap.dedent(f"""
        ```sh
        cmake --preset release
        cmake --build --preset release --target {name}
        build/release/recipes/{name}
        ```
        """)
    return textwrap.dedent(f"""\
        # {title}

        A recipe of Fusebook, a book about fused optimizers, with all that it
        needs to be built. This command builds and runs it:

        ```sh
        {command}
        ```

        It says what is missing and asks before it installs that. Without it you
        need a C++20 compiler (g++ 12 or clang++ 15, or newer), CMake 3.25, Ninja, Eigen
        3.4, fmt 9, nlohmann-json and CLI11{_PACKAGES[needed(recipe)]}{":" if by_hand else "."}
        BY_HAND
        The program is `recipes/{recipe.name}`; change it and run it again.
        Another recipe that you put beside it is built in the same way.
        The licence is in `LICENSE`.
        """).replace("BY_HAND\n", by_hand + "\n").encode()


def readme_of(book, name):
    """The README in the zip of a recipe of the book."""
    return readme(book.recipe_path(name), title_of(book, name),
                  gallery.run_command(book, name))


def zip_of(book, name):
    """The bytes of NAME.zip."""
    recipe = book.recipe_path(name)
    files = {**library(book, recipe),
             f"recipes/{recipe.name}": recipe.read_bytes(),
             "README.md": readme_of(book, name)}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as zip:
        for path, data in sorted(files.items()):
            info = zipfile.ZipInfo(f"{folder_name(name)}/{path}", _TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # permissions are those of Unix
            info.external_attr = (0o100755 if is_program(path)
                                  else 0o100644) << 16
            zip.writestr(info, data)
    return out.getvalue()


def title_of(book, name):
    return literate.read(book.recipe_path(name)).parts[0].prose[0].text


@functools.lru_cache(maxsize=2)
def _packed(files):
    """Files as text for a cell of a notebook: a tar.xz in base 64."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path, data in files:
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(data), 0o755 if is_program(path) else 0o644
            tar.addfile(info, io.BytesIO(data))
    text = base64.b64encode(lzma.compress(out.getvalue(), preset=9)).decode()
    return "\n".join(textwrap.wrap(text, _WIDTH))


_UNPACK = """\
import base64, io, pathlib, subprocess, tarfile

book = pathlib.Path("{folder}").resolve()
library = base64.b64decode('''
{packed}
''')
with tarfile.open(fileobj=io.BytesIO(library)) as tar:
    tar.extractall(book)
"""

_WRITE = """\
(book / "recipes/{file}").write_text(r'''{source}''');
"""

_RUN = """\
with subprocess.Popen(["sh", {words}, "--yes"], cwd=book,
                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                      text=True) as program:
    for line in program.stdout:
        print(line, end="")
assert program.returncode == 0
"""


def notebook_of(book, name):
    """The text of NAME.ipynb: plain Python, which any notebook runs."""
    recipe = book.recipe_path(name)
    source = recipe.read_text(encoding="utf-8")
    if "'''" in source:
        raise ValueError(f"{recipe.name} has three quotes in a row")
    sample = samples.load(book, "cpu", name)
    packed = _packed(tuple(library(book, recipe).items()))
    facts = sample.provenance
    where = f"{facts['device']}, {facts['compiler']}, {facts['date']}"
    cells = [
        _words("title", f"# {title_of(book, name)}\n\nA recipe of Fusebook, a "
               "book about fused optimizers. Run the cells from the first to the "
               "last. They need a C++20 compiler"
               f"{_PACKAGES[needed(recipe)]}, and install what is missing where they may."),
        _words("unpack-words", "## The library\n\nThis cell unpacks it into the "
               f"folder `{folder_name(name)}`."),
        _code("unpack", _UNPACK.format(folder=folder_name(name), packed=packed),
              hidden=True),
        _words("recipe-words", "## The recipe\n\nThis cell writes it, its text in "
               "its comments. Change it as you like."),
        _code("recipe", _WRITE.format(file=recipe.name, source=source)),
        _words("run-words", "## What it prints\n\nThis cell builds and runs it. "
               f"Until you run it, it shows what was captured on {where}."),
        _code("run", _RUN.format(words=_words_of(gallery.run_command(book, name))),
              output=_printed(sample)),
    ]
    whole = {"cells": cells, "metadata": {
        "kernelspec": {"display_name": "Python 3", "language": "python",
                       "name": "python3"},
        "language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _words_of(command):
    """The words of a command in this folder, as Python writes them."""
    return ", ".join(f'"{word}"' for word in command.removeprefix("./").split())


def _printed(sample):
    parts = (f"== {step.title}\n" * bool(step.title)
             + samples.filled(step.text, sample.values) for step in sample.steps)
    return "".join(parts)


def _words(name, text):
    return {"cell_type": "markdown", "id": name, "metadata": {},
            "source": text.splitlines(keepends=True)}


def _code(name, text, *, hidden=False, output=None):
    outputs = [] if output is None else [
        {"name": "stdout", "output_type": "stream",
         "text": output.splitlines(keepends=True)}]
    return {"cell_type": "code", "execution_count": None, "id": name,
            "metadata": {"jupyter": {"source_hidden": True}} if hidden else {},
            "outputs": outputs,
            "source": text.removesuffix("\n").splitlines(keepends=True)}
