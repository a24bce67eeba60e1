"""The letters in the words above a formula are those of the formula.

A single letter under an optimizer's heading is one that its formulas have. Where it is
said to be of the gradient, or of a square, the line that assigns it is made of that.
"""

import ast
import re

from .. import equations, mathml

_SHOWN = re.compile(r"^\.\. equations:: (\w+)$", re.M)
_HEADING = re.compile(r"^(\S.*)\n-+$", re.M)
_MARKUP = re.compile(r"^\.\..*$|``[^`]*``|:\w+:`[^`]*`", re.M)
_LETTER = re.compile(r"(?<![\w'’‖-])([b-zB-HJ-Zρη])(?![\w'’-])")
_OF = re.compile(r"(?<![\w'-])([b-zρ])\s+of\s+(the\s+gradients?|its\s+square)(?!\w)")


def in_prose(book, text):
    whole = text.whole
    if not _SHOWN.search(whole):
        return
    plain = _MARKUP.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), whole)
    starts = [each.start() for each in _HEADING.finditer(whole)] + [len(whole)]
    for begin, end in zip(starts, starts[1:]):  # noqa: B905
        names = _SHOWN.findall(whole, begin, end)
        if names:
            found = [equations.read(book, name) for name in names]
            yield from text.errors(_wrong(plain, begin, end, found))


def _wrong(plain, begin, end, found):
    statements = [each for one in found for each in (*one.statements, *one.start)]
    known = {mathml.letter(name) for each in statements for name in {each.target, *each.names}}
    known |= {mathml.letter(each.repeat[1]) for each in statements if each.repeat}
    for each in _LETTER.finditer(plain, begin, end):
        instead = plain[:each.start()].rstrip().endswith("In the place of")
        if each[1] not in known | {"t", "θ", "f"} and not instead:
            yield each.start(), f"no formula here has the letter {each[1]!r}"
    for each in _OF.finditer(plain, begin, end):
        squared = {_is_square(one.value) for one in statements
                   if mathml.letter(one.target) == each[1]
                   and not one.target.endswith("_hat")}
        wanted = "square" in each[2]
        if squared and wanted not in squared:
            yield each.start(), (f"{each[1]!r} is not made of "
                                 f"{' '.join(each[2].split())!r} in the formula")


def _is_square(value):
    """Whether the gradient is squared in it."""
    return any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
               and getattr(node.left, "id", "") in ("g", "grad")
               for node in ast.walk(value))
