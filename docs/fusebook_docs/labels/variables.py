"""A variable of the environment is named where its own work is told.

`MEANS` has words for each, of which a file that reads it has one. Around its name on a
page, in its sentence or row, stands one of them: `FUSEBOOK_CACHE_DIR` in the place of
`FUSEBOOK_THREADS` is noticed where a page says "threads".
"""

import re
from functools import cache

from ..errors import errors_in

# Beginnings of words.
MEANS = {
    "BUDGET": ("second", "minute"),
    "CACHE_DIR": ("kept", "stored", "cache"),
    "CHROMIUM": ("chromium",),
    "CUDA_HOME": ("cuda toolkit",),
    "CXX": ("compiler",),
    "KEEP_SOURCE": ("source",),
    "KERNELS": ("kernels", "file"),
    "LOGS": ("log",),
    "NVRTC": ("libnvrtc",),
    "PYTHON": ("python",),
    "PYTHON_TORCH": ("pytorch",),
    "QUICK": ("call",),
    "RECIPES": ("recipe", "install"),
    "REPOSITORY": ("repository",),
    "SITE_URL": ("site",),
    "TEST_DEVICE": ("device",),
    "THREADS": ("thread",),
}
_NAME = re.compile(r"\bFUSEBOOK_([A-Z_]+)\b")
_END = re.compile(r"\n\s*\n|\n\s*(?=\|)|(?<=[.:?!])\s")
_READERS = ("kernels", "common", "tests", "tools", "docs/conf.py", "CMakeLists.txt")


def in_prose(book, text):
    return text.errors(_wrong(book, text.whole))


def in_markdown(book, show, text):
    return errors_in(show, text, _wrong(book, text))


def _wrong(book, whole):
    for each in _NAME.finditer(whole):
        name = each[1]
        if name not in MEANS:
            yield each.start(), (f"FUSEBOOK_{name}: list words for it in "
                                 "docs/fusebook_docs/labels/variables.py")
            continue
        words = _NAME.sub(" ", _around(whole, each)).lower()
        if not any(re.search(rf"(?<![a-z]){word}", words) for word in MEANS[name]):
            yield each.start(), (f"nothing around FUSEBOOK_{name} says what it is for: "
                                 f"none of {', '.join(MEANS[name])}")
        elif other := [longer for longer in MEANS if longer.startswith(f"{name}_")
                       and any(word in words for word in MEANS[longer])]:
            yield each.start(), f"this is told of FUSEBOOK_{other[0]}"
        elif not any(word in _readers(book.root, name) for word in MEANS[name]):
            yield each.start(), (f"no file that reads FUSEBOOK_{name} speaks of "
                                 f"{' or '.join(MEANS[name])}")


def _around(whole, match):
    """Its sentence or row; of several names with words between them, what follows each."""
    begin, end = _sentence(whole, match)
    later = _NAME.search(whole, match.end(), end)
    earlier = _NAME.search(whole, begin, match.start())
    if later and len(whole[match.end():later.start()].split()) > 3:
        end = later.start()
    if earlier and len(whole[earlier.end():match.start()].split()) > 3:
        begin = match.start()
    return whole[begin:end]


def _sentence(whole, match):
    ends = [m.end() for m in _END.finditer(whole)]
    begin = max((at for at in ends if at <= match.start()), default=0)
    end = min((at for at in ends if at > match.start()), default=len(whole))
    return begin, end


@cache
def _readers(root, name):
    """All text of the files that have its name in a string or an expression."""
    found = []
    for folder in _READERS:
        path = root / folder
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix in (".cpp", ".h", ".py", ".sh", ".txt") and (
                    "docs" not in file.relative_to(root).parts or folder.startswith(
                        "docs")) and file.is_file():
                text = _text(file)
                if re.search(rf"FUSEBOOK_{name}\b", text):
                    found.append(text.lower())
    return "\n".join(found)


@cache
def _text(file):
    return file.read_text(encoding="utf-8", errors="replace")
