"""Formulas as MathML, from the statements of equations.py."""

import ast
import html

# Letters, and what stands below them.
_SYMBOLS = {
    "alpha": "α", "beta1": ("β", "1"), "beta2": ("β", "2"),
    "beta3": ("β", "3"), "dampening": "τ",
    "beta2_decay": "ρ", "eps": "ε", "eps1": ("ε", "1"), "eps2": ("ε", "2"), "eta1": ("η", "−"), "eta2": ("η", "+"),
    "initial_accumulator_value": "δ", "lambd": "κ", "lr": "γ", "lr_decay": "η",
    "momentum": "μ", "momentum_decay": "ψ", "mu": "μ", "nu": "ν", "p": "θ",
    "rate": ("γ", "′"), "ns_coefficient1": "a", "ns_coefficient2": "b", "ns_coefficient3": "c",
    "ns_steps": "N", "rho": "ρ", "rho_inf": ("ρ", "∞"), "step": "η",
    "step_size1": ("Γ", "min"), "step_size2": ("Γ", "max"), "t0": ("t", "0"),
    "t_alpha": ("T", "α"), "t_beta3": ("T", "β"),
    "trust_coefficient": "η", "weight_decay": "λ", "ax": "a",
}
_TIMES = "&#x2062;"  # a product without a sign
_OPEN, _SHUT, _BAR, _BARS = (f'<mo stretchy="false">{sign}</mo>'
                             for sign in "()|‖")
_COMPARE = {ast.Gt: ">", ast.Lt: "&lt;", ast.Eq: "="}
_SUM, _PRODUCT, _POWER, _ATOM = range(4)


class Writer:
    """Writes the statements of one step, in order: what has been assigned is
    that of step t."""

    def __init__(self, equations):
        self.equations = equations
        self.targets, self.constants = equations.targets, equations.constants
        # What a loop changes has no step's index.
        self.turning = {each.target for each in equations.statements if each.repeat}
        self.assigned = set()

    def statements(self):
        return (text for _, text in self.lines())

    def lines(self):
        """(the loop around it, MathML) of every statement."""
        for statement in self.equations.statements:
            value = self._expression(statement.value)
            self.assigned.add(statement.target)
            sign = "←" if statement.target in self.turning else "="
            yield (statement.repeat,
                   f"{self._name(statement.target)}<mo>{sign}</mo>{value}")

    def options(self):
        """(symbol, name) of every option, in order of their names."""
        for name in sorted(self.equations.options):
            yield self._name(name), name

    def symbol(self, name):
        return self._name(name)

    def start(self):
        for statement in self.equations.start:
            letter = _symbol(statement.target, "0")
            yield f"{letter}<mo>=</mo>{self._expression(statement.value)}"

    # ---- expressions

    def _expression(self, node):
        return self._with_rank(node)[0]

    def _with_rank(self, node):
        """MathML, and how tightly it binds."""
        kind = type(node).__name__
        return getattr(self, f"_{kind.lower()}")(node)

    def _inside(self, node, rank):
        """With parentheses, where it binds less tightly than `rank`."""
        text, own = self._with_rank(node)
        return text if own >= rank else f"<mrow>{_OPEN}{text}{_SHUT}</mrow>"

    def _constant(self, node):
        return f"<mn>{node.value:g}</mn>", _ATOM

    def _name(self, node):
        if isinstance(node, str):
            return self._symbol_of(node)
        return self._symbol_of(node.id), _ATOM

    def _symbol_of(self, name):
        if name == "grad":
            return (f"<mrow><mo>∇</mo><mi>f</mi>{_OPEN}"
                    f"{_symbol('p', 't−1')}{_SHUT}</mrow>")
        if name not in self.targets or name in self.constants | self.turning:
            return _symbol(name)
        return _symbol(name, "t" if name in self.assigned else "t−1")

    def _unaryop(self, node):
        return f"<mo>−</mo>{self._inside(node.operand, _PRODUCT)}", _SUM

    def _binop(self, node):
        left, right = node.left, node.right
        match node.op:
            case ast.Add():
                return (f"{self._inside(left, _SUM)}<mo>+</mo>"
                        f"{self._inside(right, _SUM)}", _SUM)
            case ast.Sub():
                return (f"{self._inside(left, _SUM)}<mo>−</mo>"
                        f"{self._inside(right, _PRODUCT)}", _SUM)
            case ast.Mult():
                sign = "·" if isinstance(right, ast.Constant) or (
                    isinstance(right, ast.BinOp)
                    and isinstance(right.op, ast.Pow)
                    and isinstance(right.left, ast.Constant)) else _TIMES
                return (f"{self._inside(left, _PRODUCT)}<mo>{sign}</mo>"
                        f"{self._inside(right, _PRODUCT)}", _PRODUCT)
            case ast.MatMult():
                return (f"{self._inside(left, _PRODUCT)}<mo>{_TIMES}</mo>"
                        f"{self._inside(right, _PRODUCT)}", _PRODUCT)
            case ast.Div():
                return (f"<mfrac><mrow>{self._expression(left)}</mrow><mrow>"
                        f"{self._expression(right)}</mrow></mfrac>", _PRODUCT)
            case ast.Pow():
                return (f"<msup>{self._inside(left, _ATOM)}<mrow>"
                        f"{self._expression(right)}</mrow></msup>", _POWER)
        raise ValueError(ast.unparse(node))

    def _call(self, node):
        name = node.func.id
        inside = [self._expression(each) for each in node.args]
        if name == "sqrt":
            return f"<msqrt><mrow>{inside[0]}</mrow></msqrt>", _ATOM
        if name == "transpose":
            return (f"<msup>{self._inside(node.args[0], _ATOM)}<mo>⊤</mo></msup>",
                    _POWER)
        if name == "abs":
            return f"<mrow>{_BAR}{inside[0]}{_BAR}</mrow>", _ATOM
        if name == "norm":
            return f"<mrow>{_BARS}{inside[0]}{_BARS}</mrow>", _ATOM
        listed = "<mo>,</mo>".join(inside)
        return (f"<mrow><mi>{html.escape(name.replace('_', ' '))}</mi>{_OPEN}{listed}{_SHUT}"
                "</mrow>", _ATOM)

    def _compare(self, node):
        sign = _COMPARE[type(node.ops[0])]
        return (f"{self._expression(node.left)}<mo>{sign}</mo>"
                f"{self._expression(node.comparators[0])}", _SUM)

    def _ifexp(self, node):
        rows = []
        while isinstance(node, ast.IfExp):
            rows.append((self._expression(node.body),
                         f"<mtext>if&#xA0;</mtext>{self._expression(node.test)}"))
            node = node.orelse
        rows.append((self._expression(node), "<mtext>otherwise</mtext>"))
        cells = "".join(f"<mtr><mtd><mrow>{value}</mrow></mtd><mtd><mrow>{when}"
                        "</mrow></mtd></mtr>" for value, when in rows)
        return ('<mrow><mo class="brace">{</mo>'
                f"<mtable>{cells}</mtable></mrow>", _SUM)


def letter(name):
    """The letter of a name, without what stands above and below it."""
    found = _SYMBOLS.get(name, name)
    return (found if isinstance(found, str) else found[0]).removesuffix("_hat")


def _symbol(name, time=None):
    """A letter, perhaps with a hat, and below it its own mark and its step."""
    letter, mark = _SYMBOLS.get(name, name), None
    if isinstance(letter, tuple):
        letter, mark = letter
    hat = letter.endswith("_hat")
    text = f"<mi>{html.escape(letter.removesuffix('_hat'))}</mi>"
    if hat:
        text = f"<mover>{text}<mo>^</mo></mover>"
    below = [part for part in (mark, time) if part]
    if not below:
        return text
    return f"<msub>{text}<mrow>{_below(below)}</mrow></msub>"


def _below(parts):
    return "<mo>,</mo>".join(
        "<mi>t</mi><mo>−</mo><mn>1</mn>" if part == "t−1" else
        f"<mn>{part}</mn>" if part.isdigit() else
        f"<mo>{part}</mo>" if part in "+−" else f"<mi>{part}</mi>"
        for part in parts)
