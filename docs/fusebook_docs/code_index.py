"""What there is in the project that prose can name: words of code, files,
commands, options, tests."""

import json
import re
from dataclasses import dataclass
from functools import cache

from . import cpp
from .errors import BookError

_CPP = {".h", ".cpp", ".cu", ".def"}
_SCRIPTS = {".sh", ".py", ".cmake", ".toml", ".json", ".yml", ".in"}
_FOLDERS = ("kernels", "common", "pack", "python", "recipes",
            "docs/examples", "docs/exercises", "docs/fusebook_docs", "tests",
            "tools", "cmake", ".github")
WORD = re.compile(r"[A-Za-z_]\w*")
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")


@dataclass(frozen=True)
class Index:
    """What there is: every word of code, every file, what commands know."""

    words: frozenset
    scripts: str  # of ./fusebook, its tools and the tests
    files: frozenset  # from the root
    commands: frozenset
    recipes: frozenset
    tests: frozenset
    presets: frozenset
    parts: frozenset  # of an installed copy
    options: frozenset


@cache
def index(root):
    files = [root / "fusebook", root / "CMakeLists.txt",
             root / "CMakePresets.json", root / "docs/conf.py"]
    for name in _FOLDERS:
        files += [path for path in sorted((root / name).rglob("*"))
                  if path.is_file() and "__pycache__" not in path.parts]
    code, scripts = [], []
    for path in files:
        suffix = path.suffix
        if suffix in _CPP:
            code.append(_code(path))
        elif suffix == ".patch":
            code += [line[1:] for line in path.read_text().split("\n")
                     if line.startswith("+") and "//" not in line]
        elif (suffix in _SCRIPTS or path.name in ("fusebook", "CMakeLists.txt")
              ) and not path.is_relative_to(root / "tests/docs"):
            scripts.append(path.read_text(encoding="utf-8", errors="replace"))
    known = {path.relative_to(root).as_posix() for path in files}
    known |= {path.relative_to(root).as_posix()
              for path in [*(root / "docs").rglob("*"), *root.glob("*")]
              if path.is_file() and "__pycache__" not in path.parts}
    code, scripts = "\n".join(code), "\n".join(scripts)
    words = set(WORD.findall(code)) | set(WORD.findall(scripts))
    stems = {path.stem for path in files}
    words |= {f"{path.name}_tests" for path in (root / "tests").iterdir()}
    tests = {stem for stem in stems if stem.endswith("_test")}
    presets = json.loads((root / "CMakePresets.json").read_text())
    return Index(
        frozenset(words | stems), scripts, frozenset(known),
        frozenset(path.stem for path in (root / "tools").glob("*.sh"))
        | {"help"},
        frozenset(path.stem for path in (root / "recipes").iterdir()
                  if path.suffix in (".cpp", ".py")),
        frozenset(tests), frozenset(
            each["name"] for kind in ("configurePresets", "testPresets")
            for each in presets[kind] if not each.get("hidden")),
        frozenset(path.parent.name for name in ("kernels", "common")
                  for path in (root / name).glob("*/CMakeLists.txt"))
        | {"fusebook"}, _options(root))


def _options(root):
    """Options of ./fusebook, its tools and the programs, and those of CMake's
    and doctest's that pages name."""
    files = [root / "fusebook", *(root / "tests/mutants").glob("mutants.py")]
    for name in ("tools", "docs/fusebook_docs", "tests/gpu_capture"):
        files += (path for path in (root / name).rglob("*")
                  if path.suffix in (".sh", ".py"))
    programs = "\n".join(
        _code(path) for name in ("common", "recipes", "tests/bench")
        for path in (root / name).rglob("*.*") if path.suffix in _CPP)
    found = {"install", "build", "source-file"}
    for path in files:
        found |= set(OPTION.findall(path.read_text(encoding="utf-8")))
    strings = " ".join(re.findall(r'"[^"\n]*"', programs))  # --i is code
    return frozenset(found | set(OPTION.findall(strings))
                     | set(re.findall(r'"([a-z][a-z-]*)"', strings)))


def _code(path):
    """Code without comments, and of its strings those that are one word."""
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        plain = cpp.blanked(text, path)
        strings = [match[0] for match in cpp.tokens(text, path)
                   if match.lastgroup in ("string", "raw")]
    except BookError:  # text that is spliced into code
        return text
    short = [word for word in strings
             if re.fullmatch(r'"[^"\s]*"', word) or "--" in word]
    return plain + "\n" + "\n".join(short)
