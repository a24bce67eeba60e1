"""The formulas of the optimizers: `docs/equations/NAME.txt`.

A line is an assignment as Python writes it, of one step for one element:

    m = beta1 * m + (1 - beta1) * g

What has been assigned in a step before is its new value, else it is that of the
step before; `grad` is the gradient, `t` counts the steps from one, `p` is the
parameter, and an option of the optimizer has its name (`betas[0]` is `beta1`).
States begin at zero, or as `start: NAME = ...` says. `code: FILE FUNCTION` is where
the optimizer does it, and `example: NAME...` what it printed for given gradients: the
same lines are computed here, step by step, and compared with that. Where it printed
several numbers with commas, they are the elements of one parameter: lines are
computed for each of them, and `norm`, `rms` (the root of the mean of squares) and
`mean` are one number of them all. With semicolons between its rows it is a matrix:
`@` is a product of two, `transpose`, `rows`, `columns`, `row_means` and
`column_means` take one. A formula may need several examples, so that each of its cases
occurs. Lines below `repeat: OPTION` that are indented are computed as often as the
option says, in turns; `within: 1e-9` is for results that are that close only.
"""

import ast
import itertools
import math
import operator
import re
from dataclasses import dataclass

from . import cpp, examples
from .errors import BookError

_OPTION = re.compile(r"(\w+) = (\S+)")
_STEP = re.compile(r"(\S+) -> (\S+)((?: \w+ \S+)*)")
_ACCESS = re.compile(r"\s*(?:public|protected|private):\s*")
_CLOSE = 1e-12  # of float64 that was rounded in another order
GIVEN = ("grad", "t", "p")


class Elements(tuple):
    """The elements of a parameter, computed with one by one; of a matrix, row by
    row."""

    columns = None

    @classmethod
    def of_matrix(cls, values, columns):
        found = cls(values)
        found.columns = columns
        return found

    def each(self, operation, *others):
        return Elements.of_matrix(map(operation, self, *(
            other if isinstance(other, Elements) else itertools.repeat(other)
            for other in others)), self.columns)

    @property
    def lines(self):
        return list(zip(*[iter(self)] * self.columns, strict=True))

    def __matmul__(self, other):
        return Elements.of_matrix(
            (math.fsum(map(operator.mul, line, column))
             for line in self.lines for column in zip(*other.lines, strict=True)),
            other.columns)


def _transposed(x):
    return Elements.of_matrix(itertools.chain(*zip(*x.lines, strict=True)),
                              len(x) // x.columns)


def _add_operator(name):
    operation = getattr(operator, name)
    setattr(Elements, f"__{name}__",
            lambda self, other: self.each(operation, other))
    setattr(Elements, f"__r{name}__", lambda self, other: self.each(
        lambda own, before: operation(before, own), other))


for _name in ("add", "sub", "mul", "truediv", "pow"):
    _add_operator(_name)


def _one_by_one(function):
    return lambda x: (x.each(function) if isinstance(x, Elements)
                      else function(x))


def _norm(x):
    return math.hypot(*x) if isinstance(x, Elements) else abs(x)


def _max(*values):
    """The largest; of elements, one by one."""
    found = next((each for each in values if isinstance(each, Elements)), None)
    if found is None:
        return max(values)
    (other,) = (each for each in values if each is not found)
    return found.each(max, other)


def _mean(x):
    return math.fsum(x) / len(x)


def _row_means(x):
    return Elements.of_matrix(map(_mean, x.lines), 1)


_FUNCTIONS = {"row_means": _row_means, "mean": _mean, "max": _max, "transpose": _transposed, "columns": lambda x: float(x.columns),
              "rows": lambda x: float(len(x) // x.columns),
              "sqrt": _one_by_one(math.sqrt), "abs": _one_by_one(abs),
              "column_means": lambda x: _transposed(_row_means(_transposed(x))),
              "rms": lambda x: _norm(x) / math.sqrt(len(x)),
              "min": min, "norm": _norm,
              "exp": _one_by_one(math.exp), "log": _one_by_one(math.log),
              "sign": _one_by_one(lambda x: float((x > 0) - (x < 0)))}


@dataclass(frozen=True)
class Statement:
    """`target = value` in a line of the file."""

    line: int
    target: str
    value: ast.expr
    repeat: tuple[int, str] | None = None  # the loop around it: its line and option

    @property
    def names(self):
        return {node.id for node in ast.walk(self.value)
                if isinstance(node, ast.Name)} - set(_FUNCTIONS)


@dataclass(frozen=True)
class Equations:
    path: object  # as people read it
    statements: tuple[Statement, ...]
    start: tuple[Statement, ...]
    code: tuple[str, str]
    examples: tuple[str, ...]
    within: float = _CLOSE

    @property
    def targets(self):
        return {statement.target for statement in self.statements}

    @property
    def options(self):
        """What is given by the optimizer's options."""
        used = set().union(*(s.names for s in (*self.statements, *self.start)))
        used |= {s.repeat[1] for s in self.statements if s.repeat}
        return used - self.targets - set(GIVEN)

    @property
    def constants(self):
        """Targets that options alone determine."""
        found = set()
        for statement in self.statements:
            if statement.names <= self.options | found:
                found.add(statement.target)
        return found


@dataclass(frozen=True)
class Printed:
    """What an example printed: options, the parameter at first, and (gradient,
    {state: value})."""

    example: str
    options: dict
    start: float
    steps: list


def names(book):
    return sorted(path.stem for path in _folder(book).glob("*.txt"))


def _folder(book):
    return book.root / "docs" / "equations"


def read(book, name):
    path = _folder(book) / f"{name}.txt"
    show = book.show(path)
    if not path.is_file():
        raise BookError(f"unknown equations {name!r}; known: "
                        + ", ".join(names(book)))
    heads, start, statements, repeat = {}, [], [], None
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        head = re.match(r"(code|example|start|within|repeat): (.*)", line)
        if head and head[1] == "repeat":
            repeat = number, head[2]
        elif head and head[1] != "start":
            heads[head[1]] = head[2]
        elif head:
            start.append(_statement(head[2], show, number))
        elif line.strip():
            repeat = repeat if line.startswith("  ") else None
            statements.append(_statement(line, show, number, repeat))
    if not {"code", "example"} <= set(heads):
        raise BookError("needs a 'code:' line and an 'example:' line", show, 1)
    return Equations(show, tuple(statements), tuple(start),
                     tuple(heads["code"].split()),
                     tuple(heads["example"].split()),
                     float(heads.get("within", _CLOSE)))


def _statement(text, show, number, repeat=None):
    try:
        parsed = ast.parse(text.strip()).body
    except SyntaxError as error:
        raise BookError(f"not an assignment: {error.msg}", show, number) from None
    if len(parsed) != 1 or not isinstance(parsed[0], ast.Assign) or not (
            isinstance(parsed[0].targets[0], ast.Name)):
        raise BookError("not an assignment", show, number)
    return Statement(number, parsed[0].targets[0].id, parsed[0].value, repeat)


def printed(book, equations):
    """What the optimizer printed. Throws if that is not up to date."""
    known = examples.read(book)
    for name in equations.examples:
        if name not in known:
            raise BookError(f"unknown example {name!r}", equations.path, 1)
    return [_printed(known[name], equations) for name in equations.examples]


def _printed(example, equations):
    if examples.problem(example):
        raise BookError(examples.problem(example), equations.path, 1)
    options, steps = {}, []
    for line in example.output.splitlines():
        if match := _OPTION.fullmatch(line):
            name = re.sub(r"(?<!ep)s(\d)$", r"\1", match[1])  # betas1 is beta1
            options[name] = float(match[2])
        elif match := _STEP.fullmatch(line):
            words = match[3].split()
            steps.append((_numbers(match[1]), {
                "p": _numbers(match[2]),
                **dict(zip(words[::2], map(_numbers, words[1::2])))}))
    if not steps or "p" not in options:
        raise BookError(f"{example.name} printed no steps", equations.path, 1)
    return Printed(example.name, options, options.pop("p"), steps)


def _numbers(text):
    rows = [line.split(",") for line in text.split(";")]
    found = Elements(map(float, itertools.chain(*rows)))
    if len(rows) > 1:
        found.columns = len(rows[0])
    return found if len(found) > 1 else found[0]


def computed(equations, options, gradients, start):
    """The states after every step, by a plain loop over the statements."""
    if isinstance(gradients[0], Elements):
        start = gradients[0].each(lambda _: start)
    now = {**options, **{name: 0.0 for name in equations.targets}, "p": start}
    for statement in equations.start:
        now[statement.target] = _value(equations, statement, now)
    for t, gradient in enumerate(gradients, 1):
        now.update(t=t, grad=gradient)
        for repeat, group in itertools.groupby(equations.statements,
                                               lambda each: each.repeat):
            lines = list(group)
            for statement in lines * (int(now[repeat[1]]) if repeat else 1):
                now[statement.target] = _value(equations, statement, now)
        yield dict(now)


def _value(equations, statement, now):
    code = compile(ast.fix_missing_locations(ast.Expression(statement.value)),
                   str(equations.path), "eval")
    try:
        found = eval(code, {"__builtins__": {}}, {**_FUNCTIONS, **now})
        return found if isinstance(found, Elements) else float(found)
    except (ArithmeticError, NameError, TypeError, ValueError) as error:
        raise BookError(f"{ast.unparse(statement.value)!r}: {error}",
                        equations.path, statement.line) from None


def difference(equations, found):
    """(step, state, computed, printed) where the two first differ, or None."""
    gradients = [gradient for gradient, _ in found.steps]
    loop = computed(equations, found.options, gradients, found.start)
    for number, (now, (_, states)) in enumerate(zip(loop, found.steps), 1):
        for name in (s.target for s in equations.statements):
            value = states.get(name, now[name])
            if not _close(now[name], value, equations.within):
                return number, name, now[name], value
    return None


def _close(a, b, within):
    if not isinstance(a, Elements) or not isinstance(b, Elements):
        return not isinstance(a, Elements) and not isinstance(b, Elements) and (
            math.isclose(a, b, rel_tol=within))
    return len(a) == len(b) and all(map(_close, a, b, itertools.repeat(within)))


def check(book, equations):
    """Throws when the formula is not what the optimizer does."""
    for found in printed(book, equations):
        apart = difference(equations, found)
        if apart is None:
            continue
        step, state, value, wanted = apart
        line = next(s.line for s in equations.statements if s.target == state)
        raise BookError(
            f"does not match its code: after step {step}, these formulas give "
            f"{state} = {value!r}, but {found.example} printed {wanted!r}",
            equations.path, line)


def code(book, equations):
    """The function that does it: the file's path, first line and lines."""
    file, function = equations.code
    found = sorted((book.root / "common").rglob(file))
    if len(found) != 1:
        raise BookError(f"{len(found)} files are named {file}; "
                        "expected one", equations.path,
                        1)
    source = found[0].read_text(encoding="utf-8")
    head = re.compile(rf"\b{re.escape(function)}\s*\(")
    for scope in cpp.scopes(source, book.show(found[0])):
        if head.search(scope.head):
            lines = source.split("\n")[:scope.close_line]
            first = scope.first_line
            while _ACCESS.fullmatch(lines[first - 1]):
                first += 1
            return found[0], first, lines[first - 1:]
    raise BookError(f"{file} has no function {function!r}", equations.path, 1)
