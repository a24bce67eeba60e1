"""What the docstrings of the Python package say is what the library has.

They are read by whoever types `help(fusebook.Adam)`. Numbers in them are bound in
`docs/claims.toml` (claims.py), defaults and exceptions too (bound_words.py). An
optimizer's says which one it is, cites the paper of that one (`docs/papers.txt`), and
says "in one launch" where its step is one, and nowhere else.
"""

import ast
import re

from . import bound_words, claims
from .errors import errors_in
from .labels import citations

FOLDER = "python/fusebook"
_BASE = "Optimizer"
_ONE = "in one launch"
_CODE = re.compile(r"`[^`]*`")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def problems(book):
    """Everything in the package's docstrings that is not bound, or not true."""
    for path in sorted((book.root / FOLDER).glob("*.py")):
        show = path.relative_to(book.root).as_posix()
        yield from of_file(book, show, path.read_text(encoding="utf-8"))


def of_file(book, show, source):
    """The same of one file."""
    text = docstrings(source)
    plain = _YEAR.sub(_blank, _CODE.sub(_blank, text))
    yield from claims.of_page(book, show, plain, [
        claim for claim in claims.read(book) if claim.page == show])
    yield from bound_words.in_markdown(book, show, text)
    yield from errors_in(show, source, _of_optimizers(book, source))


def docstrings(source):
    """The docstrings of what is public, without the code in them; lines stay."""
    lines = source.split("\n")
    kept = [""] * len(lines)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            continue
        if getattr(node, "name", "").startswith("_") or ast.get_docstring(node) is None:
            continue
        value = node.body[0].value
        indent = value.col_offset
        for at in range(value.lineno - 1, value.end_lineno):
            is_code = lines[at].startswith(" " * (indent + 4))
            kept[at] = "" if is_code else lines[at].replace('"""', "   ")
    return "\n".join(kept)


def _of_optimizers(book, source):
    """(offset, message) of classes that are said to be another, or to take another
    number of launches."""
    several = bound_words.group(book, "with more than one launch")
    for node in ast.parse(source).body:
        if not isinstance(node, ast.ClassDef) or not any(
                isinstance(base, ast.Name) and base.id == _BASE for base in node.bases):
            continue
        text = " ".join((ast.get_docstring(node) or "").split())
        at = sum(len(line) + 1 for line in source.split("\n")[:node.lineno])
        if not re.match(rf"(?:torch\.optim\.)?{node.name}\b", text):
            yield at, f"the docstring of {node.name} does not begin with its name"
        for _, problem in citations.cited(book, node.name.lower(),
                                          text.replace(" and others", " et al.")):
            yield at, problem
        if (_ONE in text) == (node.name in several):
            yield at, (f"a step of {node.name} is "
                       + ("more than one launch: leave out" if _ONE in text else
                          "one launch: say") + f" {_ONE!r}")


def _blank(match):
    return re.sub(r"[^\n]", " ", match[0])
