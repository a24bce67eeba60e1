"""As much of C++'s grammar as a recipe page needs: comments and scopes."""

import hashlib
import re
from dataclasses import dataclass

from .errors import BookError

NAME = "C++"
LEXER = "cpp"
COMMENT = "//"
STEP_END = ";"  # behind step("Title")

_TOKEN = re.compile(
    r"""
    (?P<line>//(?:\\\n|[^\n])*)
  | (?P<block>/\*.*?\*/)
  | (?P<raw>(?<!\w)(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")
  | (?P<string>"(?:\\.|[^"\\\n])*")
  | (?P<char>(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+')
  | (?P<open>/\*|")
    """,
    re.DOTALL | re.VERBOSE,
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
_NAMESPACE = re.compile(r"\s*(?:(?:inline\s+)?namespace\b|extern\s*$)")


@dataclass(frozen=True)
class Scope:
    """A pair of braces, by 1-based lines. `head` is what introduces it."""

    head: str
    first_line: int
    open_line: int
    close_line: int
    begin: int
    end: int

    @property
    def is_namespace(self):
        return _NAMESPACE.match(self.head) is not None

    @property
    def is_main(self):
        return re.search(r"\bmain\s*\(", self.head) is not None


def is_main(scope):
    return scope.is_main


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def tokens(source, path):
    """Comments and literals, in order."""
    found = []
    for match in _TOKEN.finditer(source):
        if match.lastgroup == "open":
            what = "comment" if match[0] == "/*" else "string"
            line = line_of(source, match.start())
            raise BookError(f"a {what} begins here but never ends", path, line)
        found.append(match)
    return found


def _kind(match):
    for kind in ("line", "block", "raw", "string", "char"):
        if match[kind] is not None:
            return kind
    raise AssertionError(match)


def line_comments(source, path):
    """The lines that hold a `//` comment and nothing else: line -> text."""
    lines = {}
    for match in tokens(source, path):
        if _kind(match) != "line":
            continue
        start = source.rfind("\n", 0, match.start()) + 1
        if source[start : match.start()].strip() == "":
            lines[line_of(source, match.start())] = match[0]
    return lines


def blanked(source, path, *, keep_strings=False):
    """`source` with comments (and literals) turned into spaces."""
    out = []
    at = 0
    for match in tokens(source, path):
        out.append(source[at : match.start()])
        kept = keep_strings and _kind(match) in ("raw", "string", "char")
        text = match[0]
        out.append(text if kept else re.sub(r"[^\n]", " ", text))
        at = match.end()
    out.append(source[at:])
    return "".join(out)


def fingerprint(source, path):
    """SHA-256 of a program without its comments and blank lines."""
    text = blanked(source, path, keep_strings=True)
    lines = (line.rstrip() for line in text.splitlines())
    stripped = "\n".join(line for line in lines if line)
    return hashlib.sha256(stripped.encode()).hexdigest()


def scopes(source, path):
    """Every pair of braces, outer before inner."""
    text = blanked(source, path)
    text = _DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    found, stack, head_start = [], [], 0
    for match in re.finditer(r"[{};]", text):
        at = match.start()
        if match[0] == "{":
            stack.append((head_start, at))
        elif match[0] == "}":
            if not stack:
                line = line_of(text, at)
                raise BookError("a } without its {", path, line)
            found.append(_scope(text, *stack.pop(), at))
        head_start = at + 1
    if stack:
        line = line_of(text, stack[-1][1])
        raise BookError("a { without its }", path, line)
    return sorted(found, key=lambda scope: scope.begin)


def _scope(text, head_start, begin, end):
    head = text[head_start:begin]
    lead = len(head) - len(head.lstrip())
    return Scope(
        head=head.strip(),
        first_line=line_of(text, head_start + lead),
        open_line=line_of(text, begin),
        close_line=line_of(text, end),
        begin=begin,
        end=end,
    )
