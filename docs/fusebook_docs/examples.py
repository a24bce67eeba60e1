"""The examples of the API reference: `docs/examples/TOPIC.cpp`.

Each is a function `EXAMPLE(name)`; all are built into one program that CI runs.
`docs/examples/TOPIC.txt` keeps what they printed, each under a line with its name
and a hash of its code, so that code that was edited since is noticed.
"""

import re
import subprocess
import textwrap
from dataclasses import dataclass

from . import cpp
from .errors import BookError

_BEGIN = re.compile(r"^EXAMPLE\((\w+)\) \{$", re.MULTILINE)
_HEAD = re.compile(r"^== (\w+)(?: ([0-9a-f]{12}))?$", re.MULTILINE)
HOW = "./fusebook capture examples"


@dataclass(frozen=True)
class Example:
    """One example, and what it printed."""

    name: str
    path: object  # of its code, as people read it
    line: int
    code: str  # the body, without indentation
    output: str | None = None  # None: it was never captured
    captured: str = ""  # the hash of the code that printed it

    @property
    def fingerprint(self):
        return cpp.fingerprint(self.code, self.path)[:12]


def folder(book):
    return book.root / "docs" / "examples"


def read(book):
    """All examples by name."""
    found = {}
    for path in sorted(folder(book).glob("*.cpp")):
        printed = _printed(path.with_suffix(".txt"))
        show = book.show(path)
        for name, line, code in _bodies(path.read_text(encoding="utf-8"), show):
            if name in found:
                raise BookError(f"example {name} is defined twice; first in "
                                f"{found[name].path}", show, line)
            captured, output = printed.pop(name, ("", None))
            found[name] = Example(name, show, line, code, output, captured)
        for name in printed:
            raise BookError(f"output of unknown example {name}; run: {HOW}",
                            book.show(path.with_suffix(".txt")))
    return found


def _bodies(source, show):
    ends = {scope.open_line: scope.close_line
            for scope in cpp.scopes(source, show)}
    lines = source.split("\n")
    for match in _BEGIN.finditer(source):
        line = cpp.line_of(source, match.start())
        body = "\n".join(lines[line:ends[line] - 1])
        yield match[1], line, textwrap.dedent(body)


def _printed(path):
    if not path.is_file():
        return {}
    return {head: (mark, text) for head, mark, text
            in _sections(path.read_text(encoding="utf-8"))}


def _sections(text):
    heads = list(_HEAD.finditer(text))
    for head, after in zip(heads, [*heads[1:], None]):
        end = after.start() if after else len(text)
        yield head[1], head[2] or "", text[head.end() + 1:end]


def problem(example):
    """What is wrong with its output, or None."""
    if example.output is None:
        return f"example {example.name} was never captured; run: {HOW}"
    if example.captured != example.fingerprint:
        return (f"example {example.name} has changed since its output was "
                f"captured; run: {HOW}")
    return None


def run(book, program):
    """What every example prints now."""
    try:
        done = subprocess.run([str(program)], capture_output=True, text=True,
                              check=False, timeout=100)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BookError(f"{program} cannot be run: {error}") from None
    if done.returncode:
        raise BookError(f"{program} failed: {done.stderr.strip()}")
    return {name: text for name, _, text in _sections(done.stdout)}


def differences(book, program):
    """Examples that print something else than the page shows."""
    now = run(book, program)
    for name, example in read(book).items():
        wrong = problem(example)
        if wrong is None and name not in now:
            wrong = f"example {name} is not in the program; rebuild it"
        if wrong is None and now[name] != example.output:
            wrong = (f"example {name} prints\n{now[name]}but the page shows\n"
                     f"{example.output}")
        if wrong:
            yield BookError(wrong, example.path, example.line)


def capture(book, program):
    """Keeps what every example prints; the files that changed."""
    now = run(book, program)
    topics = {}
    for example in read(book).values():
        if example.name not in now:
            raise BookError(f"example {example.name} is not in the "
                            "program; rebuild it", example.path, example.line)
        topics.setdefault(example.path, []).append(
            f"== {example.name} {example.fingerprint}\n{now[example.name]}")
    changed = []
    for path, sections in topics.items():
        kept = (book.root / path).with_suffix(".txt")
        text = "".join(sections)
        if not kept.is_file() or kept.read_text(encoding="utf-8") != text:
            kept.write_text(text, encoding="utf-8")
            changed.append(book.show(kept))
    return changed
