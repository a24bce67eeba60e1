"""An example stands where its names are spoken of.

On a page of the reference, examples are those of the file of the same name in
docs/examples/, or use a member of what their section describes. On any page each fits the words of its section, or of the tab beside it,
better than another example of that page. A formula stands under its optimizer's name.
"""

import re
from functools import cache

from .. import examples, members
from . import fitting

_SHOWN = re.compile(r"^ *\.\. api-example:: (\w+)$", re.M)
_SECTION = re.compile(r"^(?=.+\n(?:=+|-+)$)|^(?=\.\. tab-set::)", re.M)
_API = re.compile(r"^ *\.\. api:: (\w+)", re.M)
_TOPICS = {"docs/background/from_pytorch.rst": "from_torch",
           "docs/background/how_it_works.rst": "reports", "docs/ops.rst": "lists"}
_EQUATIONS = re.compile(r"^\.\. equations:: (\w+)$", re.M)
_HEADING = re.compile(r"^(\w+)\n-+$", re.M)
_REFERENCE = re.compile(r"docs/reference/(\w+)\.rst")


def in_prose(book, text):
    return text.errors(_wrong(book, str(text.path), text.whole))


def _wrong(book, page, whole):
    known, shown = _read(book), list(_SHOWN.finditer(whole))
    pairs = []
    for each in shown:
        if each[1] not in known:
            return  # the build says so
        pairs.append((frozenset(fitting.words(_section(whole, each.start()))), fitting.words(
            f"{each[1]} {known[each[1]].code}")))
    topic = _topic(page)
    for each in shown:
        if topic and str(known[each[1]].path) != f"docs/examples/{topic}.cpp" and not (
                _members(book, _section(whole, each.start()))
                & set(re.findall(r"\.(\w+) =", known[each[1]].code))):
            yield _at(each), (f"{each[1]!r} is an example of {known[each[1]].path}, "
                              f"not of {topic}.cpp")
    for each in _EQUATIONS.finditer(whole):
        heading = _HEADING.findall(whole, 0, each.start())[-1:]
        if heading and each[1].partition("_")[0] != heading[0].lower():
            yield _at(each), f"the formula of {each[1]} stands under {heading[0]!r}"
    for i, j in fitting.swapped(pairs):
        yield _at(shown[i]), (f"{shown[i][1]!r} fits the words around {shown[j][1]!r} "
                              "better, and that one those here")


def _at(match):
    return match.start() + match[0].index("..")


def _topic(path):
    match = _REFERENCE.fullmatch(path)
    return match[1] if match else _TOPICS.get(path)


def _section(whole, start):
    starts = [m.start() for m in _SECTION.finditer(whole)]
    begin = max((at for at in starts if at <= start), default=0)
    end = min((at for at in starts if at > start), default=len(whole))
    return _SHOWN.sub("", whole[begin:end])


def _members(book, section):
    classes = members.classes(book.root)
    return {name for each in _API.findall(section) if each in classes
            for name in classes[each].names}


@cache
def _read(book):
    return examples.read(book)
