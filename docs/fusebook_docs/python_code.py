"""As much of Python's grammar as a recipe page needs, as cpp.py has C++'s."""

import ast
import hashlib
import io
import re
import tokenize

from .cpp import Scope, line_of
from .errors import BookError

NAME = "Python"
LEXER = "python"
COMMENT = "#"
STEP_END = ""  # nothing behind step("Title")

_BLOCKS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For,
           ast.While, ast.With, ast.Try, ast.Match)


def _tokens(source, path):
    try:
        return list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (SyntaxError, tokenize.TokenError) as error:
        raise BookError(f"not Python: {error.args[0]}", path,
                        getattr(error, "lineno", None) or 1) from None


def line_comments(source, path):
    """The lines that hold a comment and nothing else: line -> text."""
    return {token.start[0]: token.string for token in _tokens(source, path)
            if token.type == tokenize.COMMENT
            and not token.line[:token.start[1]].strip()}


def blanked(source, path, *, keep_strings=False):
    """`source` with comments (and strings) turned into spaces."""
    kinds = [tokenize.COMMENT]
    if not keep_strings:
        kinds += [tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)]
    starts = _line_starts(source)
    text = source
    for token in _tokens(source, path):
        if token.type in kinds:
            a, b = (starts[line - 1] + column
                    for line, column in (token.start, token.end))
            text = text[:a] + re.sub(r"[^\n]", " ", source[a:b]) + text[b:]
    return text


def fingerprint(source, path):
    """SHA-256 of a program without its comments and blank lines."""
    lines = (line.rstrip() for line in
             blanked(source, path, keep_strings=True).splitlines())
    stripped = "\n".join(line for line in lines if line)
    return hashlib.sha256(stripped.encode()).hexdigest()


def scopes(source, path):
    """Functions, classes, and what is inside of `if`, loops and the like; outer
    before inner."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise BookError(f"not Python: {error.msg}", path, error.lineno) from None
    starts = _line_starts(source)
    lines = source.split("\n")
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, _BLOCKS):
            continue
        body = node.cases[0].pattern if isinstance(node, ast.Match) else node.body[0]
        head = "\n".join(lines[node.lineno - 1:body.lineno - 1]).strip()
        found.append(Scope(
            head=head, first_line=node.lineno, open_line=node.lineno,
            close_line=node.end_lineno, begin=starts[node.lineno - 1],
            end=starts[node.end_lineno - 1] + len(lines[node.end_lineno - 1])))
    return sorted(found, key=lambda scope: (scope.begin, -scope.end))


def is_main(scope):
    return "__main__" in scope.head


def _line_starts(source):
    starts = [0]
    for line in source.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts


__all__ = ["blanked", "fingerprint", "is_main", "line_comments", "line_of",
           "scopes"]
