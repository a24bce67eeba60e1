"""Options of programs, such as `--device`, stay in one piece on narrow screens:
a browser may break a line after every dash."""

import re

from docutils import nodes

_OPTION = re.compile(r"(?:^|[\s\[])-")


def _mark(app, doctree):
    for word in doctree.findall(nodes.literal):
        if _OPTION.search(word.astext()):
            word["classes"].append("option")


def setup(app):
    app.connect("doctree-read", _mark)
