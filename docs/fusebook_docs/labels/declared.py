"""A header is named beside what it declares, and an error beside what it is for.

Where a page names a header of the library, what its sentence or row names in code or by
`:api:` is declared there, some of it at least; where it names nothing, the paragraph has a
word of the header's name or first comment. An error class derived from `Error` stands
where words of its `///` comment do, and `Error` itself where none of theirs do. What a
row says that a room holds has a word of the names of its files.
"""

import re
from functools import cache

from ..errors import errors_in
from . import fitting

_HEADER = re.compile(r"`{1,2}((?:fusebook|kernels|common|tests/support)/[\w/]+\.h)`{1,2}")
_NAMES = re.compile(r":api:`(?:[^`<]*<)?~?([\w:]+)>?`|`{1,2}((?:\w+::)*\w+)(?:\(\w*\))?`")
_END = re.compile(r"\n\s*\n|\n\s*(?=\|)|(?<=[.:?!;])[)`]*\s")
_DECLARED = re.compile(r"\b(?:class|struct|enum class|using|namespace|concept)\s+"
                       r"(?:\[\[\w+\]\]\s*)?(\w+)|\b(\w+)\s*\(|\b(\w+)(?=\s*[;=])")
_ERROR = re.compile(r"(?<!std::)\b(?:fuse::|fusebook\.)?((?:[A-Z]\w+)?Error)\b")
_CLASS = re.compile(r"((?:^ *///.*\n)+)^class (\w+Error) : public (?:\w+::)*(\w+)", re.M)
_ROOM = re.compile(r"^\| `((?:kernels|common)/[a-z]\w*/)` \| (.*?) \| .* \|$", re.M)
_FILES = (".h", ".cpp", ".def")
_FOLDERS = ("kernels", "common", "tests/support")
_CODE = re.compile(r"^ *(?:\.\. api:: .*|```(?:.|\n)*?^```)", re.M)


def in_prose(book, text):
    if text.home.recipe is None:
        yield from text.errors(_wrong(book, text.whole))


def in_markdown(book, show, text):
    return errors_in(show, text, _wrong(book, text))


def _wrong(book, whole):
    plain = _CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), whole)
    for each in _HEADER.finditer(plain):
        file = _file(book.root, each[1])
        if file is None:
            continue  # code_names.py says so
        sentence = _sentence(plain, each)
        names = [(name[0] or name[1]).split("::")[0] for name in _NAMES.findall(sentence)]
        known = [name for name in names if any(name in found for found in
                                               _declared(book.root).values())]
        here = _declared(book.root)[file]
        if known and not set(known) & here:
            yield each.start(), f"{each[1]} declares none of {', '.join(known)}"
        elif not known and not _tells(_paragraph(plain, each), file):
            yield each.start(), f"nothing beside {each[1]} tells of what is in it"
    yield from _errors(book, plain)
    for each in _ROOM.finditer(plain):
        folder = book.root / each[1]
        names = fitting.words(" ".join([folder.name, *(
            path.stem for path in folder.iterdir() if path.suffix in _FILES)]))
        if not any(word.startswith(name) for word in fitting.words(each[2])
                   for name in names):
            yield each.start(), f"no file of {each[1]} is called by any of these words"


def _errors(book, plain):
    derived = _classes(book.root)
    for each in _ERROR.finditer(plain):
        if each[1] not in derived and each[1] != "Error":
            continue
        said = fitting.words(_ERROR.sub(" ", _sentence(plain, each)))
        named = set(_ERROR.findall(_sentence(plain, each)))
        if each[1] != "Error":
            own = fitting.words(each[1].removesuffix("Error"))
            if not said & own and len(said & derived[each[1]]) < 2:
                yield each.start(), f"nothing beside {each[1]} says what it is for"
        else:
            for name, words in derived.items():
                if len(said & words) > 1 and name not in named:
                    yield each.start(), (f"Error where {name} is thrown: "
                                         f"{', '.join(sorted(said & words))}")


def _sentence(whole, match):
    ends = [m.end() for m in _END.finditer(whole)]
    begin = max((at for at in ends if at <= match.start()), default=0)
    end = min((at for at in ends if at >= match.end()), default=len(whole))
    return whole[begin:end]


def _tells(words, file):
    """A row by a third of the words of its first cell, a paragraph by some word."""
    if words.startswith("| "):
        said = fitting.words(words.split("|")[1])
        return 3 * len(said & _told(file)) >= len(said)
    return bool(fitting.words(_HEADER.sub(" ", words)) & _told(file))


def _paragraph(whole, match):
    begin = whole.rfind("\n", 0, match.start()) + 1
    if whole[begin] == "|":
        return whole[begin:whole.find("\n", begin)]
    begin = whole.rfind("\n\n", 0, match.start())
    end = whole.find("\n\n", match.end())
    return whole[max(begin, 0):end if end >= 0 else len(whole)]


def _file(root, name):
    if name.startswith("fusebook/"):
        for folder in ("kernels", "common"):
            path = root / folder / name.removeprefix("fusebook/")
            if path.is_file():
                return path
        return None
    return root / name if (root / name).is_file() else None


@cache
def _declared(root):
    """{header: names that it declares}."""
    found = {}
    for folder in _FOLDERS:
        for path in (root / folder).rglob("*.h"):
            text = re.sub(r"//.*|\"[^\"\n]*\"", "", path.read_text(encoding="utf-8"))
            found[path] = {name for each in _DECLARED.findall(text) for name in each
                           if name}
    return found


@cache
def _told(file):
    """Words of a header's name and of its comments."""
    text = file.read_text(encoding="utf-8")
    classes = re.findall(r"^(?:class|struct) (\w+.*)", text, re.M)
    return fitting.words(" ".join([file.stem, *classes,
                                   *re.findall(r"//+ ?(.*)", text)]))


@cache
def _classes(root):
    """{error: words of its comment that Error's own has not}."""
    found = {}
    for folder in ("kernels", "common"):
        for path in (root / folder).rglob("*.h"):
            for comment, name, base in _CLASS.findall(path.read_text(encoding="utf-8")):
                found[name] = fitting.words(f"{comment} {name.removesuffix('Error')}")
    common = found.pop("Error", set()) | fitting.words("recipes exit end code")
    return {name: words - common for name, words in found.items()}
