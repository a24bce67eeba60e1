"""Options of programs, such as `--device`, and dates stay in one piece on narrow
screens: a browser may break a line after every dash."""

import re

from docutils import nodes

_OPTION = re.compile(r"(?:^|[\s\[])-")
_DATE = re.compile(r"(\b\d{4}-\d\d-\d\d\b)")


def _mark(app, doctree):
    for word in doctree.findall(nodes.literal):
        if _OPTION.search(word.astext()):
            word["classes"].append("option")
    for text in list(doctree.findall(nodes.Text)):
        if isinstance(text.parent, nodes.paragraph) and _DATE.search(text):
            text.parent.replace(text, [
                nodes.inline("", part, classes=["date"]) if _DATE.fullmatch(part)
                else nodes.Text(part) for part in _DATE.split(text) if part])


def setup(app):
    app.connect("doctree-read", _mark)
