"""`.. recipe-ladder:: STEP` draws the ladder that a step of the recipe printed.

The grids, the launches, the bytes and the times are those of the sample, one
picture for each device that captured it. A table with the same numbers folds
under it. The content is the caption.
"""

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from .. import ladder
from ..errors import BookError
from ..words import later, say
from . import nodes as own
from . import page as pages
from .drawing import drawing
from .editions import said
from .recipe import in_tabs

_COLUMNS = (later("fusion"), later("launches"), later("bytes moved"),
            later("time of a step"))


class RecipeLadder(SphinxDirective):
    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self):
        self.assert_has_content()
        page, title = pages.current(self.env), self.arguments[0]
        if title not in page.recipe.step_titles:
            raise self.error(f"recipe-ladder: no step {title!r}")
        tabs = {device: [f".. ladder-on:: {device} {title}", "",
                         *(f"   {line}" for line in self.content), ""]
                for device, sample in page.samples.items()
                if sample.text_of(title)}
        source, number = self.get_source_info()
        lines = StringList()
        for line in in_tabs(tabs):
            lines.append(line, source, number - 1)
        box = nodes.Element()
        self.state.nested_parse(lines, 0, box)
        return box.children


class LadderOn(SphinxDirective):
    """The ladder of one device; the directive above writes it."""

    required_arguments = 2
    final_argument_whitespace = True
    has_content = True

    def run(self):
        device, title = self.arguments
        sample = pages.current(self.env).samples[device]
        try:
            rungs = ladder.read(
                sample.text_of(title), sample.values,
                lambda name: said(self.env, name, *self.get_source_info()))
        except BookError as error:
            raise self.error(f"recipe-ladder: {title!r}: {error}") from None
        node = drawing(kind="ladder", drawn=ladder.svg(rungs))
        self.state.nested_parse(self.content, self.content_offset, node)
        fold = own.fold(summary=say("The same numbers as a table"),
                        classes=["ladder-table"])
        fold += _table(rungs)
        return [node, fold]


def _table(rungs):
    table = nodes.table(classes=["ladder-table"])
    group = nodes.tgroup(cols=len(_COLUMNS))
    group += [nodes.colspec(colwidth=1) for _ in _COLUMNS]
    head = nodes.row()
    head += [_cell(nodes.Text(say(title))) for title in _COLUMNS]
    body = nodes.tbody()
    for rung in rungs:
        row = nodes.row()
        row += [_cell(nodes.Text(text)) for text in (
            rung.name, str(rung.launches), rung.megabytes_text)]
        row += _cell(own.varies("", rung.time_text, kind=rung.time.kind))
        body += row
    group += [nodes.thead("", head), body]
    table += group
    return table


def _cell(*content):
    return nodes.entry("", nodes.paragraph("", "", *content))


def setup(app):
    app.add_directive("recipe-ladder", RecipeLadder)
    app.add_directive("ladder-on", LadderOn)
