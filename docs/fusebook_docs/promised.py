"""The test beside a promise on docs/promises.md is one of what is promised.

    [[promise]]
    that = "A forked child compiles and steps"
    proven = {fork_test = ["children forked while other threads step"]}

in `docs/claims.toml` has, for each test that the row names, words of the titles of its
cases (`TEST_CASE`), or of the file that `file: words` names. A row has just the tests
that are listed for it, and each of them has the case.
"""

import re
import tomllib

from .claims import FILE
from .errors import BookError
from .reading import cases

PAGE = "docs/promises.md"
_ROW = re.compile(r"^\| (?!promise \||---)(.+?) \| (.+) \|$", re.M)
_TEST = re.compile(r"`(\w+_(?:test|fuzz|libfuzz)|gpu_code\.\*|entry|asan|tsan)`")
_CASE = re.compile(r'TEST_CASE(?:_FIXTURE|_TEMPLATE)?\((?:\w+,\s*)?((?:\s*"[^"]*")+)')


def problems(book, page=None):
    """Every row that names another test than the one of what it promises."""
    text = (book.root / PAGE).read_text(encoding="utf-8") if page is None else page
    listed = {table["that"]: table["proven"] for table in tomllib.loads(
        (book.root / FILE).read_text(encoding="utf-8"))["promise"]}
    used = set()
    for row in _ROW.finditer(text.partition("| promise |")[2]):
        line = text.partition("| promise |")[0].count("\n") + 1 + text.partition(
            "| promise |")[2].count("\n", 0, row.start())
        that = [each for each in listed if row[1].startswith(each)]
        if len(that) != 1:
            yield BookError(f"{row[1][:40]!r}...: {FILE} does not say, under "
                            "[[promise]], which cases of its tests prove it", PAGE, line)
            continue
        used.add(that[0])
        for problem in _of_row(book, row[2], listed[that[0]]):
            yield BookError(f"{that[0]!r}: {problem}", PAGE, line)
    for that in sorted(listed.keys() - used):
        yield BookError(f"no row promises {that!r}", FILE)


def proofs(book):
    """{beginning of a promise: the code of the cases that prove it}."""
    table = tomllib.loads((book.root / FILE).read_text(encoding="utf-8"))["promise"]
    return {each["that"]: "\n".join(
        cases.code(book, path, words) for test, titles in each["proven"].items()
        for path in sorted((book.root / "tests").rglob(f"{test}.cpp"))
        for words in titles if cases.has(path, words)) for each in table}


def _of_row(book, cell, proven):
    named = set(_TEST.findall(cell))
    if named != proven.keys():
        yield (f"names {', '.join(sorted(named))}, but what proves it is "
               f"{', '.join(sorted(proven))}")
    for test, cases in proven.items():
        for words in cases:
            name, colon, rest = words.partition(": ")
            is_file = bool(colon) and (book.root / name).is_file()
            text = (_file(book, name) if is_file else _titles(book, test))
            if (rest if is_file else words) not in text:
                yield f"{test} has no case {words!r}"


def _file(book, name):
    path = book.root / name
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _titles(book, test):
    """The titles of a suite's cases, one in a line."""
    return "\n".join(
        "".join(re.findall(r'"([^"]*)"', case))
        for path in (book.root / "tests").rglob(f"{test}.cpp")
        for case in _CASE.findall(path.read_text(encoding="utf-8")))
