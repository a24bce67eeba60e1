"""`.. recipe-excerpt:: name`: code of a recipe's step on another page.

Options: `step`, its title; `from` and `to`, words that the first and the last
line to show contain; `output`, to show what the whole step printed. So a page
that talks about a program never has a second copy of it.
"""

import textwrap

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from ..errors import BookError
from . import nodes as own
from . import page as pages
from .editions import said_title
from .recipe import output_lines


class RecipeExcerpt(SphinxDirective):
    required_arguments = 1
    option_spec = {"step": directives.unchanged_required,
                   "from": directives.unchanged_required,
                   "to": directives.unchanged_required,
                   "output": directives.flag}

    def run(self):
        around = self.env.temp_data.get(pages.KEY)
        try:
            page = pages.open_page(self.env, self.arguments[0])
            self.env.note_dependency(str(page.path))
            part = self._part(page)
            code = self._lines(part)
            return [self._origin(page, part), _block(code, page.recipe.language.LEXER),
                    *self._output(page, part)]
        except OSError:
            raise self.error(f"unknown recipe {self.arguments[0]!r}") from None
        except BookError as error:
            raise self.error(str(error)) from None
        finally:
            self.env.temp_data[pages.KEY] = around

    def _part(self, page):
        title = self.options.get("step")
        for part in page.recipe.steps:
            if part.title == title:
                return part
        known = ", ".join(repr(title) for title in page.recipe.step_titles)
        raise BookError(f"{page.name} has no step {title!r}; it has {known}")

    def _lines(self, part):
        texts = [line.text for line in part.code]
        first = self._find(texts, "from", 0)
        last = self._find(texts, "to", len(texts) - 1, first)
        return texts[first:last + 1]

    def _find(self, texts, option, default, start=0):
        words = self.options.get(option)
        if words is None:
            return default
        for number in range(start, len(texts)):
            if words in texts[number]:
                return number
        raise BookError(f"no line of the step contains {words!r} ({option})")

    def _origin(self, page, part):
        line = nodes.paragraph(classes=["recipe-origin"])
        link = addnodes.pending_xref(
            "", nodes.inline("", page.name), refdomain="std", reftype="doc",
            reftarget=f"/recipes/{page.name}", refdoc=self.env.docname,
            refexplicit=True, refwarn=True)
        # A title is shown as it is, with the quotes that it has.
        title = nodes.inline("", said_title(self.env, page, part.title),
                             support_smartquotes=False)
        line += own.sentence("From {recipe}, “{title}”:", recipe=link, title=title)
        self.set_source_info(line)
        return line

    def _output(self, page, part):
        if "output" not in self.options:
            return []
        source, number = self.get_source_info()
        lines = StringList()
        for line in output_lines(page.samples, part.title):
            lines.append(line, source, number - 1)
        box = nodes.Element()
        self.state.nested_parse(lines, 0, box)
        return box.children


def _block(lines, language):
    text = textwrap.dedent("\n".join(lines)).strip("\n")
    return nodes.literal_block(text, text, language=language,
                               classes=["recipe-code"])


def setup(app):
    app.add_directive("recipe-excerpt", RecipeExcerpt)
