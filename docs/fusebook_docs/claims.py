"""Numbers of the Markdown pages, and of the help of `fusebook`, are those of the code.

`docs/claims.toml` says for each number of `PAGES` and `HELP` where it stands in the code.
A number that no claim is about is refused, and one that differs from the code.

    [[claim]]
    page = "docs/promises.md"
    says = "# processes x # rounds"
    code = ["tests/storm_test.cpp: processes = #;",
            "tests/storm_test.cpp: const int rounds = #;"]

has # in the place of each number that the page says, and for each, in order, a
file and its words around the number. ` + ` adds several, ` / 60`, ` * 2` or
` - 1` at the end of one reckons with it, and `name = {...}` is a list that is
counted. `here = true` in the place of `code` is for a number that counts what
stands on the page itself.
"""

import operator
import re
import tomllib
from dataclasses import dataclass

from . import numbers
from .errors import BookError

PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/commands.md",
         "docs/promises.md")
HELP = "fusebook"
_PYTHON = "python/fusebook/"  # python_docs.py
FILE = "docs/claims.toml"
_HIDDEN = re.compile(r"<!-- made.*?<!-- end -->|^```.*?^```|<!--.*?-->|`[^`]*`",
                     re.S | re.M)
_VERSIONED = re.compile(rf"\b(?:{'|'.join(map(re.escape, numbers.VERSIONED))})"
                        r"(?=\s?\d)")
_SUM = re.compile(r"(.*) ([*/-]) (\d+)", re.S)
_OPERATORS = {"*": operator.mul, "/": operator.truediv, "-": operator.sub}
_LITERAL = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'')
_NESTED = re.compile(r"\([^()]*\)")
_BESIDE = re.compile(r"(?://|#).*")


@dataclass(frozen=True)
class Claim:
    page: str
    says: str
    code: list[str] = ()
    here: bool = False


def problems(book):
    """Every number of the pages that is not bound, or not true."""
    claims = list(read(book))
    for page in PAGES:
        text = (book.root / page).read_text(encoding="utf-8")
        yield from of_page(book, page, text,
                           [claim for claim in claims if claim.page == page])
    for claim in claims:
        if claim.page not in (*PAGES, HELP) and not claim.page.startswith(_PYTHON):
            yield BookError(f"{claim.page!r} is not a page with claims", FILE)


def of_help(book, text):
    """What is wrong with the numbers of what `./fusebook help` says."""
    yield from of_page(book, HELP, help_of(text),
                       [claim for claim in read(book) if claim.page == HELP])


def help_of(text):
    """Of `fusebook` what `help` shows; lines stay."""
    before, _, rest = text.partition("<<'END'\n")
    return "\n" * (before.count("\n") + 1) + rest.partition("\nEND")[0]


def read(book):
    """All claims, in order."""
    path = book.root / FILE
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))["claim"]
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise BookError(f"not a list of claims: {error}", FILE) from None
    for table in tables:
        claim = Claim(**table)
        if claim.here == bool(claim.code):
            raise BookError(f"{claim.says!r} needs `code` or `here`", FILE)
        yield claim


def without_code(text):
    """A page without code and what was made; places stay."""
    return _HIDDEN.sub(_blank, text)


def of_page(book, page, text, claims):
    """What is wrong with the numbers of one page."""
    plain = _VERSIONED.sub(_blank, without_code(text))
    bound = []
    for claim in claims:
        words = [r"\s+".join(map(re.escape, part.split(" ")))
                 for part in claim.says.split("#")]
        places = list(re.finditer(r"([\w.,^]*\w)".join(words), text))
        if len(places) != 1:
            yield BookError(f"{claim.says!r} stands there {len(places)} times; "
                            f"{FILE} binds its numbers", page)
            continue
        bound.append(places[0].span())
        yield from _untrue(book, page, text, claim, places[0])
    for number in numbers.bare(plain):
        if number.text.lower() != "one" and not any(
                a <= number.start < b for a, b in bound):
            yield BookError(
                f"{number.text!r} is not bound: say in {FILE} where it stands "
                "in the code, or say it without a number", page,
                _line(text, number.start))


def _untrue(book, page, text, claim, place):
    if claim.here:
        return
    count = len(place.groups())
    if count != len(claim.code):
        yield BookError(f"{claim.says!r} has {count} numbers, and code for "
                        f"{len(claim.code)}", FILE)
        return
    for index, where in enumerate(claim.code, 1):
        said = place[index]
        value = (found(book, where) if said.count(".") > 1
                 else sum(_number(book, each) for each in where.split(" + ")))
        if said != value and not _says(said, value):
            yield BookError(f"says {said!r}, but {where!r} is {value}", page,
                            _line(text, place.start(index)))


def _says(said, value):
    """2^31 is given by its exponent."""
    return not isinstance(value, str) and numbers.says(
        said.rpartition("^")[2], value)


def _number(book, where):
    match = _SUM.fullmatch(where)
    number = found(book, match[1] if match else where)
    if isinstance(number, str):
        number = float(re.sub("[',]", "", number))
    return round(_OPERATORS[match[2]](number, int(match[3])), 9) if match else number


def found(book, where):
    """The number as it stands there, or how many elements the list has."""
    name, _, pattern = where.partition(": ")
    path = book.root / name
    if not path.is_file():
        raise BookError(f"there is no file {name!r}", FILE)
    hole = "..." if "..." in pattern else "#"
    words = [r"\s+".join(map(re.escape, part.split(" ")))
             for part in pattern.split(hole)]
    if len(words) != 2:
        raise BookError(f"{where!r} needs one # or ...", FILE)
    inside = r"(.*?)" if hole == "..." else r"(\d(?:[\d',.]*\d)?)"
    texts = {match[1] for match in re.finditer(
        words[0] + inside + words[1], path.read_text(encoding="utf-8"), re.S)}
    if len(texts) != 1:
        raise BookError(f"{where!r} stands there {len(texts)} times", FILE)
    return _count(texts.pop()) if hole == "..." else texts.pop()


def _count(text):
    """How many elements stand between the braces of a list."""
    text = _LITERAL.sub("s", text)
    text = _NESTED.sub("", _BESIDE.sub("", text))
    return len([each for each in text.split(",") if each.strip()])


def _line(text, offset):
    return text.count("\n", 0, offset) + 1


def _blank(match):
    return re.sub(r"[^\n]", " ", match[0])
