"""`.. graph-picture:: EXAMPLE`: a graph that an example logged, as a picture.

`:graph:` is its title in the log, `:alt:` what it shows; the content is the
caption.
"""

from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from .. import examples, graphs
from ..errors import BookError
from . import page as pages
from .drawing import drawing
from .editions import said


class GraphPicture(SphinxDirective):
    required_arguments = 1
    has_content = True
    option_spec = {"graph": directives.unchanged_required,
                   "alt": directives.unchanged_required}

    def run(self):
        self.assert_has_content()
        book, name = pages.book_of(self.env), self.arguments[0]
        for path in examples.folder(book).glob("*"):
            self.env.note_dependency(str(path))
        try:
            example = examples.read(book).get(name)
            if example is None or example.output is None:
                raise BookError(f"no example {name!r} with output")
            drawn = graphs.svg(graphs.read(example.output,
                                           self.options["graph"]),
                               said(self.env, self.options["alt"],
                                    *self.get_source_info()))
        except BookError as error:
            raise self.error(str(error)) from None
        except KeyError as missing:
            raise self.error(f"a graph-picture needs :{missing.args[0]}:") \
                from None
        node = drawing(kind="graph-picture", drawn=drawn)
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


def setup(app):
    app.add_directive("graph-picture", GraphPicture)
