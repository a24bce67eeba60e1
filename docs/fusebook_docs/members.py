"""What prose calls `CLASS::member` is a member of that class.

code_names.py knows that each word is there; here the word has to be declared in the
class, in one that it derives from, or in the namespace. Bodies of functions declare
nothing. `object.member` is looked up in the class of the same name (`adam.step()` in
Adam), and `fusebook.NAME` in the Python package.
"""

import re
from dataclasses import dataclass, field
from functools import cache

from . import cpp
from .errors import BookError, errors_in

_FOLDERS = ("kernels", "common", "tests/support")
_LITERAL = re.compile(r"``(.+?)``", re.S)
_MD_LITERAL = re.compile(r"(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)", re.S)
_PATH = re.compile(r"(?<![\w:./<-])([A-Za-z_]\w*)((?:(?:::|\.)~?[A-Za-z_]\w*)+)")
_SCOPED = re.compile(r"(?<![\w:])[A-Za-z_]\w*(?:::~?[A-Za-z_]\w*)+")
_HEAD = re.compile(r"\b(?:class|struct|union|enum(?:\s+class)?|namespace)\s+"
                   r"(?:\[\[\w+\]\]\s*)?(?P<path>(?:\w+::)*\w+)\s*"
                   r"(?:final\s*)?"
                   r"(?::(?!:)\s*(?P<bases>.*))?$", re.S)
_ALIAS = re.compile(r"\busing (\w+) =\s*(?:\w+::)*(\w+)")
_DECLARED = re.compile(r"(\w+)\s*(?=[(;=,{}\[:]|$)")
_INSIDE = re.compile(r"<[^<>]*>")
_FOREIGN = ("std", "torch")
# Classes whose members a list or a text for GPUs has.
_MADE = {"CudaApi": "kernels/cuda/cuda_calls.def",
         "Arguments": "kernels/codegen/emit_gpu.cpp"}
_ENDINGS = ("cpp", "h", "json", "md", "po", "py", "rst", "toml", "txt")  # of files


@dataclass
class Class:
    """A class, an enumeration or a namespace: what it declares, and its bases."""

    names: set = field(default_factory=set)
    bases: set = field(default_factory=set)


def in_prose(book, text):
    """The members that one of prose.py's texts names and there are not."""
    return text.errors(_in_literals(book, text.whole, _LITERAL, 1))


def in_markdown(book, show, text):
    return errors_in(show, text, _in_literals(book, text, _MD_LITERAL, 2))


def in_comments(book, show, text):
    """Of a header: `CLASS::member` alone, with backquotes or without."""
    return errors_in(show, text, _scoped(book, text))


def _scoped(book, text):
    for path in _SCOPED.finditer(text):
        words = re.findall(r"\w+", path[0])
        if words[0] not in _FOREIGN:
            for problem in _unknown(classes(book.root), words, path[0]):
                yield path.start(), problem


def _in_literals(book, whole, literals, group):
    for match in literals.finditer(whole):
        for path in _PATH.finditer(match[group]):
            words = [path[1], *re.findall(r"\w+", path[2])]
            if words[0] not in _FOREIGN and words[-1] not in _ENDINGS:
                for problem in _unknown(classes(book.root), words, path[0]):
                    yield match.start(group), problem


def _unknown(known, words, shown):
    if "::" not in shown and words[0] == "fusebook":
        words = ["fusebook (Python)", *words[1:]]
    elif "::" not in shown and words[0] not in known:
        words = [_class_of(known, words[0]), *words[1:]]
    for owner, member in zip(words, words[1:]):  # noqa: B905
        if owner not in known:
            return
        names = _members(known, owner, set())
        if member not in names and not (
                member.endswith("_") and any(map(re.compile(member).match, names))):
            owners = sorted(name for name in known if name and member in
                            known[name].names and name != "fuse")
            where = f": {member} is in {', '.join(owners[:4])}" if owners else ""
            yield f"{shown}: {owner} has no {member!r}{where}"
            return


def _class_of(known, variable):
    fitting = [name for name in known if name.lower() == variable]
    return fitting[0] if len(fitting) == 1 else None


def _members(known, name, seen):
    """Of a class and of those that it derives from."""
    if name not in known or name in seen:
        return set()
    seen.add(name)
    found = set(known[name].names)
    for base in known[name].bases:
        found |= _members(known, base, seen)
    return found


@cache
def classes(root):
    """Every class, enumeration and namespace of the library, by its name."""
    found = {}
    paths = [path for folder in _FOLDERS
             for path in sorted((root / folder).rglob("*.h"))]
    for name, file in _MADE.items():
        found.setdefault(name, Class()).names |= set(re.findall(
            r"\w+", (root / file).read_text(encoding="utf-8")))
    for path in [*paths, *(root / "cmake").glob("*.h.in")]:
        try:
            _read(path, found)
        except BookError:  # text that is spliced into code
            continue
    package = found.setdefault("fusebook (Python)", Class())
    for path in (root / "python/fusebook").glob("*.py"):
        package.names |= {path.stem, *re.findall(
            r"\w+", path.read_text(encoding="utf-8"))}
    return found


def _read(path, found):
    source = re.sub(r"@\w+@", "0", path.read_text(encoding="utf-8"))
    text, scopes = cpp.blanked(source, path), cpp.scopes(source, path)
    for scope in scopes:
        head = _HEAD.search(_without_templates(scope.head))
        if head is None:
            continue
        *outer, name = head["path"].split("::")
        for parent in outer:
            found.setdefault(parent, Class()).names.add(name)
        owner = found.setdefault(name, Class())
        owner.names |= set(_DECLARED.findall(_own(text, scope, scopes)))
        owner.bases |= set(re.findall(r"\w+", head["bases"] or ""))
    for name, base in _ALIAS.findall(text):
        found.setdefault(name, Class()).bases.add(base)


def _own(text, scope, scopes):
    """The text between the braces, without what stands in braces there."""
    own, at = [], scope.begin + 1
    for inner in scopes:
        if scope.begin < inner.begin < scope.end and inner.begin >= at:
            own.append(text[at:inner.begin])
            at = inner.end + 1
            own.append(";")
    return "".join([*own, text[at:scope.end]])


def _without_templates(head):
    while (less := _INSIDE.sub("", head)) != head:
        head = less
    return head
