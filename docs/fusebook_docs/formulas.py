"""Formulas in the prose are true.

    ``lerp(a, b, w)`` is ``a + w * (b - a)``

says what an operation does: both are computed, the first as its row in ops.def has
it. Every other formula in ``literals`` has to stand in the code, blanks aside.
"""

import math
import re
from functools import cache

from . import cpp, ops
from .errors import BookError

_LITERAL = re.compile(r"``(.+?)``", re.S)
_DEFINED = re.compile(r"``(\w+)\(([a-z](?:,\s*[a-z])*)\)``\s+is\s+``([^`]+)``")
_FORMULA = re.compile(r"[\w)\]]\s+[-+*/]\s+[\w(]|\d\s*\^\s*[-\d]")
_OPERANDS = ((1.75, -0.5, 0.25, 3.0), (-2.0, 1.25, 0.375, -0.75),
             (0.5, 4.0, 0.125, 2.5))
_CLOSE = 1e-12
_FUNCTIONS = {name: getattr(math, name)
              for name in ("sqrt", "exp", "log", "tanh", "hypot")}
_FUNCTIONS |= {"abs": abs, "max": max, "min": min}
_CODE = ("common", "kernels", "docs/examples", "docs/exercises", "recipes")


def in_prose(book, text):
    """What is wrong with the formulas of one of prose.py's texts."""
    return text.errors(_wrong(book, text.whole))


def _wrong(book, whole):
    computed = set()
    for match in _DEFINED.finditer(whole):
        computed.add(match.start(3))
        problem = _difference(book, match[1], match[2], match[3])
        if problem:
            yield match.start(3), problem
    for match in _LITERAL.finditer(whole):
        formula = " ".join(match[1].split())
        if (match.start(1) not in computed and _FORMULA.search(formula)
                and _bare(formula) not in _code(book.root)):
            yield match.start(1), (f"the formula {formula!r} is not in the code: take it "
                                   "from there, or write NAME(a, b) is FORMULA")


def _difference(book, name, operands, formula):
    """Where a formula gives another value than the operation, in words."""
    rows = {op.name: op for op in ops.read(book)}
    names = re.split(r",\s*", operands)
    formula = " ".join(formula.split())
    if name not in rows or rows[name].arity != len(names):
        return f"there is no operation {name} of {len(names)} operands"
    for values in _OPERANDS:
        known = dict(zip(ops.OPERANDS, values))  # noqa: B905
        wanted = _computed(_python(rows[name].value), known)
        found = _computed(formula, dict(zip(names, values)))  # noqa: B905
        if found is None or not math.isclose(found, wanted, rel_tol=_CLOSE):
            given = ", ".join(f"{each:g}" for each in values[:len(names)])
            return (f"{formula!r} gives {found} for {given}, and {name} in "
                    f"ops.def gives {wanted}")
    return None


def _computed(formula, operands):
    try:
        return float(eval(formula, {"__builtins__": {}}, _FUNCTIONS | operands))
    except (ArithmeticError, NameError, SyntaxError, TypeError, ValueError):
        return None


def _python(value):
    """A formula of ops.def, of which the whole may be `x ? y : z`."""
    condition, _, cases = value.partition(" ? ")
    if not cases:
        return value
    yes, _, no = cases.partition(" : ")
    return f"({yes}) if ({condition}) else ({no})"


@cache
def _code(root):
    """All code, without comments and blanks."""
    found = []
    for folder in _CODE:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cpp", ".cu", ".def"):
                text = path.read_text(encoding="utf-8", errors="replace")
                try:
                    text = cpp.blanked(text, path)
                except BookError:  # text that is spliced into code
                    pass
                found.append(_bare(text))
            elif path.suffix == ".patch":
                found += (_bare(line[1:]) for line in path.read_text().split("\n")
                          if line.startswith("+"))
    found += (_bare(path.read_text(encoding="utf-8"))
              for path in sorted((root / "docs/equations").glob("*.txt")))
    return "\n".join(found)


def _bare(text):
    return re.sub(r"\s", "", text)
