"""The names that headers declare, and which of them are public.

A name is public when a page in docs/reference/ shows it. Every other name that
`fusebook.h` brings along must be listed in docs/reference/engine_room.txt: what
is declared for users is either explained to them, or said to be none of theirs.
Members of a public class are public, but for those listed there.
"""

import re
import xml.etree.ElementTree as xml
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from ..errors import BookError

NAMESPACE = "fuse::"
_COMPOUNDS = ("class", "struct", "concept")
_SHOWN = re.compile(r"^\s*\.\. api:: *(\S+)[ \t]*$(\n +:protected:)?",
                    re.MULTILINE)
_INCLUDE = re.compile(r'^\s*#include "fusebook/([^"]+)"', re.MULTILINE)


@dataclass
class Name:
    """One declaration: a class, a function, a member, ..."""

    id: str
    kind: str  # as Doxygen says it
    name: str  # without the namespace: "Adam", "Tensor::sum"
    file: str
    line: int
    documented: bool
    protected: bool = False
    special: bool = False  # deleted, defaulted, or a destructor
    element: object = field(default=None, repr=False)

    @property
    def place(self):
        return f"{self.file}:{self.line}"

    @property
    def is_member(self):
        return "::" in self.name

    @property
    def last(self):
        return self.name.rsplit("::", 1)[-1]


class EngineRoom:
    """What is declared and not for users: `HEADER` or `NAME`, with `*`s."""

    def __init__(self, path, show):
        self.show = show
        self.patterns = {}  # to their lines
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        for number, line in enumerate(text.split("\n"), 1):
            pattern = line.partition("#")[0].strip()
            if pattern:
                self.patterns[pattern] = number
        self.used = set()

    def holds(self, name):
        found = [p for p in self.patterns
                 if fnmatchcase(name.file if ".h" in p else name.name, p)]
        if len(found) == 1:  # else another line would do
            self.used.update(found)
        return bool(found)

    def unused(self):
        return [(p, line) for p, line in self.patterns.items()
                if p not in self.used]


def pages(book):
    """The pages of the reference."""
    return sorted((book.root / "docs" / "reference").glob("*.rst"))


@dataclass(frozen=True)
class Shown:
    """Where a page shows a name."""

    page: object
    line: int
    protected: bool  # with what derived classes may use


def shown(book):
    """Names on pages. Throws for one that stands there twice."""
    found = {}
    for path in pages(book):
        text = path.read_text(encoding="utf-8")
        for match in _SHOWN.finditer(text):
            line = text.count("\n", 0, match.start(1)) + 1
            if match[1] in found:
                raise BookError(f"{match[1]} is explained twice, also in "
                                f"{found[match[1]].page}", book.show(path), line)
            found[match[1]] = Shown(book.show(path), line, bool(match[2]))
    return found


def headers(book):
    """What `fusebook.h` brings along, as paths from the root."""
    folders = [book.root / "common", book.root / "kernels"]
    found, waiting = set(), ["fusebook.h"]
    while waiting:
        name = waiting.pop()
        path = next((f / name for f in folders if (f / name).is_file()), None)
        if path is None or path in found:
            continue
        found.add(path)
        waiting += _INCLUDE.findall(path.read_text(encoding="utf-8"))
    return {str(book.show(path)) for path in found}


def read(folder):
    """All names that are in the namespace, members after their class."""
    found = []
    for path in sorted(folder.glob("*.xml")):
        if not path.name.startswith((*_COMPOUNDS, "namespacefuse.")):
            continue
        for compound in xml.parse(path).getroot().findall("compounddef"):
            found += _names(compound)
    return found


def _names(compound):
    kind = compound.get("kind")
    full = compound.findtext("compoundname")
    if kind == "namespace":
        yield from _members(compound, "")
        return
    hidden = compound.get("prot") == "private" or "map_detail" in full
    if hidden or not full.startswith(NAMESPACE):
        return
    name = full.removeprefix(NAMESPACE)
    if "<" in name:  # a specialization
        return
    yield _name(compound, kind, name)
    yield from _members(compound, f"{name}::")


def _members(compound, prefix):
    for member in compound.iter("memberdef"):
        if member.get("prot") == "private" or member.get("kind") == "friend":
            continue
        yield _name(member, member.get("kind"),
                    prefix + member.findtext("name"))


def _name(element, kind, name):
    place = element.find("location")
    arguments = element.findtext("argsstring") or ""
    words = arguments.rsplit(")", 1)[-1]
    owner = name.rsplit("::", 2)[-2] if "::" in name else ""
    special = ("delete" in words or "default" in words
               or name.rsplit("::", 1)[-1] == f"~{owner}")
    return Name(element.get("id"), kind, name, place.get("file"),
                int(place.get("line")), is_documented(element),
                element.get("prot") == "protected", special, element)


def is_documented(element):
    """Whether it has a comment; each value of an enumeration needs one, too."""
    parts = (element.find("briefdescription"),
             element.find("detaileddescription"))
    return any("".join(part.itertext()).strip()
               for part in parts if part is not None)
