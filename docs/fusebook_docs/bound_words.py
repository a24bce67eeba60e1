"""What is called a default, and which optimizers are excepted, is what the code says.

`docs/claims.toml` binds such words to where they stand in the code:

    [[words]]
    page = "docs/commands.md"
    says = "what a GPU does, `#` by default"
    code = ["tests/support/tested_device.h: name : \"#\""]

has # in the place of one word that both have in common (of several, each has a line of
`code`); without one, page and code have to say just that. `are` in the place of `code`
names a group of optimizers (`_group`), and # are then the names of all of it, with
`among` of some. In Markdown, pages, recipes, `///` comments, docstrings of the Python
package and the help of `fusebook`, a default, or a sentence that names an optimizer and
an exception, is refused where nothing of this list is about it. (Adam is no exception;
it is the example.)
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache

from . import docstrings
from .claims import FILE, HELP, help_of
from .errors import BookError, errors_in

_DEFAULT = re.compile(r"(?<![\w-])(?<!for the )(?<!to the )[Dd]efault"
                      r"(?![\w-]|\s+(?:device|argument)s?\b|, later what was given)")
_EXCEPTION = re.compile(r"\b(?:but|except|none of|"
                        r"(?:do|does|did) not have|(?:has|have) no)\b")
_SENTENCE = re.compile(r"(?:[^.;\n]|\.(?!\s)|\n(?!\s*\n)|;(?!\s))+")
_OPTIONS = re.compile(r"^struct (\w+)Options\b", re.M)
_OF_TORCH = re.compile(r"^/// Options of torch\.optim\.(\w+), with", re.M)
_NAMES = r"([A-Z][\w']*(?:(?:,|,? and)\s+[A-Z][\w']*)*)"
_ALIAS = re.compile(r"^using (\w+) = Optimizer<kinds::\1>;", re.M)
_HEADERS = ("common", "kernels")


@dataclass(frozen=True)
class Bound:
    page: str
    says: str
    code: tuple[str, ...] = ()
    are: str = ""
    among: str = ""


def in_prose(book, text):
    """What is not bound, or not true, in one of prose.py's texts."""
    return text.errors(_wrong(book, str(text.path), text.whole))


def in_markdown(book, show, text):
    return errors_in(show, text, _wrong(book, show, text))


def of_headers(book):
    """The same of the `///` comments of the library."""
    for folder in _HEADERS:
        for path in sorted((book.root / folder).rglob("*.h")):
            yield from of_header(book, path, path.read_text(encoding="utf-8"))


def of_header(book, path, source):
    yield from in_markdown(book, path.relative_to(book.root).as_posix(),
                           docstrings.comments(source))


def of_help(book, text):
    """What `./fusebook help` says."""
    yield from in_markdown(book, HELP, help_of(text))


def misplaced(book, texts):
    """Lines of the list that nothing is looked up for, or that no page has."""
    paths = {str(text.path): [] for text in texts}
    for text in texts:
        paths[str(text.path)].append(text.whole)
    for bound in _all(book):
        path = book.root / bound.page
        if not path.is_file():
            yield BookError(f"{bound.page!r} is no file", FILE)
            continue
        whole = "\n\n".join(paths.get(bound.page) or [_plain(bound.page, path)])
        if len(list(_places(bound, whole))) != 1:
            yield BookError(f"{bound.says!r} does not stand there once; {FILE} binds "
                            "what it says", bound.page, 1)


def _plain(page, path):
    text = path.read_text(encoding="utf-8")
    return docstrings.comments(text) if page.endswith(".h") else text


def _wrong(book, page, whole):
    spans = []
    for bound in _all(book):
        if bound.page != page:
            continue
        for place in _places(bound, whole):
            spans.append(place.span())
            problem = _difference(book, bound, place)
            if problem:
                yield place.start(), problem
    for start, what in _claimed(book, whole):
        if not any(a <= start < b for a, b in spans):
            yield start, (f"{what} is not bound: name in {FILE}, under [[words]], "
                          "where the code says it")


def _claimed(book, whole):
    for match in _DEFAULT.finditer(whole):
        yield match.start(), "what is called the default"
    excepted = "|".join(sorted(_optimizers(book.root) - {"Adam"}))
    names = re.compile(rf"(?<![\w.:`])(?:{excepted})(?![\w:`])")
    for sentence in _SENTENCE.finditer(whole):
        exception = _EXCEPTION.search(sentence[0])
        name = names.search(sentence[0])
        if exception and name:
            yield sentence.start() + name.start(), f"what is said of {name[0]}"


def _places(bound, whole):
    words = [r"\s+".join(map(re.escape, part.split(" ")))
             for part in bound.says.split("#")]
    hole = _NAMES if bound.are or bound.among else r"([^\s`]+?)"
    return re.finditer(rf"(?<![\w`]){hole.join(words)}(?![\w`])", whole, re.S)


def _difference(book, bound, place):
    """Why the words at a place are not those of the code."""
    if bound.are or bound.among:
        said = {name for said in place.groups()
                for name in re.findall(r"[A-Za-z]\w+", said)
                if name in _optimizers(book.root)}
        wanted = _group(book.root, bound.are or bound.among)
        if said != wanted if bound.are else not said or said - wanted:
            return (f"names {', '.join(sorted(said)) or 'none'}, but the optimizers "
                    f"{bound.are or bound.among} are {', '.join(sorted(wanted))}")
        return None
    holes = place.groups()
    if len(holes) > 1 and len(holes) != len(bound.code):
        return f"{bound.says!r} has {len(holes)} #, and code for {len(bound.code)}"
    said = holes if len(holes) > 1 else (holes or ("",)) * len(bound.code)
    for where, word in zip(bound.code, said, strict=True):
        name, _, pattern = where.partition(": ")
        text = (book.root / name).read_text(encoding="utf-8")
        wanted = pattern.replace("#", word, 1)
        words = r"\s+".join(map(re.escape, wanted.split(" ")))
        if not re.search(rf"{words}(?!\w)", text):
            return f"says {place[0]!r}, but there is no {wanted!r} in {name}"
    return None


def _all(book):
    return _read(book.root)


@cache
def _read(root):
    tables = tomllib.loads((root / FILE).read_text(encoding="utf-8"))
    return [Bound(**{**table, "code": tuple(table.get("code", ()))})
            for table in tables["words"]]


def group(book, name):
    """The optimizers that a group of `are` has."""
    return _group(book.root, name)


@cache
def _optimizers(root):
    """The names of all, and of the one that the tests have."""
    return _group(root, "that there are") | _group(root, "that tests have")


@cache
def _group(root, name):
    """The optimizers of which one thing is true."""
    ours = root / "common"
    fused = _matches(_OPTIONS, (ours / "optim").glob("*.h"))
    fused -= _matches(_OPTIONS, [ours / "optim/unsupported.h"])
    products = _matches(_OPTIONS, (ours / "optim_products").glob("*.h"))
    groups = {
        "that there are": fused | products,
        "with products of matrices": products,
        "with more than one launch": products | {
            each for each in fused if "MatrixMeans" in (
                ours / f"optim/{each.lower()}.h").read_text(encoding="utf-8")},
        "that tests have": {"Lion"} & _matches(
            _OPTIONS, [root / "tests/support/lion.h"]),
        "that torch does not have": (fused | products) - _matches(
            _OF_TORCH, ours.rglob("*.h")),
        "that LibTorch does not have": _matches(_ALIAS, (
            ours / "libtorch").glob("own_*.h")),
        "that take norms": {each for each in fused if "foreach_norm" in (
            ours / f"optim/{each.lower()}.h").read_text(encoding="utf-8")},
    }
    if name not in groups:
        raise BookError(f"there is no group of optimizers {name!r}", FILE)
    return frozenset(groups[name])


def _matches(pattern, paths):
    return {name for path in paths
            for name in pattern.findall(path.read_text(encoding="utf-8"))}
