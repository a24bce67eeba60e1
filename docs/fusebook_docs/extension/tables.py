"""Tables that directives make."""

import re

from docutils import nodes

_BEFORE_UNIT = re.compile(r"(?<=\d) (?=[^\W\d])")


def table(head, rows):
    """A table of texts."""
    found = nodes.table(classes=["counted"])
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=1) for _ in head]
    body = nodes.tbody()
    body += [_row(row) for row in rows]
    group += [nodes.thead("", _row(head)), body]
    found += group
    return found


def _row(texts):
    """A number and its unit stay in one line."""
    return nodes.row("", *(nodes.entry("", nodes.paragraph(
        "", _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text))) for text in texts))
