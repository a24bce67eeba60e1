"""Reads a recipe: a program in C++ or Python that is also a page.

Outside of functions `// %%` starts a block of prose; inside a function
`step("Title");` starts one, and its literal is the heading. Prose is the
`//` comment block directly after the marker and ends at the first line that
is no comment. `// by device` behind the marker says that the output may be
another one on another device. What follows, up to the next marker, is code.
In Python comments begin with `#`.
"""

import re
import textwrap
from dataclasses import dataclass, field

from . import cpp, languages
from .errors import BookError

_STEP = re.compile(r"(?<![\w.>:])(?:fuse::)?step\s*\(")
_LITERAL = re.compile(r'"((?:\\["\\]|[^"\\])*)"')
_BY_DEVICE = r"(?:\s*(?://|#) by device)?"
_MARKER = re.compile(r"(?://|#)[ \t]*%%(.*)")


@dataclass(frozen=True)
class Line:
    """One line of the recipe, by its 1-based number."""

    number: int
    text: str


@dataclass
class Part:
    """A marker, its prose and its code. `title` is None for `// %%`.

    `tail` is code after the end of the function that holds the step; what the
    step prints stands before it.
    """

    line: int
    title: str | None
    by_device: bool = False  # what the step prints differs between devices
    prose: list[Line] = field(default_factory=list)
    code: list[Line] = field(default_factory=list)
    tail: list[Line] = field(default_factory=list)

    @property
    def is_step(self):
        return self.title is not None

    @property
    def shown(self):
        return [*self.code, *self.tail]


@dataclass
class Recipe:
    """A parsed recipe. `parts[0]` is the prose block with the page's title."""

    path: object
    source: str
    parts: list[Part]
    scopes: list[cpp.Scope]
    language: object = cpp

    @property
    def steps(self):
        return [part for part in self.parts if part.is_step]

    @property
    def step_titles(self):
        return [part.title for part in self.steps]

    @property
    def by_device(self):
        """Titles of the steps whose text may differ between devices."""
        return {part.title for part in self.steps if part.by_device}

    @property
    def fingerprint(self):
        return self.language.fingerprint(self.source, self.path)


def read(path, show=None):
    """Parses the recipe at `path`; errors call it `show`."""
    show = path if show is None else show
    try:
        source = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise BookError(f"not UTF-8: {error.reason}", show) from None
    except OSError as error:
        raise BookError(f"cannot be read: {error.strerror}", show) from None
    return parse(source, show, languages.of(path))


def parse(source, path, language=cpp):
    """Parses the text of a recipe; `path` is for messages."""
    if "\r" in source:
        line = cpp.line_of(source, source.index("\r"))
        raise BookError("a carriage return; use plain newlines", path, line)
    scopes = language.scopes(source, path)
    comments = language.line_comments(source, path)
    markers = _prose_markers(comments, scopes, path, language)
    markers.update(_step_markers(source, scopes, path, language))
    parts, preamble = _parts(source.split("\n"), comments, markers, language)
    _check_prose(parts, path, language)
    _check_title(parts, path, language)
    for part in parts:
        code, tail = _split(part, scopes)
        part.code, part.tail = _shown(code, scopes), _shown(tail, scopes)
    parts[0].code = _joined(_shown(_unlicensed(preamble, comments), scopes),
                            parts[0].code)
    return Recipe(path, source, parts, scopes, language)


def _prose_markers(comments, scopes, path, language):
    marker = f"{language.COMMENT} %%"
    markers = {}
    for number, text in comments.items():
        match = _MARKER.match(text)
        if match is None:
            continue
        if match[1].strip():
            raise BookError(f"text after {marker}: put it on the next line",
                            path, number)
        if any(_holds(scope, number) for scope in scopes):
            raise BookError(
                f"{marker} inside a function; there, write "
                f"step(\"Title\"){language.STEP_END}", path, number)
        markers[number] = None
    return markers


def _holds(scope, number):
    inside = scope.open_line <= number <= scope.close_line
    return inside and not scope.is_namespace


def _step_markers(source, scopes, path, language):
    markers, seen = {}, {}
    text = language.blanked(source, path)
    end_of_step = language.STEP_END
    lines = source.split("\n")
    for match in _STEP.finditer(text):
        number = cpp.line_of(source, match.start())
        end = text.find(")", match.end())
        argument = source[match.end() : end].strip()
        if argument == "":
            continue  # a function of the recipe's own that is called step
        title = _title(argument, path, number)
        if not re.fullmatch(
                rf'(?:fuse::)?step\(\s*".*"\s*\){end_of_step}{_BY_DEVICE}',
                lines[number - 1].strip()):
            raise BookError(
                f'step("..."){end_of_step} must be alone on its line, except for '
                f"'{language.COMMENT} by device' after it", path, number)
        _check_depth(match.start(), scopes, path, number)
        if title in seen:
            raise BookError(
                f"step {title!r} appears twice, first in line {seen[title]}; "
                "titles must differ", path, number)
        seen[title] = number
        markers[number] = title
    return markers


def _title(argument, path, number):
    match = _LITERAL.fullmatch(argument)
    if match is None:
        raise BookError(
            f"the title of a step must be one plain string literal, not "
            f"{argument!r}", path, number)
    title = re.sub(r"\\(.)", r"\1", match[1])
    if title != title.strip() or not title:
        raise BookError("the title of a step must not be empty, and must not "
                        "begin or end with a space", path, number)
    return title


def _check_depth(offset, scopes, path, number):
    around = [scope for scope in scopes
              if scope.begin < offset < scope.end and not scope.is_namespace]
    if len(around) != 1:
        where = "outside any function" if not around else "in a block"
        raise BookError(
            f"a step {where}; it must be directly in the body of the recipe's "
            "function, so that it runs exactly once", path, number)


def _parts(lines, comments, markers, language):
    parts, preamble = [], []
    in_prose = False
    for number, text in enumerate(lines, start=1):
        line = Line(number, text)
        if number in markers:
            parts.append(Part(number, markers[number],
                              bool(re.search(f"{_BY_DEVICE[:-1]}$", text))))
            in_prose = True
        elif not parts:
            preamble.append(line)
        elif in_prose and number in comments:
            parts[-1].prose.append(
                Line(number, _uncommented(comments[number], language)))
        else:
            in_prose = False
            parts[-1].code.append(line)
    return parts, preamble


def _uncommented(comment, language):
    text = comment[len(language.COMMENT):]
    return (text[1:] if text.startswith(" ") else text).rstrip()


def _check_prose(parts, path, language):
    for part in parts:
        if not any(line.text for line in part.prose):
            what = (f"step {part.title!r}" if part.is_step
                    else f"{language.COMMENT} %%")
            raise BookError(
                f"{what} has no prose: write it in {language.COMMENT} comments "
                "directly below", path, part.line)


def _check_title(parts, path, language):
    if not parts or parts[0].is_step:
        raise BookError(
            f"the first marker must be {language.COMMENT} %% with the page's "
            "title", path, parts[0].line if parts else 1)
    prose = parts[0].prose
    underlined = len(prose) > 1 and re.fullmatch("={3,}", prose[1].text)
    if not prose[0].text or not underlined:
        raise BookError(
            "the first prose must begin with the page's title, underlined "
            "with ===", path, parts[0].line)


def _unlicensed(preamble, comments):
    """Without the comments at the very top of the file."""
    block = False
    for index, line in enumerate(preamble):
        text = line.text.strip()
        opens = text.startswith("/*")
        if not (block or opens or text == "" or line.number in comments):
            return preamble[index:]
        block = (block or opens) and not text.endswith("*/")
    return []


def _split(part, scopes):
    """The code of a step's function, and what follows that function."""
    end = [scope.close_line for scope in scopes
           if part.is_step and _holds(scope, part.line)]
    if not end:
        return part.code, []
    return ([line for line in part.code if line.number <= end[0]],
            [line for line in part.code if line.number > end[0]])


def _shown(code, scopes):
    """What the page shows of a code block."""
    if not code:
        return []
    first = code[0].number
    kept = [line for line in code if not _closes_earlier(line, first, scopes)]
    while kept and not kept[0].text.strip():
        kept.pop(0)
    while kept and not kept[-1].text.strip():
        kept.pop()
    if all(re.fullmatch(r"[\s{};]*", line.text) for line in kept):
        return []
    texts = textwrap.dedent("\n".join(line.text for line in kept)).split("\n")
    return [Line(line.number, text.rstrip())
            for line, text in zip(kept, texts, strict=True)]


def _closes_earlier(line, first, scopes):
    """A line of braces alone that close what an earlier block opened."""
    if not re.fullmatch(r"\s*[}\s;]*}[}\s;]*(//.*)?", line.text):
        return False
    closed = [scope for scope in scopes if scope.close_line == line.number]
    return bool(closed) and all(scope.open_line < first for scope in closed)


def _joined(before, after):
    if before and after:
        gap = Line(before[-1].number + 1, "")
        return [*before, gap, *after]
    return before or after
