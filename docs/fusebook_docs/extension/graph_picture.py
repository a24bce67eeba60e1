"""`.. graph-picture:: EXAMPLE`: a graph that an example logged, as a picture.

`:graph:` is its title in the log, `:alt:` what it shows; the content is the
caption.
"""

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from .. import examples, graphs
from ..errors import BookError
from . import page as pages


class graph_picture(nodes.General, nodes.Element):
    """The picture, and its caption."""


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
                               self.options["alt"])
        except BookError as error:
            raise self.error(str(error)) from None
        except KeyError as missing:
            raise self.error(f"a graph-picture needs :{missing.args[0]}:") \
                from None
        node = graph_picture(svg=drawn)
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


def _visit(self, node):
    self.body.append(f'<figure class="graph-picture">\n{node["svg"]}\n'
                     "<figcaption>\n")


def _depart(self, node):
    self.body.append("</figcaption>\n</figure>\n")


def _skip(self, node):
    pass


def setup(app):
    app.add_node(graph_picture, html=(_visit, _depart), text=(_skip, _skip))
    app.add_directive("graph-picture", GraphPicture)
