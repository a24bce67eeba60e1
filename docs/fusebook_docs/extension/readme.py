"""`.. readme::` and `.. readme-table::`: what README.md and its like say, on the
site.

`.. readme:: HEADING` shows the section under a heading, `.. readme-table:: HEAD`
the table whose first column is called so, `.. readme-file:: PATH` every section of
another file of the kind.
"""

import re

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from .. import readme
from ..errors import BookError
from . import page as pages
from .editions import said

_INLINE = re.compile(r"`(?P<code>[^`]+)`|\*\*(?P<strong>.+?)\*\*|"
                     r"\*(?P<emphasis>.+?)\*|"
                     r"\[(?P<text>[^\]]+)\]\((?P<target>[^)]+)\)")


class Readme(SphinxDirective):
    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        book = pages.book_of(self.env)
        for path in readme.files(book):
            self.env.note_dependency(str(path))
        try:
            return [_node(block, _said(self.env, block))
                    for block in self.blocks(book)]
        except BookError as error:
            raise self.error(str(error)) from None

    def blocks(self, book):
        return readme.section(book, self.arguments[0])


class ReadmeTable(Readme):
    def blocks(self, book):
        return [readme.table(book, self.arguments[0])]


class ReadmeFile(SphinxDirective):
    required_arguments = 1

    def run(self):
        path = pages.book_of(self.env).root / self.arguments[0]
        self.env.note_dependency(str(path))
        return [nodes.section(
            "", nodes.title("", heading),
            *(_node(block, _said(self.env, block)) for block in blocks),
            ids=[nodes.make_id(heading)])
            for heading, blocks in readme.sections(path)]


def _said(env, block):
    """What puts a text of the block into the language of the page."""
    return lambda text: said(env, text, block.path, block.line)


def _node(block, say):
    if block.kind == "code":
        text = "\n".join(block.lines)
        return nodes.literal_block(text, text, language="sh")
    if block.kind == "list":
        return nodes.bullet_list("", *(
            nodes.list_item("", _paragraph(say(item))) for item in block.items))
    if block.kind == "table":
        return _table([[say(cell) for cell in row] for row in block.rows])
    return _paragraph(say(block.text))


def _paragraph(text):
    paragraph = nodes.paragraph()
    paragraph += _inline(text)
    return paragraph


def _inline(text):
    at = 0
    for match in _INLINE.finditer(text):
        if match.start() > at:
            yield nodes.Text(text[at:match.start()])
        yield _marked(match)
        at = match.end()
    if at < len(text):
        yield nodes.Text(text[at:])


def _marked(match):
    if match["code"] is not None:
        return nodes.literal("", match["code"])
    if match["strong"] is not None:
        return nodes.strong("", "", *_inline(match["strong"]))
    if match["emphasis"] is not None:
        return nodes.emphasis("", "", *_inline(match["emphasis"]))
    target = match["target"]
    if not target.startswith("https://"):  # a place in the README itself
        return nodes.Text(match["text"])
    return nodes.reference("", match["text"], refuri=target)


def _table(rows):
    table = nodes.table(classes=["readme-table"])
    group = nodes.tgroup(cols=len(rows[0]))
    group += [nodes.colspec(colwidth=1) for _ in rows[0]]
    head, *body = [_row(row) for row in rows]
    group += [nodes.thead("", head), nodes.tbody("", *body)]
    table += group
    return table


def _row(cells):
    return nodes.row("", *(nodes.entry("", _paragraph(cell))
                           for cell in cells))


def setup(app):
    app.add_directive("readme", Readme)
    app.add_directive("readme-table", ReadmeTable)
    app.add_directive("readme-file", ReadmeFile)
