"""A picture in a page, and its caption: the one node for all that we draw.

What is drawn is HTML or SVG: text stays text, and the colours are those of the
page. Other builders leave the picture out and keep the caption.
"""

from docutils import nodes


class drawing(nodes.General, nodes.Element):
    """`drawn` is the picture, `kind` its class; the children are the caption."""


def _visit(self, node):
    self.body.append(f'<figure class="{node["kind"]}">\n{node["drawn"]}\n'
                     "<figcaption>\n")


def _depart(self, node):
    self.body.append("</figcaption>\n</figure>\n")


def _skip(self, node):
    pass


def setup(app):
    app.add_node(drawing, html=(_visit, _depart), text=(_skip, _skip))
