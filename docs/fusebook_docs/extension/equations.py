"""`.. equations:: NAME`: the formulas of an optimizer, above its code.

They are drawn from docs/equations/NAME.txt and computed at every build: formulas
that are not what the optimizer printed end it, with file and line.
"""

import itertools
import textwrap

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from .. import equations, examples, mathml
from ..errors import BookError
from ..words import say
from . import nodes as own
from . import page as pages


class formulas(nodes.General, nodes.Element):
    """`drawn` is MathML."""


class EquationsDirective(SphinxDirective):
    required_arguments = 1

    def run(self):
        book, name = pages.book_of(self.env), self.arguments[0]
        self.env.note_dependency(str(book.root / f"docs/equations/{name}.txt"))
        for path in examples.folder(book).glob("*"):
            self.env.note_dependency(str(path))
        try:
            found = equations.read(book, name)
            equations.check(book, found)
            path, line, lines = equations.code(book, found)
            known = examples.read(book)
        except BookError as error:
            if error.path is None:
                raise self.error(str(error)) from None
            pages.warn(error.message, error.path, error.line)
            return []
        self.env.note_dependency(str(path))
        box = nodes.container(classes=["equations"])
        box += formulas(drawn=_drawn(found))
        box += nodes.container(
            "", nodes.paragraph("", say("{path}, line {line}",
                                        path=book.show(path), line=line),
                                classes=["kernel-title"]),
            _block(textwrap.dedent("\n".join(lines))),
            classes=["equation-code"])
        fold = own.fold(summary=say("The numbers that it is checked with"),
                        classes=["equation-check"])
        for example in map(known.get, found.examples):
            output = example.output.removesuffix("\n")
            fold += [_block(example.code),
                     own.output_text(output, output, xml_space="preserve")]
        return [box, fold]


def _block(code):
    return nodes.literal_block(code, code, language="cpp",
                               classes=["recipe-code"])


def _drawn(found):
    writer = mathml.Writer(found)
    rows = []
    for repeat, group in itertools.groupby(writer.lines(), lambda line: line[0]):
        lines = "".join(f"<li>{_math(text)}</li>" for _, text in group)
        if repeat:
            count = say("{symbol} times, in turns:", symbol=_math(
                writer.symbol(repeat[1])))
            lines = f"<li>{count}<ol>{lines}</ol></li>"
        rows.append(lines)
    given = [say("{symbol} is {name}", symbol=_math(symbol),
                 name=f"<code>{_option(name)}</code>")
             for symbol, name in writer.options()]
    key = say(", ").join(given)
    start = [_math(text) for text in writer.start()]
    key = (say("Here {options}; it begins with {start}.", options=key,
               start=say(" and ").join(start)) if start else
           say("Here {options}.", options=key))
    return (f'<ol class="equation-steps">{"".join(rows)}</ol>'
            f'<p class="equation-key">{key}</p>')


def _math(inside):
    return f'<math displaystyle="true"><mrow>{inside}</mrow></math>'


def _option(name):
    """As it is called in C++."""
    if name[-1].isdigit() and name != "t0":
        return f"{name[:-1]}s[{int(name[-1]) - 1}]"
    return name


def _visit(self, node):
    self.body.append(f'<div class="equation-maths">{node["drawn"]}</div>\n')
    raise nodes.SkipNode


def _skip(self, node):
    raise nodes.SkipNode


def setup(app):
    app.add_node(formulas, html=(_visit, None), text=(_skip, None))
    app.add_directive("equations", EquationsDirective)
