"""`.. value-bars:: RECIPE`: numbers that a recipe printed, as bars and as a table.

Each line of the content is "label = QUOTE", the number as `:value:` quotes it.
Under the picture stands where they were captured, and the command that prints
them. `RECIPE` may be an answer, `recipe.exercise`.
"""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from .. import gallery, samples, thumbnails
from ..errors import BookError
from ..quotes import Home
from ..words import say
from . import nodes as own
from . import page as pages
from .drawing import drawing
from .editions import said
from .quote import note
from .recipe import provenance


_WIDTH = 360


class ValueBars(SphinxDirective):
    required_arguments = 1
    has_content = True

    def run(self):
        self.assert_has_content()
        book = pages.book_of(self.env)
        recipe, _, exercise = self.arguments[0].partition(".")
        home = Home(recipe, None, exercise or None, bool(exercise))
        try:
            bars = [thumbnails.bar(book, line, home, self._said)
                    for line in self.content if line.strip()]
            sample = samples.load(book, "cpu", recipe, exercise or None)
        except BookError as error:
            raise self.error(str(error)) from None
        for bar in bars:
            note(self.env, bar.quote)
        figure = drawing(kind="value-bars",
                         drawn=thumbnails.drawn(bars, _WIDTH))
        figure += self._caption(recipe, exercise, sample)
        fold = own.fold(summary=say("The same numbers as a table"), classes=[])
        fold += _table(bars)
        return [figure, fold]

    def _said(self, label):
        return said(self.env, label, *self.get_source_info())

    def _caption(self, recipe, exercise, sample):
        command = gallery.run_command(pages.book_of(self.env), recipe)
        parts = {"where": provenance(sample),
                 "command": nodes.literal(command, command)}
        if exercise:
            words = own.sentence(
                "{where}. {command} prints them with the answer “{answer}”.",
                answer=exercise, **parts)
        else:
            words = own.sentence("{where}. {command} prints them.", **parts)
        return nodes.paragraph("", "", *words)


def _table(bars):
    table = nodes.table()
    group = nodes.tgroup(cols=2)
    group += [nodes.colspec(colwidth=2), nodes.colspec(colwidth=1)]
    head = nodes.row("", _cell(nodes.Text(say("what"))),
                     _cell(nodes.Text(say("value"))))
    body = nodes.tbody()
    for bar in bars:
        shown = (own.varies("", bar.shown, kind=bar.quote.kind)
                 if bar.quote.kind else nodes.Text(bar.shown))
        body += nodes.row("", _cell(nodes.Text(bar.label)), _cell(shown))
    group += [nodes.thead("", head), body]
    table += group
    return table


def _cell(content):
    return nodes.entry("", nodes.paragraph("", "", content))


def setup(app):
    app.add_directive("value-bars", ValueBars)
