"""The words around a command say what that command does.

`./fusebook COMMAND` on a page stands beside one of the command's own words (`WORDS`),
each of which `./fusebook help` uses to say what it does: in the same paragraph or row,
or, of a block, in the paragraph before or after it or in the comment beside it. So
`capture` in the place of `verify` is noticed where the page says "compares".
"""

import re

from .errors import BookError, errors_in

# Beginnings of words. What the second list has belongs to that command alone: where it
# stands, the command must be named.
WORDS = {
    "run": (("run", "build", "layer", "step"), ()),
    "test": (("test", "check", "hold"), ()),
    "lint": (("lint", "format", "clang-tidy", "check"), ("clang-tidy", "clang-format")),
    "docs": (("site", "book", "translation", "chinese", "catalogue"), ()),
    "verify": (("differ", "compare"), ("compares your", "shows how your")),
    "capture": (("captur", "show", "write", "keep", "sample", "picture", "print",
                 "measure"), ()),
    "new": (("make",), ()),
    "bench": (("measure", "benchmark"), ("measures",)),
    "doctor": (("found", "missing", "list", "package", "device",
                "says"),
               ("what was found", "what is missing:", "packages that")),
    "clean": (("remove",), ("removes",)),
    "help": (("show", "command"), ()),
}
_CALL = re.compile(r"\./fusebook ([a-z]+)\b")
_ONLY = re.compile(r"\|(?:\s*`[^`]*`,?)+\s*\|$")  # a cell of commands alone


def in_prose(book, text):
    return text.errors(wrong(text.whole))


def in_markdown(book, show, text):
    return errors_in(show, text, wrong(text))


def of_help(book, text):
    """Words that `./fusebook help` does not say of a command."""
    lines = text.partition("options of every command")[0]
    for command, (words, _) in WORDS.items():
        said = " ".join(re.findall(
            rf"^  {command}\b(.*\n(?:    .*\n)*)", lines, re.M)).lower()
        if not any(map(said.__contains__, words)):
            yield BookError(f"none of the words of {command!r} "
                            f"({', '.join(words)}) is in what help says of it",
                            "fusebook", text.count("\n", 0, lines.find(
                                f"\n  {command}")) + 2)


def wrong(text):
    """(where, what) of every command with other words around it."""
    for match in _CALL.finditer(text):
        command = match[1]
        if command not in WORDS:
            continue
        around = " ".join(_around(text, match.start()).split())
        if not around:
            continue
        plain = _CALL.sub(" ", around).lower()
        named = set(_CALL.findall(around))
        words, _ = WORDS[command]
        other = [(name, word) for name, (_, own) in WORDS.items()
                 for word in own if name not in named and word in plain]
        if other:
            yield match.start(), (f"'./fusebook {command}' stands where {other[0][1]!r} "
                                  f"is said, which is './fusebook {other[0][0]}'")
        elif not any(re.search(rf"(?<!\w){word}", plain) for word in words):
            yield match.start(), (f"nothing around './fusebook {command}' says what it "
                                  f"does: none of {', '.join(words)}")


def _around(text, start):
    """The paragraph or row of a place; of a block also its neighbours. Nothing of a
    row that lists commands for something else."""
    begin = text.rfind("\n", 0, start) + 1
    end = text.find("\n", start)
    line = text[begin:end if end >= 0 else len(text)]
    if line.startswith("|"):
        before = re.split(r"\n[ \t]*\n", text[:begin])
        return "" if _ONLY.search(line) else f"{' '.join(before[-2:-1])} {line}"
    parts, at = [], 0
    for match in re.finditer(r"\n[ \t]*\n", text):
        parts.append((at, match.start()))
        at = match.end()
    parts.append((at, len(text)))
    here = next(i for i, (a, b) in enumerate(parts) if a <= start <= b)
    is_block = line.strip().startswith("./fusebook")
    if is_block and "#" in line:
        return line
    first, last = (max(here - 2, 0), here + 1) if is_block else (here, here)
    return " ".join(text[a:b] for a, b in parts[first:last + 1])
