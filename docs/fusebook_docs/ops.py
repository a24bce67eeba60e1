"""Reads the table of operations, `kernels/ops/ops.def`, as text.

A row is `OP(name, arity, value, domain, ulp, kind)`, or `MOVE(...)` with the same
fields; a file of more rows is read in the same way. Nothing is compiled or
executed: what cannot be read is an error with its file and line.
"""

import re
from dataclasses import dataclass, replace

from .book import NAME
from .errors import BookError

OPERANDS = "abcd"
DOMAINS = ("any", "positive")
KINDS = ("plain", "arithmetic", "division", "library", "bits", "choice")
_COMPARISONS = {"==", "!=", "<", "<=", ">", ">="}
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_ROW = re.compile(r"(OP|MOVE)\s*\(")
_NUMBER = re.compile(r"\d+(?:\.\d*)?|\.\d+")
_TOKEN = re.compile(r"\s*(\d+(?:\.\d*)?(?:e[-+]?\d+)?|\.\d+|math\s*::\s*\w+|"
                    r"\w+|&&|\|\||[=!<>]=|[-+*/<>!?:(),])")
# What may stand before a sign that has one operand alone.
_OPENS = {"", "(", ",", "?", ":", "!", "+", "-", "*", "/", "&&", "||",
          *_COMPARISONS}
_MORE = "FUSEBOOK_MORE_OPS"
_BINARY = re.compile(r"^\s*FUSE_ELEMENT_OPERATOR\(([^\s,]+), (\w+)\)$", re.M)
_UNARY = re.compile(r"\boperator([^\s\w(]+)\(const Placed& a\) \{.*?"
                    r"OpCode::(\w+)", re.S)


@dataclass(frozen=True)
class Op:
    """One row."""

    name: str
    arity: int
    value: str  # the formula, easy to read
    domain: str
    ulp: float
    kind: str  # how the value comes about
    compares: bool  # gives 1 or 0
    moves: bool  # a MOVE row
    path: object
    line: int
    sign: str = ""  # its operator on elements: "-" of "a - b" or of "-a"

    @property
    def operands(self):
        return ", ".join(OPERANDS[:self.arity])

    @property
    def calls(self):
        """New lists, in place, and in the function of a foreach_map."""
        target = f"list, {self.operands}" if self.moves else self.operands
        return (f"foreach_{self.name}({self.operands})",
                f"foreach_{self.name}_({target})",
                f"{self.name}({self.operands})")

    @property
    def with_operator(self):
        """The same with its operator; empty if it has none."""
        if not self.sign:
            return ""
        return f"{self.sign}a" if self.arity == 1 else f"a {self.sign} b"


def read(book, more=()):
    """All operations of a book, and those of files with more rows."""
    paths = [book.operations, *(book.root / name for name in more)]
    found = {}
    for path in paths:
        for op in parse(_text(book, path), book.show(path)):
            other = found.setdefault(op.name, op)
            if other is not op:
                raise BookError(f"operation {op.name!r} is already defined at "
                                f"{other.path}:{other.line}",
                                op.path, op.line)
    path = book.elements
    for name, sign in operators(_text(book, path), book.show(path)):
        if name not in found:
            raise BookError(f"operator {sign} is for {name!r}, which is not an "
                            "operation", book.show(path))
        found[name] = replace(found[name], sign=sign)
    return list(found.values())


def parse(text, path):
    """The rows of one file, in its order."""
    return list(_Reader(text, path).rows())


def operators(text, path):
    """(operation, sign) of each operator on elements."""
    found = [(name, sign) for pattern in (_BINARY, _UNARY)
             for sign, name in pattern.findall(text)]
    if not found:
        raise BookError("no operators found: FUSE_ELEMENT_OPERATOR(sign, name)",
                        path)
    return found


def _text(book, path):
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BookError(f"cannot be read: {error.strerror}",
                        book.show(path)) from None


class _Reader:
    """One file, and how far it has been read."""

    def __init__(self, text, path):
        self.text = _COMMENT.sub(_blanks, text)
        self.path = path
        self.at = 0
        self.conditions = 0

    def fail(self, message, at=None):
        line = self.text.count("\n", 0, self.at if at is None else at) + 1
        raise BookError(message, self.path, line)

    def rows(self):
        while self._skip_blanks():
            match = _ROW.match(self.text, self.at)
            if match:
                yield self._row(match)
            elif self.text[self.at] == "#":
                self._directive()
            else:
                self.fail(f"{self._rest_of_line()!r} is not a row: OP(name, "
                          "arity, value, domain, ulp, kind)")
        if self.conditions:
            self.fail("an #if without an #endif")

    def _skip_blanks(self):
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.at < len(self.text)

    def _rest_of_line(self):
        return self.text[self.at:].split("\n", 1)[0].rstrip()

    def _directive(self):
        """A line for the preprocessor. It may not decide about rows."""
        line = self._rest_of_line()
        word, *rest = re.findall(r"\w+|\S+", line[1:]) or [""]
        if word.startswith("if"):
            self.conditions += 1
        elif word == "endif":
            self.conditions -= 1
        elif word not in ("define", "undef") and [word, *rest] != [
                "include", _MORE]:
            self.fail(f"{line!r} is not supported here: put rows into this "
                      f"file or that of {_MORE}")
        self.at += len(line)

    def _row(self, match):
        start = self.at
        fields = self._fields(match.end())
        if self.conditions:
            self.fail("a row inside an #if; rows must be unconditional",
                      start)
        if len(fields) != 6:
            self.fail(f"expected 6 fields, got {len(fields)}: {match[1]}(name, "
                      "arity, value, domain, ulp, kind)", start)
        try:
            return _op(fields, match[1] == "MOVE", self.path,
                       self.text.count("\n", 0, start) + 1)
        except ValueError as error:
            self.fail(str(error), start)

    def _fields(self, start):
        """The texts between the commas of a row, which then is behind us."""
        fields, depth, begin = [], 0, start
        for at in range(start, len(self.text)):
            sign = self.text[at]
            if sign in ",)" and depth == 0:
                fields.append(" ".join(self.text[begin:at].split()))
                begin = at + 1
                if sign == ")":
                    self.at = begin
                    return fields
            depth += (sign == "(") - (sign == ")")
        self.fail("this row has no closing parenthesis")


def _blanks(comment):
    return re.sub(r"[^\n]", " ", comment[0])


def _op(fields, moves, path, line):
    """Throws ValueError for a field that makes no sense."""
    name, arity, value, domain, ulp, kind = fields
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a valid operation name")
    most = 1 if moves else len(OPERANDS)
    if not arity.isdigit() or not 1 <= int(arity) <= most:
        raise ValueError(f"{name} has arity {arity!r}; it must be 1"
                         + ("" if moves else f" to {most}"))
    if domain not in DOMAINS:
        raise ValueError(f"{name} has domain {domain!r}; it must be one of: "
                         + ", ".join(DOMAINS))
    if not _NUMBER.fullmatch(ulp):
        raise ValueError(f"{name} has the bound {ulp!r}; it must be a number "
                         "of units in the last place, 0 or more")
    if kind not in KINDS:
        raise ValueError(f"{name} is of kind {kind!r}; it must be one of: "
                         + ", ".join(KINDS))
    tokens = _tokens(name, value)
    _check_names(name, tokens, OPERANDS[:int(arity)])
    return Op(name, int(arity), _spaced(_simplified(tokens)), domain,
              float(ulp), kind, _compares(tokens), moves, path, line)


# ---- formulas ---------------------------------------------------------------


def _tokens(name, value):
    tokens, at = [], 0
    while at < len(value):
        match = _TOKEN.match(value, at)
        if match is None:
            raise ValueError(f"cannot read the value of {name} from "
                             f"{value[at:].strip()!r} on")
        tokens.append("".join(match[1].split()))
        at = match.end()
    if not tokens:
        raise ValueError(f"{name} has no value")
    return tokens


def _check_names(name, tokens, operands):
    for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
        if not token[0].isalpha() and token[0] != "_":
            continue
        is_function = token == "T" or token.startswith("math::")
        if is_function and following != "(":
            raise ValueError(f"the value of {name} has {token} without "
                             "parentheses")
        if not is_function and token not in tuple(operands):
            raise ValueError(
                f"the value of {name} uses {token!r}; it may use "
                f"{', '.join(operands)} and the functions of math::")


def _closing(tokens, start):
    """Where the parenthesis closes that opens at `start`."""
    depth = 0
    for at in range(start, len(tokens)):
        depth += (tokens[at] == "(") - (tokens[at] == ")")
        if depth == 0:
            return at
    raise AssertionError("the parentheses of a row are balanced")


def _compares(tokens):
    """Whether the whole is a comparison turned into a number: T(a < b)."""
    if tokens[:2] != ["T", "("] or _closing(tokens, 1) != len(tokens) - 1:
        return False
    inside = tokens[2:-1]
    return "?" not in inside and not _COMPARISONS.isdisjoint(inside)


def _simplified(tokens):
    """Without conversions to T and without the namespace of functions."""
    out, at = [], 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token != "T":
            out.append(token.removeprefix("math::"))
            continue
        end = _closing(tokens, at)
        inside = _simplified(tokens[at + 1:end])
        alone = len(inside) == 1 or (at == 1 and end == len(tokens) - 1)
        out += inside if alone else ["(", *inside, ")"]
        at = end + 1
    return out


def _spaced(tokens):
    """Tokens as one text, with a blank around each sign of two operands."""
    text, before = "", ""
    for token in tokens:
        if token == ",":
            text += ", "
        elif token in "()!" or token[0].isalnum() or token[0] in "._":
            text += token
        elif token in "+-" and before in _OPENS:
            text += token
        else:
            text += f" {token} "
        before = token
    return text
