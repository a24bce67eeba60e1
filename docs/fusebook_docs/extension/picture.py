"""`.. fusion-picture::` draws which work shares a launch, four times.

It is drawn at every build, as SVG in the page: text stays text, and the colours
are those of the page.
"""

from sphinx.util.docutils import SphinxDirective

from .. import launches
from .drawing import drawing


class FusionPicture(SphinxDirective):
    """The content is the caption."""

    has_content = True

    def run(self):
        self.assert_has_content()
        panels = "\n".join(launches.panel(*row) for row in launches.PANELS)
        node = drawing(kind="fusion-picture",
                      drawn=f'<div class="fusion-panels">\n{panels}\n</div>')
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


def setup(app):
    app.add_directive("fusion-picture", FusionPicture)
