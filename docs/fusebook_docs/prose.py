"""Every number in the book's prose is bound to where it comes from.

Prose is what recipes say in their comments, every `.rst` page but those of
`UNCHECKED`, the texts of answers, headings and alt texts. A number in it (see
numbers.py: digits, number words from two up, smaller ones before a unit,
factors) is either quoted by a role of quotes.py or refused. Code in the prose
speaks for itself, but a number alone in ``literals`` is a number, and output
does not stand in a code block: it is quoted from a sample.
"""

import re
from dataclasses import dataclass
from functools import cached_property

from . import literate, numbers, quotes
from .errors import BookError

# Credits name other works and their licences.
UNCHECKED = ("credits.rst",)
SENTENCES = 3  # of an answer, at most
LANGUAGES = ("c", "cmake", "cpp", "cuda", "diff", "json", "python", "sh")
_VERBATIM = re.compile(r"(\s*)\.\. (code-block|literalinclude|parsed-literal|"
                       r"math|raw|highlight|toctree)::\s*(.*)")
_EXERCISE = re.compile(r"(\s*)\.\. exercise::\s*(\w+)")
_OPTION = re.compile(r"(\s*):([\w-]+):(\s.*|)$")
_DIRECTIVE = re.compile(r"\s*\.\. [\w-]+::")
_COMMENT = re.compile(r"(\s*)\.\.(?: (?![\w-]+::|_|\[|\|)|$)")
_LITERAL = re.compile(r"``(.+?)``", re.DOTALL)
_LINK = re.compile(r"`([^`<]*)<[^`>]*>`__?")
_OTHER_ROLE = re.compile(r":[\w:-]+:`([^`<]*)(?:<[^`>]*>)?`")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_UNIT = re.compile(rf"\s+({numbers.UNITS})\b")
_QUANTITY = re.compile(rf"\s*[-+]?\d[\d.,/^e+-]*\s?(?:{numbers.UNITS}|x|%|)\s*")


@dataclass(frozen=True)
class Text:
    """Prose, line by line, and where it stands."""

    path: object  # as people read it
    lines: tuple[literate.Line, ...]
    home: quotes.Home

    @cached_property
    def whole(self):
        """As one string, in which every line ends."""
        return "".join(f"{line.text}\n" for line in self.lines)

    def line(self, offset):
        """The number of the line that a place of `whole` is in."""
        return self.lines[self.whole.count("\n", 0, offset)].number

    def errors(self, found):
        """The errors of (offset in `whole`, message)."""
        for offset, message in found:
            yield BookError(message, self.path, self.line(offset))


def of_recipe(book, name, recipe):
    """The prose of a recipe, step by step, and its headings."""
    for part in recipe.parts:
        home = quotes.Home(name, part.title)
        heading = [literate.Line(part.line, part.title)] if part.title else []
        yield Text(book.show(recipe.path), (*heading, *part.prose), home)
    for exercise in book.exercise_names(name):
        home = quotes.Home(name, None, exercise, True)
        yield _text(book.show(book.answer_path(name, exercise)),
                    answer(book, name, exercise), home)


def answer(book, recipe, exercise):
    """The lines of an answer: one to three sentences."""
    path = book.answer_path(recipe, exercise)
    show = book.show(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BookError("missing answer: say in one to three sentences what "
                        "the output shows", show) from None
    plain = quotes.ROLE.sub("x", _LITERAL.sub("x", text))
    count = len(re.findall(r"[.?!](?=\s|$)", plain))
    if not 1 <= count <= SENTENCES:
        raise BookError(f"an answer needs one to three sentences, not {count}",
                        show, 1)
    return text.rstrip("\n").split("\n")


def of_pages(book, without=UNCHECKED):
    """Every page that is no recipe."""
    folder = book.root / "docs"
    hidden = {"exercises", "recipes", "samples"}
    for path in sorted(folder.rglob("*.rst")):
        inside = path.relative_to(folder)
        if inside.name not in without and inside.parts[0] not in hidden:
            lines = path.read_text(encoding="utf-8").split("\n")
            yield _text(book.show(path), lines, quotes.Home())


def _text(show, lines, home):
    return Text(show, tuple(literate.Line(number, line)
                            for number, line in enumerate(lines, 1)), home)


def problems(book, text):
    """Everything in a text that is not true, or not bound."""
    shown, exercises = [], {}
    try:
        for line in _shown(text, exercises):
            shown.append(line)
    except BookError as error:
        yield error
        return
    whole = "\n".join(line.text for line in shown)
    yield from _untrue(book, text, shown, exercises, whole)
    yield from _unbound(text, shown, whole)


def _line_at(shown, whole, offset):
    return shown[whole.count("\n", 0, offset)]


def _untrue(book, text, shown, exercises, whole):
    for match in quotes.ROLE.finditer(_LITERAL.sub(_blanks, whole)):
        line = _line_at(shown, whole, match.start())
        home = text.home
        if line.number in exercises:
            home = quotes.Home(home.recipe, None, exercises[line.number])
        try:
            quotes.quoted(book, match[1], match[2], home)
            unit = _UNIT.match(whole, match.end())
            wrong = unit and quotes.wrong_unit(book, match[1], match[2], home, unit[1])
            if wrong:
                raise BookError(wrong)
        except BookError as error:
            yield BookError(f":{match[1]}: {error}", text.path, line.number)


def _unbound(text, shown, whole):
    for found in numbers.bare(_plain(whole)):
        line = _line_at(shown, whole, found.start)
        words = " ".join(found.text.split())
        yield BookError(
            f"{words!r} is not quoted: quote what a program printed "
            f"(:value:`{words} <the line, with # for the number>`) or "
            f"what is in the code (:constant:`{words} <the code, with #>`), or "
            "say it without a number", text.path, line.number)


def _plain(whole):
    """The words alone; everything else is blank, so that places stay."""
    whole = _LITERAL.sub(
        lambda m: m[0] if _QUANTITY.fullmatch(m[1]) else _blanks(m), whole)
    whole = quotes.ROLE.sub(_blanks, whole)
    whole = _LINK.sub(
        lambda m: _YEAR.sub(_blanks, m[1].rjust(len(m[1]) + 1))
        + " " * (len(m[0]) - len(m[1]) - 1)
        if "\n" not in m[0][len(m[1]):] else _link_over_lines(m), whole)
    return _OTHER_ROLE.sub(_role_words, whole)


def _link_over_lines(match):
    words = " " + _YEAR.sub(_blanks, match[1])
    return words + re.sub(r"[^\n]", " ", match[0][len(words):])


def _role_words(match):
    if match[0].startswith(":code:") and not _QUANTITY.fullmatch(
            match[1]):
        return _blanks(match)
    start = match[0].index("`") + 1
    rest = match[0][start + len(match[1]):]
    return " " * start + match[1] + re.sub(r"[^\n]", " ", rest)


def _blanks(match):
    return re.sub(r"[^\n]", " ", match[0])


def _shown(text, exercises):
    """Lines of prose; those of code and of options are left empty."""
    hidden, literal, option = None, False, None
    inside = None  # (indentation, exercise)
    for line in text.lines:
        content = line.text
        indent = len(content) - len(content.lstrip())
        empty = not content.strip()
        if hidden is not None and not empty and indent <= hidden:
            hidden = None
        if inside and not empty and indent <= inside[0]:
            inside = None
        if hidden is not None or empty:
            yield literate.Line(line.number, "")
            continue
        if match := _EXERCISE.match(content):
            inside = (len(match[1]), match[2])
        if inside:
            exercises[line.number] = inside[1]
        if match := _VERBATIM.match(content) or _COMMENT.match(content):
            _check_language(match, text, line)
            hidden = len(match[1])
            content = ""
        elif content.rstrip().endswith("::") and not _DIRECTIVE.match(content):
            raise BookError(
                "a literal block without a language: quote output by "
                ".. recipe-excerpt:: with :output:, code by .. code-block::",
                text.path, line.number)
        option, content = _option(option, indent, content)
        yield literate.Line(line.number, content)


def _check_language(match, text, line):
    directive = match[2] if match.re is _VERBATIM else ""
    bad = directive in ("parsed-literal", "raw") or (
        directive == "code-block" and match[3] not in LANGUAGES)
    if directive == "math":
        raise BookError(f"{match[0].strip()!r}: a formula is computed: write it to "
                        "docs/equations and show it by .. equations::",
                        text.path, line.number)
    if bad:
        raise BookError(
            f"{match[0].strip()!r}: a page shows output only from its samples: "
            ".. recipe-excerpt:: with :output:. Code must have one of the "
            f"languages {', '.join(LANGUAGES)}", text.path, line.number)


def _option(option, indent, content):
    """The words of an :alt:, nothing of other options and of directives."""
    if match := _OPTION.match(content):
        return (indent, match[2]), match[3] if match[2] == "alt" else ""
    if option is not None and indent > option[0]:
        return option, content if option[1] == "alt" else ""
    if _DIRECTIVE.match(content):
        words = content.partition("::")[2]
        return None, words if ".. rubric" in content else ""
    return None, content
