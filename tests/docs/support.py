"""What the tests share: a book of two toy recipes, and programs to run.

The toy book is made anew in a temporary folder. Its programs are small
scripts that write a record as a recipe would; its samples are captured from
them with the book's own `capture`.
"""

import contextlib
import copy
import importlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FIXTURES = HERE / "fixtures"
# What the page of operations is made of, and a file of more rows.
OPERATIONS = ("kernels/ops/ops.def", "common/foreach/map_element.h",
              "tests/new_op/more_ops.def")
# What a download is made of, besides the recipe and the library.
BUILDING = ("CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json", "LICENSE",
            "cmake", "fusebook", "tools")
# What of the site itself a toy book has of its own.
TOY_PAGES = ("about", "background", "equations", "examples", "reference")
sys.path.insert(0, str(ROOT / "docs"))

from fusebook_docs import checking, cli, currency, samples  # noqa: E402
from fusebook_docs.book import Book  # noqa: E402

_SCRIPT = """#!{python}
import json, sys, time
spec = json.loads({spec!r})
assert sys.argv[1:4:2] == ["--device", "--record"], sys.argv
assert sys.argv[2] == spec["record"]["device"] or spec["any_device"]
for step in spec["record"]["steps"][:spec["stop"]]:
    if step["title"]:
        print("== " + step["title"])
    print(step["text"], end="", flush=True)
sys.stderr.write(spec["stderr"])
sys.stderr.flush()
time.sleep(spec["sleep"])
if spec["exit"]:
    sys.exit(spec["exit"])
if spec["write"]:
    json.dump(spec["record"], open(sys.argv[4], "w"))
"""

RUN = "Compile *and* run: \"both\""


def toy_record(device="cpu"):
    """A record of toy_optimizer, to be changed at will."""
    return copy.deepcopy({
        "format": 1,
        "recipe": "toy_optimizer",
        "device": device,
        "options": {"layers": 10, "width": 64},
        "provenance": {
            "device": "Toy CPU 9" if device == "cpu" else "Toy GPU 1",
            "threads": 2, "compiler": "g++ 12.2.0",
            "system": "Debian GNU/Linux 12", "date": "2026-11-21"},
        "steps": [
            {"title": "", "text": ""},
            {"title": "Model setup",
             "text": "parameters: 10 // not a comment { \n"},
            {"title": RUN, "text":
             "launches: 5\neager:    @{eager_us}\n"
             "ratio:    @{ratio} at @@{home}\n"
             "place:    @{here}, on @{cpu_name}\n"},
            {"title": "A quiet step", "text": ""}],
        "values": {
            "eager_us": {"kind": "measured", "value": 747.2, "unit": "us",
                         "shown": " 747.2 us"},
            "ratio": {"kind": "varying", "value": 2.5, "unit": "x",
                      "low": 1.0, "high": 10.0, "shown": "2.5x"},
            "here": {"kind": "place", "shown": "recipes/toy_optimizer.cpp:45",
                     "value": "recipes/toy_optimizer.cpp:45"},
            "cpu_name": {"kind": "text", "value": "Toy <&> 9",
                         "shown": "Toy <&> 9"}},
        "kernels": ["00aa", "11bb"],
    })


def amsgrad_record():
    record = toy_record()
    record["steps"][2]["text"] = record["steps"][2]["text"].replace(
        "launches: 5", "launches: 5, arrays: 5")
    return record


def plain_record():
    record = toy_record()
    record.update(recipe="plain_recipe", values={}, steps=[
        {"title": "Say it", "text":
         "A line that is long enough to need scrolling on a phone, so that we "
         "can see that it scrolls inside its own box and not with the "
         "page.\n"}])
    return record


def write_program(path, record, *, stop=None, exit_code=0, stderr="",
                  sleep=0.0, write=True, any_device=False):
    """An executable that prints and records what it is told to."""
    spec = json.dumps({"record": record, "stop": stop, "exit": exit_code,
                       "stderr": stderr, "sleep": sleep, "write": write,
                       "any_device": any_device})
    path.write_text(_SCRIPT.format(python=sys.executable, spec=spec))
    path.chmod(0o755)
    return path


class BookCase(unittest.TestCase):
    """A test with a toy book of its own, without samples at first."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="toy-book-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        make_book(self.root)
        self.book = Book(self.root)

    def command(self, *arguments):
        """Runs a command: exit code, and all it wrote."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = cli.main(["--root", str(self.root), *map(str, arguments)])
        return code, out.getvalue()

    def run_on(self, command, record, *options, exercise=None, **program):
        """`verify` or `capture` of toy_optimizer with a fake program."""
        path = write_program(self.root / "program", record, **program)
        if exercise:
            options = (*options, "--exercise", exercise)
        return self.command(command, "--program", path, "--recipe",
                            "toy_optimizer", *options)

    def capture(self, record=None, *options, **program):
        code, out = self.run_on("capture", record or toy_record(), *options,
                                **program)
        self.assertEqual(code, 0, out)
        return out

    def files(self):
        """Every file of the samples, with its bytes."""
        return {path.relative_to(self.root): path.read_bytes()
                for path in self.book.samples.rglob("*") if path.is_file()}


def make_book(root):
    shutil.copytree(FIXTURES / "recipes", root / "recipes")
    shutil.copytree(FIXTURES / "exercises", root / "docs" / "exercises")


def copy_operations(root):
    for name in OPERATIONS:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)


def make_sources(root):
    """The whole toy book, ready for Sphinx: the real site, toy recipes."""
    make_book(root)
    fill_samples(root)
    copy_operations(root)
    for path in (ROOT / "docs").iterdir():
        if path.name not in ("samples", "exercises", "recipes", "gallery.toml",
                             "kernels", "locale", "measurements", "terms.toml",
                             *TOY_PAGES):
            (root / "docs" / path.name).symlink_to(path)
    for name in TOY_PAGES:
        shutil.copytree(FIXTURES / name, root / "docs" / name)
    shutil.copy(FIXTURES / "gallery.toml", root / "docs")
    shutil.copytree(FIXTURES / "common", root / "common", dirs_exist_ok=True)
    (root / "docs" / "recipes").symlink_to("../recipes")
    for name in BUILDING:
        (root / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "recipes" / "CMakeLists.txt", root / "recipes")


def build(root, out, *options, builder="html"):
    """Builds the toy book as the real one is built: exit code, messages. In a
    child of this process, which knows Sphinx already and keeps nothing of it."""
    import sphinx.application  # here, because some tests run without Sphinx
    import sphinx.cmd.build

    for name in (*sphinx.application.builtin_extensions, *_OF_A_BUILD):
        importlib.import_module(name)
    arguments = _arguments(root, out, *options, builder=builder)
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as messages:
        child = os.fork()
        if child == 0:
            os._exit(_call(sphinx.cmd.build.main, arguments, messages.fileno()))
        _, status = os.waitpid(child, 0)
        messages.seek(0)
        return os.waitstatus_to_exitcode(status), messages.read().decode()


def build_anew(root, out):
    """The same in a process that shares nothing: its sets have another order."""
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *_arguments(root, out)],
        capture_output=True, text=True, check=False,
        env={**os.environ, **_SETTINGS})
    return done.returncode, done.stdout + done.stderr


def _arguments(root, out, *options, builder="html"):
    return ["-W", "--keep-going", "-q", "-b", builder, *options,
            str(root / "docs"), str(out)]


_SETTINGS = {"NO_COLOR": "1", "SOURCE_DATE_EPOCH": "0"}
# What a build imports besides.
_OF_A_BUILD = ("a11y_pygments", "babel", "breathe.directives.setup",
               "docutils.parsers.rst.directives.tables", "furo",
               "fusebook_docs.extension", "jinja2", "pygments.lexers.c_cpp",
               "snowballstemmer", "sphinx.ext.graphviz", "sphinx.ext.mathjax",
               "sphinx.jinja2glue", "sphinx.search.en", "sphinx_copybutton",
               "sphinx_design.extension")


def _call(main, arguments, messages):
    for descriptor in (1, 2):
        os.dup2(messages, descriptor)
    os.environ.update(_SETTINGS)
    code = 1
    try:
        code = main(arguments)
    except BaseException:  # also what would end this process
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return code


def fill_samples(root):
    """Samples of the whole toy book: CPU, and an old one of a GPU."""
    book = Book(root)
    runs = ((plain_record(), None), (toy_record(), None),
            (amsgrad_record(), "amsgrad"))
    for record, exercise in runs:
        source = checking.source_of(book, record["recipe"], exercise)
        samples.store(book, samples.from_record(
            record, "toy", exercise=exercise,
            source_sha256=source.fingerprint))
    store_gpu(book, source_sha256="0" * 64)


def store_gpu(book, *kernels, exercise=None, record=None, **fields):
    """The sample of a GPU, up to date but for what is given."""
    if record is None:
        record = toy_record("cuda") if exercise is None else amsgrad_record()
    record["device"] = "cuda"
    if kernels:
        record["kernels"] = list(kernels)
    source = checking.source_of(book, "toy_optimizer", exercise)
    fields = {"source_sha256": source.fingerprint,
              "gpu_code_sha256": currency.gpu_code(book), **fields}
    return samples.store(book, samples.from_record(
        record, "toy", exercise=exercise, **fields))
