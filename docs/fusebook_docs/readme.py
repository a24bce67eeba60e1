"""Sections of README.md and its like, so that the site has no second copy of
them."""

import re
from dataclasses import dataclass, field

from .errors import BookError

_HEADING = re.compile(r"(#+) (.*)")
_FENCE = "```"
FILES = ("README.md", "docs/commands.md", "docs/promises.md")


@dataclass
class Block:
    """A paragraph, a list, a table or a piece of code, and where it stands."""

    kind: str  # "paragraph", "list", "table", "code"
    path: object
    line: int
    lines: list[str] = field(default_factory=list)

    @property
    def text(self):
        return " ".join(line.strip() for line in self.lines)

    @property
    def items(self):
        """Of a list."""
        found = []
        for line in self.lines:
            if line.startswith("- "):
                found.append(line[2:])
            else:
                found[-1] += " " + line.strip()
        return found

    @property
    def rows(self):
        """Of a table: the heads first."""
        cells = [[cell.strip().replace("\\|", "|") for cell
                  in re.split(r"(?<!\\)\|", line.strip("| "))]
                 for line in self.lines]
        return [cells[0], *cells[2:]]


def files(book):
    """Where sections and tables are looked for."""
    paths = [book.root / name for name in FILES]
    return [path for path in paths if path.is_file()]


def section(book, heading):
    """The blocks under a heading, up to the next one of any depth."""
    for path in files(book):
        lines = path.read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines):
            match = _HEADING.fullmatch(line)
            if match and match[2] == heading:
                return list(_blocks(path, lines, number + 1))
    raise BookError(f"no heading {heading!r}", " or ".join(FILES))


def sections(path):
    """(heading, its blocks) of every part of a file under a `##`."""
    lines = path.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines):
        match = _HEADING.fullmatch(line)
        if match and match[1] == "##":
            yield match[2], list(_blocks(path, lines, number + 1))


def table(book, head):
    """The one table whose first column has that head."""
    for path in files(book):
        lines = path.read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines):
            if line.startswith(f"| {head} |"):
                return next(_blocks(path, lines, number))
    raise BookError(f"no table with the head {head!r}", " or ".join(FILES))


def _blocks(path, lines, start):
    block, in_code = None, False
    for number in range(start, len(lines)):
        line = lines[number]
        if line.startswith(_FENCE):
            if in_code:
                yield block
            block = None if in_code else Block("code", path, number + 1)
            in_code = not in_code
        elif in_code:
            block.lines.append(line)
        elif _HEADING.fullmatch(line):
            break
        else:
            kind = _kind(line, block)
            if block and kind != block.kind:
                yield block
                block = None
            if kind:
                block = block or Block(kind, path, number + 1)
                block.lines.append(line)
    if block:
        yield block


def _kind(line, block):
    if not line.strip():
        return None
    if line.startswith("|"):
        return "table"
    if line.startswith("- ") or block and block.kind == "list":
        return "list"
    return "paragraph"
