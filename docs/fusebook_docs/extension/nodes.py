"""What a page shows that docutils has no node for."""

import string

from docutils import nodes
from sphinx.util.docutils import SphinxTranslator

from ..words import later, plain, say

VARIES = {
    "measured": later("measured; varies from run to run"),
    "ratio": later("of what was measured; varies from run to run"),
    "varying": later("varies from run to run"),
    "place": later("a place in the program"),
    "text": later("varies from machine to machine"),
}


class output(nodes.container):
    """A panel with what a step printed. `label` names it for a listener."""


class output_text(nodes.literal_block):
    """The printed text itself, with varying values as inline nodes."""


class varies(nodes.inline):
    """A value that is another one in the next run. `kind` says why."""


class fold(nodes.container):
    """Content that opens on demand. `summary` is what is seen before."""


def sentence(text, /, **parts):
    """A text of words.py as nodes: each part, a text, a node or several, stands where
    the translation has its name."""
    found = []
    for words, name, _, _ in string.Formatter().parse(plain(text)):
        if words:
            found.append(nodes.Text(words))
        if name is not None:
            found += _nodes(parts[name])
    return found


def _nodes(part):
    if isinstance(part, list):
        return part
    return [part if isinstance(part, nodes.Node) else nodes.Text(str(part))]


def _visit_output(self: SphinxTranslator, node):
    label = self.attval(node["label"])
    self.body.append(f'<div class="recipe-output" role="group" '
                     f'aria-label="{label}">\n')


def _visit_output_text(self: SphinxTranslator, node):
    self.body.append(self.starttag(node, "pre", "", CLASS="output-text"))


def _visit_varies(self: SphinxTranslator, node):
    title = self.attval(say(VARIES[node["kind"]]))
    self.body.append(f'<span class="varies" title="{title}">')


def _visit_fold(self: SphinxTranslator, node):
    summary = self.encode(node["summary"])
    classes = " ".join(["fold", *node["classes"]])
    self.body.append(f'<details class="{classes}"><summary>{summary}'
                     "</summary>\n")


def _closing(text):
    def depart(self: SphinxTranslator, node):
        self.body.append(text)

    return depart


def setup(app):
    app.add_node(output, html=(_visit_output, _closing("</div>\n")))
    app.add_node(output_text, html=(_visit_output_text, _closing("</pre>\n")))
    app.add_node(varies, html=(_visit_varies, _closing("</span>")))
    app.add_node(fold, html=(_visit_fold, _closing("</details>\n")))
