"""`.. api-example:: NAME`: code of docs/examples/, and what it printed."""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from .. import examples
from ..errors import BookError
from ..words import say
from . import api_users
from . import nodes as own
from . import page as pages


class ApiExample(SphinxDirective):
    required_arguments = 1

    def run(self):
        book, name = pages.book_of(self.env), self.arguments[0]
        for path in examples.folder(book).glob("*"):
            self.env.note_dependency(str(path))
        try:
            example = examples.read(book).get(name)
        except BookError as error:
            raise self.error(str(error)) from None
        if example is None:
            raise self.error(f"no example {name!r} in docs/examples")
        wrong = examples.problem(example)
        if wrong:
            raise self.error(wrong)
        api_users.note_example(self.env, name)
        block = _code(example)
        block["ids"].append(api_users.anchor(name))
        return [block, *_output(example)]


def _code(example):
    return nodes.literal_block(example.code, example.code, language="cpp",
                               classes=["recipe-code"])


def _output(example):
    if not example.output:
        return []
    panel = own.output(label=say("Output of the example {name}",
                                 name=example.name))
    label = nodes.paragraph("", say("Output"), classes=["output-label"])
    text = example.output.removesuffix("\n")
    block = own.output_text(text, text, xml_space="preserve")
    panel += [label, block]
    return [panel]


def setup(app):
    app.add_directive("api-example", ApiExample)
