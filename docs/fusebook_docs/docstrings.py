"""What the `///` comments of the library say is what its code has.

`CLASS::member` is a member of that class (members.py), in `kernels/` too. A number there, zero, one and two aside, has to stand in the code of the header, of its
`.cpp`, of its room or of a header that one of both includes. Years, versions, what is
in quotes and examples in code are not looked at.
"""

import re
from functools import cache

from . import cpp, members, numbers
from .errors import BookError

FOLDER = "common"
_FOLDERS = ("common", "kernels")
_SMALL = (0, 1, 2)
_COMMENT = re.compile(r"///<?(.*)")
_CODE = re.compile(r"`[^`]*`|\"[^\"]*\"|^    .*$", re.M)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_OTHERS = re.compile(r"\bUTF-8\b|\bversion \d+(?:\.\d+)*")
_NUMBER = re.compile(r"\d[\d']*(?:\.\d*)?(?:e[-+]?\d+)?")
_INCLUDE = re.compile(r'#include "fusebook/(\S+)"')
_SOURCES = (".h", ".cpp", ".cu", ".def")
# What a header says of another room, which it does not include.
_TELLS_OF = {"common/device/cuda_kernel.h": ("kernels/prelude/gpu_layout.h",),
             "common/optim_base/optimizer.h": ("kernels/prelude/blocks.h",)}
# A measurement that no test repeats.
_MEASURED = {"common/device/allocator.h": {1.5}}


def problems(book):
    """Every number of a header's comments that its code does not have, and every
    member that its class does not have."""
    for folder in _FOLDERS:
        for path in sorted((book.root / folder).rglob("*.h")):
            source = path.read_text(encoding="utf-8")
            if folder == FOLDER:
                yield from of_header(book, path, source)
            yield from members_of(book, path, source)


def comments(source):
    """The `///` comments of a header; what is code is empty, so that lines stay."""
    return "\n".join(match[1] if (match := _COMMENT.search(line)) else ""
                     for line in source.split("\n"))


def members_of(book, path, source):
    show = path.relative_to(book.root).as_posix()
    yield from members.in_comments(book, show, comments(source))


def of_header(book, path, source):
    show = path.relative_to(book.root).as_posix()
    known = _around(book, path, show) | _in(cpp.blanked(source, path,
                                                        keep_strings=True))
    text = comments(source)
    for pattern in (_CODE, _YEAR, _OTHERS):
        text = pattern.sub(_blank, text)
    for found in numbers.bare(text):
        worth = numbers.worth(found.text.rpartition("^")[2])
        if worth and abs(worth[0]) not in _SMALL and worth[0] not in known:
            yield BookError(
                f"{found.text!r} is not a number of the code around: say what is "
                "there, or say it without a number", show,
                text.count("\n", 0, found.start) + 1)


def _around(book, path, show):
    """Numbers of the room, and of what the header and its `.cpp` include."""
    found = set(_MEASURED.get(show, ()))
    for each in path.parent.iterdir():
        if each.suffix in _SOURCES and each != path:
            found |= _of_file(each)
    wanted = list(_TELLS_OF.get(show, ()))
    for each in (path, path.with_suffix(".cpp")):
        if each.is_file():
            wanted += (f"{floor}/{name}" for floor in ("common", "kernels")
                       for name in _INCLUDE.findall(each.read_text("utf-8")))
    for name in wanted:
        if (book.root / name).is_file():
            found |= _of_file(book.root / name)
    return found


@cache
def _of_file(path):
    text = path.read_text(encoding="utf-8")
    try:
        text = cpp.blanked(text, path, keep_strings=True)
    except BookError:  # text that is spliced into code
        pass
    return _in(text)


def _in(code):
    return {float(number.replace("'", "")) for number in _NUMBER.findall(code)}


def _blank(match):
    return re.sub(r"[^\n]", " ", match[0])
