"""A generated kernel in what a program printed, and the code it comes from.

Beside each operation the kernel names it and the line that asked for it:

    const float div_2 = div<float>(sqrt_2, t.sqrt_1);  // div, recipes/a.cpp:117
"""

import re
from dataclasses import dataclass

from . import cpp
from .errors import BookError

_NOTED = re.compile(r"(?P<code>.*\S\s+)(?P<note>// (?P<what>\w+(?:, \w+)*), "
                    r"(?P<path>[\w./-]+):(?P<number>\d+))")
_FUNCTION = re.compile(r"  (?:// |static FUSE_FN )\S")
_CLASS = re.compile(r"\b(?:class|struct|union|enum)\b[^()]*$")
_LONG = 40  # lines of a function that is still shown as a whole


@dataclass(frozen=True)
class Line:
    """A line of a kernel. `note` is its comment, if it has one of an operation."""

    text: str
    note: str = ""
    operations: tuple[str, ...] = ()
    path: str | None = None
    number: int = 0

    @property
    def code(self):
        return self.text.removesuffix(self.note)

    @property
    def place(self):
        return (self.path, self.number) if self.path else None


@dataclass(frozen=True)
class Excerpt:
    """Neighbouring lines of a file."""

    path: str
    first: int
    lines: tuple[str, ...]

    def numbered(self):
        return enumerate(self.lines, self.first)


def split(text):
    """What was printed before a kernel, its lines, and what came after it; or
    None where there is no kernel with notes."""
    lines = text.split("\n")
    start = next((i for i, line in enumerate(lines) if _begins(lines, i)), None)
    ends = [i for i, line in enumerate(lines) if line == "};"]
    if start is None or not ends or ends[-1] < start:
        return None
    kernel = [_line(text) for text in lines[start:ends[-1] + 1]]
    if not any(line.note for line in kernel):
        return None
    return "\n".join(lines[:start]), kernel, "\n".join(lines[ends[-1] + 1:])


def _begins(lines, index):
    if lines[index].startswith("struct Body"):
        return True
    return lines[index].startswith("template <") and index + 1 < len(
        lines) and lines[index + 1].startswith("FUSE_FN ")


def _line(text):
    found = _NOTED.fullmatch(text)
    if found is None:
        return Line(text)
    return Line(text, found["note"], tuple(found["what"].split(", ")),
                found["path"], int(found["number"]))


def parts(kernel):
    """(is it folded, its first line, its end) of every part of a kernel. What
    is not folded are the functions with notes in them."""
    shown = set()
    for index, line in enumerate(kernel):
        if line.note and index not in shown:
            shown.update(_function(kernel, index))
    for index, line in enumerate(kernel):  # a blank line between two of them
        if not line.text and {index - 1, index + 1} <= shown:
            shown.add(index)
    found, start = [], 0
    for index in range(1, len(kernel) + 1):
        if index == len(kernel) or (index in shown) != (start in shown):
            found.append((start not in shown, start, index))
            start = index
    return found


def _function(kernel, index):
    first = index
    while first and not kernel[first].text.startswith("  static "):
        first -= 1
    while first and _FUNCTION.match(kernel[first - 1].text):
        first -= 1
    last = index
    while last < len(kernel) - 1 and kernel[last].text != "  }":
        last += 1
    return range(first, last + 1)


def excerpts(book, kernel):
    """The code that a kernel comes from, in the order in which it is needed."""
    wanted = {}
    for line in kernel:
        if line.place:
            wanted.setdefault(line.path, set()).add(line.number)
    return [excerpt for path, numbers in wanted.items()
            for excerpt in _around(book, path, sorted(numbers))]


def _around(book, path, numbers):
    """The functions that hold some lines of a file."""
    try:
        source = (book.root / path).read_text(encoding="utf-8")
    except OSError:
        raise BookError(f"the kernel names a line of {path}, which does not "
                        "exist: capture it again") from None
    lines = source.split("\n")
    if numbers[-1] > len(lines):
        raise BookError(f"the kernel names line {numbers[-1]} of {path}, which "
                        f"has {len(lines)}: capture it again")
    scopes = cpp.scopes(source, path)
    for first, last in _merged(_span(scopes, number) for number in numbers):
        yield Excerpt(path, first, tuple(lines[first - 1:last]))


def _span(scopes, number):
    """The outermost function of a reasonable length around a line."""
    around = [scope for scope in scopes
              if scope.first_line <= number <= scope.close_line
              and not scope.is_namespace and not _CLASS.search(scope.head)]
    for scope in [*(s for s in around
                    if s.close_line - s.first_line < _LONG), *around[-1:]]:
        return scope.first_line, scope.close_line
    return number, number


def _merged(spans):
    merged = []
    for first, last in sorted(set(spans)):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged
