"""The passages of the book, and what each stands on.

A passage is what is between two empty lines; rows of a table and items of a list are
passages of their own. It stands on what its readers see beside it: in a recipe on the
code and output of its step, in an answer on the patch and what that printed, on a page on
the examples in its section, in a header on what the comment is about, in a catalogue on
the original.
"""

import re
import textwrap
from dataclasses import dataclass, replace

from .. import claims, examples, literate, promised, samples
from ..errors import BookError
from ..literate import Line
from ..translation import catalogues
from . import cases

_ITEM = re.compile(r"\s*(?:\||[-*] |:[\w-]+:(?:\s|$))")
_UNDERLINE = re.compile(r"([=~-])\1{2,}")
_SHOWN = re.compile(r"\s*\.\. (api-example|literalinclude|recipe-excerpt):: (\S+)")
_STANDS = re.compile(r"\s*\.\. stands on: ([\w/.]+): (.+)")
_PART = re.compile(r"\s+:([\w-]+):\s*(.*)")
_TITLE = re.compile(r"\s+:step: (.+)")
_EXCLUDED = ("docs/exercises/", "docs/recipes/", "docs/samples/")
_COMMENT = re.compile(r"\s*///<?( .*|$)")
_MEMBER = re.compile(r"(.*\S)\s*///<(.*)")


@dataclass(frozen=True)
class Passage:
    path: str
    line: int
    text: str  # blanks and line ends aside
    ground: str = ""  # what it stands on
    beside: str = ""  # what that is, in words


def of_book(book):
    """{path: its passages}, in the order of the files."""
    found = {}
    for passage in _all(book):
        found.setdefault(passage.path, []).append(passage)
    return found


def _all(book):
    for name in book.recipe_names():
        yield from _of_recipe(book, name)
        for exercise in book.exercise_names(name):
            yield from _of_answer(book, name, exercise)
    shown = examples.read(book)
    for path in sorted((book.root / "docs").rglob("*.rst")):
        show = str(book.show(path))
        if not show.startswith(_EXCLUDED):
            yield from _of_page(book, show, _lines(path), shown)
    for name in claims.PAGES:
        if (book.root / name).is_file():
            yield from _of_markdown(book, name)
    for path in sorted((book.root / "common").rglob("*.h")):
        yield from of_header(str(book.show(path)), path.read_text(encoding="utf-8"))
    for name in catalogues.names(book):
        show = str(book.show(catalogues.path(book, name)))
        for each in catalogues.read(book, name):
            yield Passage(show, each.line, _joined(each.msgstr), _joined(each.msgid),
                          "the original")


def _lines(path):
    return [Line(number, text) for number, text
            in enumerate(path.read_text(encoding="utf-8").split("\n"), 1)]


def _joined(text):
    return " ".join(text.split())


def _plain(path, lines, ground="", beside=""):
    for first, text in blocks(lines):
        yield Passage(path, first, text, ground, beside)


def blocks(lines):
    """(first line, words) of each."""
    block = []
    for line in [*lines, Line(0, "")]:
        text = line.text
        if block and (not text.strip() or _ITEM.match(text)):
            yield block[0].number, _joined(" ".join(each.text for each in block))
            block = []
        if text.strip():
            block.append(line)


# ---- recipes and answers


def _of_recipe(book, name):
    path = book.recipe_path(name)
    show = str(book.show(path))
    sample = _sample(book, name)
    for part in literate.read(path, show).parts:
        heading = [Line(part.line, part.title), Line(part.line, "")] if part.title else []
        ground = beside = ""
        if part.is_step:
            ground, beside = _step(part, sample), "the code of its step and what it prints"
        yield from _plain(show, [*heading, *part.prose], ground, beside)


def _step(part, sample):
    code = "\n".join(line.text.strip() for line in part.shown if line.text.strip())
    return f"{code}\n{(sample and sample.text_of(part.title)) or ''}"


def _of_answer(book, name, exercise):
    path = book.answer_path(name, exercise)
    if not path.is_file():
        return
    changed = [line for line in book.patch_path(name, exercise).read_text().split("\n")
               if line[:1] in ("+", "-") and line[:3] not in ("+++", "---")]
    ground = "\n".join([*changed, *_printed(_sample(book, name, exercise))])
    yield from _plain(str(book.show(path)), _lines(path), ground,
                      "the answer's code and what it prints")


def _sample(book, name, exercise=None):
    if "cpu" not in book.devices(name, exercise):
        return None
    return samples.load(book, "cpu", name, exercise, problems=[])


def _printed(sample):
    return [step.text for step in sample.steps] if sample else []


# ---- pages


def _of_page(book, path, lines, shown):
    about = re.fullmatch(r"docs/about/(\w+)\.rst", path)
    if about:
        ground = "\n".join(_printed(_sample(book, about[1])))
        yield from _plain(path, lines, ground, "what the recipe prints")
        return
    for section in _sections(lines):
        ground = "\n".join(_grounds(book, path, section, shown))
        yield from _plain(path, section, ground, "an example or a test of its section")


def _sections(lines):
    starts = [0, *(i for i in range(1, len(lines) - 1)
                   if _UNDERLINE.fullmatch(lines[i + 1].text)
                   and lines[i].text[:1].strip())]
    for begin, end in zip(starts, [*starts[1:], len(lines)]):
        yield lines[begin:end]


def _grounds(book, path, section, shown):
    """What the directives of a section show."""
    for at, line in enumerate(section):
        if stands := _STANDS.match(line.text):
            yield _case(book, path, line, stands)
        match = _SHOWN.match(line.text)
        if match is None:
            continue
        kind, name = match.groups()
        if kind == "api-example" and name in shown:
            yield f"{shown[name].code}\n{shown[name].output}"
        elif kind == "literalinclude":
            yield _included((book.root / path).parent / name, section[at + 1:])
        elif kind == "recipe-excerpt":
            yield _excerpt(book, name, section[at:])


def _case(book, path, line, match):
    file = book.root / match[1]
    if not file.is_file():
        raise BookError(f"stands on {match[1]}, which is not there", path, line.number)
    try:
        return cases.code(book, file, match[2].strip())
    except BookError as error:
        raise BookError(f"stands on what is not there: {error}", path,
                        line.number) from None


def _of_markdown(book, name):
    proven = promised.proofs(book) if name == promised.PAGE else {}
    for passage in _plain(name, _lines(book.root / name)):
        tests = [code for that, code in proven.items()
                 if passage.text.startswith(f"| {that}")]
        yield replace(passage, ground="\n".join(tests),
                      beside="a test that proves it") if tests else passage


def _included(path, lines):
    """Of a file what the options below its directive leave."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    for line in lines:
        option = _PART.match(line.text)
        if option is None:
            break
        before, found, after = text.partition(option[2])
        if found and option[1] in ("start-at", "start-after"):
            text = found + after
        elif found and option[1] in ("end-at", "end-before"):
            text = before
    return text


def _excerpt(book, name, lines):
    title = next((m[1] for line in lines if (m := _TITLE.match(line.text))), None)
    for part in literate.read(book.recipe_path(name)).steps:
        if part.title == title:
            return _step(part, _sample(book, name))
    return ""


# ---- headers


def of_header(path, source):
    """Each `///` comment stands on the declaration that it is about."""
    lines = source.split("\n")
    at = 0
    while at < len(lines):
        if match := _MEMBER.match(lines[at]):
            yield Passage(path, at + 1, _joined(match[2]), _joined(match[1]), _DECLARED)
            at += 1
        elif _COMMENT.match(lines[at]):
            end = next(i for i in range(at, len(lines)) if not _COMMENT.match(lines[i]))
            comment = textwrap.dedent("\n".join(
                _COMMENT.match(line)[1] for line in lines[at:end])).split("\n")
            yield from _plain(path, [Line(at + 1 + i, text)
                                     for i, text in enumerate(comment)],
                              _declaration(lines[end:]), _DECLARED)
            at = end
        else:
            at += 1


_DECLARED = "the declaration that it is about"


def _declaration(lines):
    """Up to its semicolon, or to where its body begins."""
    found = []
    for line in lines[:_LONG]:
        found.append(line)
        if not line.strip() or re.search(r"[;{]\s*(?://.*)?$", line):
            break
    return _joined(" ".join(found))


_LONG = 12  # lines of a declaration, at most
