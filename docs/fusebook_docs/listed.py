"""A list that stands for all there is names all of it, and nothing else.

    [[list]]
    page = "docs/commands.md"
    says = "channels to log, comma-separated: #"
    code = "common/reports/log.cpp: names = {...};"
    besides = ["all"]

in `docs/claims.toml` has # in the place of the list, and ... in that of what the code
lists: texts, or words. `are` in the place of `code` names what there is (`_GROUPS`).
`besides` is also on the page, `but` only in the code, and `called` says what the page
calls a member. Pages are those of Markdown, and the help of `fusebook`.
"""

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache

from .claims import FILE, HELP, help_of
from .code_index import index
from .errors import BookError, errors_in

_MEMBER = r"(?:`[^`]+`|an? [\w-]+|[\w-]+)(?: \(default\))?"
_BETWEEN = r"(?:,\s*|,?\s+(?:and|or)\s+)"
_LIST = rf"({_MEMBER}(?:{_BETWEEN}{_MEMBER})*)"
_LABELS = (re.compile(r'LABELS "?([\w;]+)"?'),
           re.compile(r"fusebook_test\(\s*\S+\s+([a-z]+)\s+\d"))


@dataclass(frozen=True)
class Listed:
    page: str
    says: str
    code: str = ""
    are: str = ""
    besides: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    called: dict = field(default_factory=dict)


def in_markdown(book, show, text):
    """Lists of a page that are not whole, or name what there is not."""
    for listed in _read(book.root):
        if listed.page == show:
            yield from errors_in(show, text, _wrong(book, listed, text))


def of_help(book, text):
    """The same of what `./fusebook help` says."""
    return in_markdown(book, HELP, help_of(text))


def _wrong(book, listed, text):
    words = [r"\s+".join(map(re.escape, part.split(" ")))
             for part in listed.says.split("#")]
    places = list(re.finditer(_LIST.join(words), text))
    if len(places) != 1:
        yield 0, (f"{listed.says!r} stands there {len(places)} times; {FILE} says, under "
                  "[[list]], what it lists")
        return
    said = _members(places[0][1])
    there = _there(book, listed)
    for what, names in (("lacks", there - said), ("has", said - there)):
        if names:
            yield places[0].start(1), (
                f"the list {' '.join(places[0][1].split())!r} {what} "
                f"{', '.join(sorted(names))}: name all that "
                f"{listed.are or listed.code.partition(': ')[0]} has")


def _members(text):
    plain = re.sub(r"`| \(default\)|\ban? (?=\w)", "", text)
    return {word.lower() for word in re.split(_BETWEEN, plain)}


def _there(book, listed):
    """What the page has to name, in its own words."""
    found = _GROUPS[listed.are](book) if listed.are else _in_code(book, listed.code)
    return {listed.called.get(name, name).lower()
            for name in (found - {*listed.but}) | {*listed.besides}}


def _in_code(book, where):
    name, _, pattern = where.partition(": ")
    before, _, after = (r"\s+".join(map(re.escape, part.split(" ")))
                        for part in pattern.partition("..."))
    path = book.root / name
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    places = re.findall(rf"{before}(.*?){after}", text, re.S)
    if len(places) != 1:
        raise BookError(f"{where!r} stands there {len(places)} times", FILE)
    return set(re.findall(r'"([^"]+)"', places[0]) or re.findall(r"[\w-]+", places[0]))


def _labels(book):
    """The labels of all tests."""
    texts = [path.read_text(encoding="utf-8")
             for path in (book.root / "tests").rglob("CMakeLists.txt")]
    return {label for text in texts for pattern in _LABELS
            for labels in pattern.findall(text) for label in labels.split(";")}


def _presets(book):
    return set(index(book.root).presets)


_GROUPS = {"the labels of tests": _labels, "CMakePresets.json": _presets}


@cache
def _read(root):
    tables = tomllib.loads((root / FILE).read_text(encoding="utf-8")).get("list", ())
    return [Listed(**{key: tuple(value) if isinstance(value, list) else value
                      for key, value in table.items()}) for table in tables]
