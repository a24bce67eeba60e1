"""Every name of code in the book's prose is one that there is.

Prose speaks of code in ``literals``: names, calls, options, variables, files,
commands. Here each word of them is looked up where it would have to stand: in
code without its comments, in the scripts of ./fusebook, among the files. What
stands in `sh` and `cpp` blocks of a page is looked up as well.
"""

import re
from functools import cache

from .code_index import OPTION, WORD, index
from .errors import errors_in

# What others made, and words of formats. `torch.` and `std::` need not be here.
_FOREIGN = frozenset("""
    apt get install clang libclang rt dev noexec nvcc ccache blockIdx difflib
    find_package PATH bin sh snake_case PascalCase member_ api exercise recipe
    excerpt plot alt step Title NAME TOPIC ANSWER FILE DIR STAGES TITLE RECIPE
    """.split())
_PLACEHOLDER = re.compile(r"\b[A-Z]{1,9}(?:\.\.\.)?\b|<[\w-]+>")
_FILE = re.compile(r"(?<![\w$~/.])"
                   r"(?:(?:[\w.*<>{},-]+/)*[\w*<>{},-][\w.*<>{},-]*"
                   r"\.(?:cpp|h|cu|def|py|toml|md|rst|json|txt|sh|cmake|patch"
                   r"|\{[\w,]+\})(?!\w)|(?:build|kernels|common|docs|tests)/"
                   r"[\w./*<>-]*[\w>/]|(?:[\w.*<>{},-]+/)+)")
_COMMAND = re.compile(r"\./fusebook\b[^`\n#&|;]*")
_DEFINE = re.compile(r"(?<![\w-])-D(\w+)")
_PRESET = re.compile(r"--preset[ =]([a-z]\w*)")
_MD_LITERAL = re.compile(r"(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)", re.S)
_RST_LITERAL = re.compile(r"``(.+?)``", re.S)
_BLOCK = re.compile(r"^( *)\.\. code-block:: *(\w+)\n((?:\1 +[^\n]*\n|\s*\n)*)",
                    re.M)
_MADE_HERE = re.compile(r"(\w+) = ")
_PART = re.compile(r"\bfusebook::(\w+)")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
_MADE = re.compile(r"<!--.*?-->", re.S)


def in_markdown(book, show, text):
    return errors_in(show, text, _in_page(book, _MADE.sub(_blank, text)))


def _in_page(book, text):
    for match in _FENCE.finditer(text):
        if match[1] == "sh":
            yield from _in_shell(book, match.start(2), match[2])
    for match in _MD_LITERAL.finditer(_FENCE.sub(_blank, text)):
        yield from _told(book, match.start(2), match[2])


def in_prose(book, text):
    """Of a recipe, an answer or an `.rst`, as prose.py has it."""
    return text.errors(_in_text(book, text.whole))


def _in_text(book, whole):
    yield from _in_blocks(book, whole)
    plain = _BLOCK.sub(_blank, whole)
    for match in _RST_LITERAL.finditer(plain):
        yield from _told(book, match.start(1), match[1])


def _in_blocks(book, whole):
    for match in _BLOCK.finditer(whole):
        start, block = match.start(3), match[3]
        if match[2] == "sh":
            yield from _in_shell(book, start, block)
        elif match[2] == "cpp":
            known = index(book.root).words | set(_MADE_HERE.findall(block))
            for word in WORD.finditer(re.sub(r"//.*", _blank, block)):
                if word[0] not in known:
                    yield start + word.start(), _lacking(repr(word[0]))


def _in_shell(book, start, block):
    for match in _COMMAND.finditer(block):
        for word in _in_command(index(book.root), match[0]):
            yield start + match.start(), _lacking(word)
    for match in re.finditer(r"--preset[ =]\w+|(?<![\w-])-D\w+", block):
        for word in unknown(index(book.root), match[0]):
            yield start + match.start(), _lacking(word)


def _told(book, start, literal):
    for word in unknown(index(book.root), " ".join(literal.split())):
        yield start, _lacking(word)


def _lacking(word):
    return f"there is no {word}: name what is there"


def unknown(known, literal):
    """What a literal names and there is not, in words."""
    if literal.startswith(("torch.", "std::", "apt-get ")):
        return
    rest = literal
    for match in _COMMAND.finditer(literal):
        yield from _in_command(known, match[0])
        rest = rest.replace(match[0], " ")
    for match in _PRESET.finditer(rest):
        if match[1] not in known.presets:
            yield f"preset {match[1]!r}"
    rest = _PRESET.sub(" ", rest)
    for match in OPTION.finditer(rest):
        if match[1] not in known.options:
            yield f"option '--{match[1]}'"
    rest = OPTION.sub(" ", rest)
    for match in _DEFINE.finditer(rest):
        if match[1] not in known.words and not match[1].startswith("BUILD_"):
            yield f"CMake option {match[1]!r}"
    rest = _DEFINE.sub(" ", rest)
    for match in _FILE.finditer(rest):
        if not _is_file(known, match[0]):
            yield f"file or folder {match[0]!r}"
    rest = _FILE.sub(" ", rest)
    for match in _PART.finditer(rest):
        if match[1] not in known.parts:
            yield f"part of the library {match[0]!r}"
    rest = re.sub(r"[~$/][\w$/.-]+", " ", rest)
    for match in WORD.finditer(_PLACEHOLDER.sub(
            lambda m: " " if m[0].isupper() else m[0], rest)):
        word = match[0]
        if word.endswith("_test"):
            if word not in known.tests:
                yield f"test {word!r}"
        elif not (word in known.words or word in _FOREIGN or "NAME" in word):
            yield f"{word!r}"


def _in_command(known, command):
    words = command.split()[1:]
    if not words:
        return
    name = words[0].rstrip(".,:)")
    if name not in known.commands and not _PLACEHOLDER.fullmatch(name):
        yield f"command './fusebook {name}'"
        return
    before = ""
    for word in words[1:]:
        plain = word.strip("[]().,:")
        if plain.startswith("--"):
            if plain[2:].partition("=")[0] not in known.options:
                yield f"option {plain!r}"
        elif before.startswith("-"):
            pass  # the option's value
        elif re.fullmatch(r"[a-z][a-z0-9_]*", plain):
            if name in ("run", "verify") and plain not in known.recipes:
                yield f"recipe {plain!r}"
            if name == "test" and plain.endswith("_test") and (
                    plain not in known.tests):
                yield f"test {plain!r}"
        before = plain


def _is_file(known, name):
    if name.startswith("build/"):
        return _is_made(known, name.rstrip("/"))
    if name.startswith("fusebook/"):  # as code includes it
        return any(f"{folder}/{name[9:]}" in known.files or name.endswith("/")
                   and any(path.startswith(f"{folder}/{name[9:]}")
                           for path in known.files)
                   for folder in ("kernels", "common"))
    pattern = _glob(name)
    return any(pattern.search(path) for path in known.files) or (
        "/" not in name and _says(known.scripts, name))


def _is_made(known, name):
    """By scripts (for each device), or below the build folder of a preset."""
    parts = name.split("/")
    return (_says(known.scripts, name)
            or "-" in parts[-1]
            and f'"{parts[-1].rpartition("-")[0]}-{{' in known.scripts
            or len(parts) > 2 and parts[1] in known.presets
            and parts[-1] in known.words)


def _says(text, word):
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


@cache
def _glob(name):
    """Any file of that name or that end of a path, or below that folder."""
    end = "/" if name.endswith("/") else "(?:/|$)"
    parts = re.split(r"(\*|<[\w-]+>|[A-Z]{3,}(?=[_./]|$)|\{[\w,]+\})",
                     name.rstrip("/"))
    text = "".join(_part(part) for part in parts)
    return re.compile(f"(?:^|/){text}{end}")


def _part(part):
    if part == "*" or part.startswith("<") or re.fullmatch("[A-Z]{3,}", part):
        return "[^/]*"
    if part.startswith("{"):
        return "(?:" + "|".join(map(re.escape, part[1:-1].split(","))) + ")"
    return re.escape(part)


def _blank(match):
    return re.sub(r"[^\n]", " ", match[0])
