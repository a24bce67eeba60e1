"""What a page tells another project to write finds the package, its parts and programs.

Each call in a `cmake` block stands, with the same names, in a CMakeLists.txt of
tests/consumers/, which tests build: the one beside the program that the section shows,
where it shows one. In an `sh` block, `pkg-config` is asked for the file that
cmake/install.cmake installs, in the folder where it does; Debian's packages are those that ./fusebook knows, and what is
run or built is the program that the section shows. A folder of the home is one that the
library uses.
"""

import re
from functools import cache

from ..errors import errors_in

_BLOCK = re.compile(r"^( *)\.\. code-block:: (cmake|sh)\n\n((?:\1 +.*\n|\n)+)", re.M)
_CALL = re.compile(r"(\w+)\(([^()]*)\)")
_SECTION = re.compile(r"^(?=.+\n(?:=+|-+)$)", re.M)
_SHOWN = re.compile(r"literalinclude:: \S*tests/consumers/(\w+)/(\w+)\.cpp")
_PROJECT = ("SOURCE_DIR",)  # what follows is a folder of the project's own
_ASKED = re.compile(r"pkg-config ((?:--?[\w-]+ )*)(\w+)")
_PATH = re.compile(r"PKG_CONFIG_PATH=\"?\S*?/(lib/[\w/]+)\"?")
_RUN = re.compile(r"^\s*(?:build|\.)/(\w+)$|c\+\+ .*?(\w+)\.cpp -o (\w+)", re.M)
_APT = re.compile(r"apt-get install ((?:[\w.+-]+[ \\\n]*)+)")
_HOME = re.compile(r"`~(/[\w./-]+)`")
_TARGET = re.compile(r"\bfusebook::(\w+)")


def in_prose(book, text):
    return text.errors([*_in_blocks(book, text.whole), *_homes(book, text.whole),
                        *_in_literals(book, text.whole)])


def _in_blocks(book, whole):
    for each in _BLOCK.finditer(whole):
        shown = _SHOWN.findall(_section(whole, each.start()))
        check = _of_cmake if each[2] == "cmake" else _of_shell
        for at, message in check(book, each[3], shown):
            yield each.start(3) + at, message


def _in_literals(book, whole):
    for each in re.finditer(r"``([^`]*fusebook::\w+[^`]*)``|``(find_package\([^`]*)``", whole):
        for at, message in _in_words(book, each[1] or each[2]):
            yield each.start() + at, message


def _section(whole, start):
    starts = [m.start() for m in _SECTION.finditer(whole)]
    begin = max((at for at in starts if at <= start), default=0)
    end = min((at for at in starts if at > start), default=len(whole))
    return whole[begin:end]


def _of_cmake(book, block, shown):
    folders = {folder for folder, _ in shown} or None
    known = {call for path, calls in _calls(book.root).items()
             if folders is None or path in folders for call in calls}
    programs = {name for _, name in shown}
    for each in _CALL.finditer(block):
        words = tuple(each[2].split())
        mine = _shape(each[1], words)
        if mine not in {_shape(name, args) for name, args in known}:
            yield each.start(), (f"{each[1]}({' '.join(words)}) stands in no project of "
                                 f"tests/consumers/{'/'.join(folders or ())}")
        elif each[1] == "target_link_libraries" and programs and words[0] not in programs:
            yield each.start(), f"{words[0]!r} is not the program shown here"


def _shape(name, words):
    """A call without versions, folders, programs and CONFIG or REQUIRED, which a
    project may choose."""
    kept = []
    for before, word in zip(("", *words), words):  # noqa: B905
        if before in _PROJECT or word in ("CONFIG", "REQUIRED") or re.fullmatch(
                r"[\d.]+", word):
            continue
        kept.append(word)
    if name.startswith("target_"):
        kept = kept[1:]
    return name, tuple(kept)


@cache
def _calls(root):
    """{folder: calls} of the projects that tests build."""
    found = {}
    for path in sorted((root / "tests/consumers").glob("*/CMakeLists.txt")):
        text = re.sub(r"#.*", "", path.read_text(encoding="utf-8"))
        found[path.parent.name] = frozenset(
            (each[1], tuple(each[2].split())) for each in _CALL.finditer(text))
    return found


def _of_shell(book, block, shown):
    install = (book.root / "cmake/install.cmake").read_text(encoding="utf-8")
    packages = re.findall(r"configure_file\(cmake/(\w+)\.pc\.in", install)
    folder = re.search(r"CMAKE_INSTALL_LIBDIR (\w+) OUTPUT_VARIABLE pkgconfig", install)
    for each in _ASKED.finditer(block):
        if each[2] not in packages:
            yield each.start(), f"pkg-config knows no {each[2]!r}: {packages}"
    for each in _PATH.finditer(block):
        if each[1] != f"lib/{folder[1]}":
            yield each.start(), f"{each[1]} is not where cmake/install.cmake puts " \
                                f"{packages[0]}.pc: lib/{folder[1]}"
    for each in _APT.finditer(block):
        for name in re.findall(r"[a-z][\w.+-]+", each[1]):
            if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", _tools(book.root)):
                yield each.start(), f"./fusebook installs no package {name!r}"
    programs = {name for _, name in shown}
    for each in _RUN.finditer(block):
        names = {name for name in each.groups() if name}
        if programs and names - programs - {"fusebook"}:
            yield each.start(), (f"{', '.join(sorted(names - programs))} is not the "
                                 f"program shown here: {', '.join(sorted(programs))}")


def in_markdown(book, show, text):
    found = [*_homes(book, text)]
    for each in re.finditer(r"^```sh\n(.*?)^```", text, re.M | re.S):
        found += [(each.start(1) + at, message)
                  for at, message in _of_shell(book, each[1], ())]
    yield from errors_in(show, text, found)


def _homes(book, text):
    for each in _HOME.finditer(text):
        if f'"{each[1]}"' not in _sources(book.root):
            yield each.start(), f"nothing of the library uses ~{each[1]}"


@cache
def _sources(root):
    return "\n".join(path.read_text(encoding="utf-8")
                     for path in sorted((root / "kernels").rglob("*.cpp")))


@cache
def _tools(root):
    """The scripts of ./fusebook, which know Debian's packages."""
    return "\n".join(path.read_text(encoding="utf-8") for path in
                     [root / "fusebook", *sorted((root / "tools").rglob("*.sh"))])


def _in_words(book, literal):
    """A target or a call in a sentence."""
    rooms = {path.parent.name for name in ("kernels", "common")
             for path in (book.root / name).glob("*/CMakeLists.txt")}
    for each in _TARGET.finditer(literal):
        if each[1] not in rooms | {"fusebook"}:
            yield each.start(), f"there is no target fusebook::{each[1]}"
    for each in re.finditer(r"find_package\((\w+)", literal):
        if each[1] != "fusebook":
            yield each.start(), f"the package is fusebook, not {each[1]}"
