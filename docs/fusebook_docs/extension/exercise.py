"""`.. exercise:: name`: a question, and its answer folded underneath.

The answer is the exercise's patch and what the patched recipe printed.
"""

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from .. import literate, patches
from ..errors import BookError
from . import nodes as own
from . import page as pages
from . import quote
from .recipe import output_lines


class Exercise(SphinxDirective):
    """The content is the question."""

    required_arguments = 1
    has_content = True

    def run(self):
        try:
            page = pages.current(self.env)
            self.assert_has_content()
            answer = self._answer(page, self.arguments[0])
        except BookError as error:
            raise self.error(str(error)) from None
        box = nodes.container(classes=["exercise"])
        self.set_source_info(box)
        number = len(page.exercises)
        box += nodes.paragraph("", f"Exercise {number}",
                               classes=["exercise-label"])
        quote.within(self.env, self.arguments[0])
        self.state.nested_parse(self.content, self.content_offset, box)
        quote.within(self.env, None)
        box += answer
        return [box]

    def _answer(self, page, name):
        path = page.book.patch_path(page.name, name)
        self.env.note_dependency(str(path))
        if name in page.exercises:
            raise BookError(f"a second exercise {name!r}")
        page.exercises.append(name)
        hunks = patches.read(page.book, page.name, name)
        show = page.book.show(path)
        text = patches.apply(page.recipe.source, hunks, show,
                             f"recipes/{page.name}.cpp")
        source = literate.parse(text, show)
        found = pages.open_samples(self.env, page, source, name,
                                   self.get_source_info()[1])
        self.env.temp_data[f"{pages.KEY}.{name}"] = (found, source)
        fold = own.fold(summary="Answer", classes=["answer"])
        diff = patches.answer(hunks)
        fold += nodes.literal_block(diff, diff, language="diff")
        self._outputs(page, name, found, fold)
        return fold

    def _outputs(self, page, name, found, fold):
        if "cpu" not in found:
            return
        steps = _changed(found["cpu"], page.samples.get("cpu"))
        source, line_number = self.get_source_info()
        for step in steps:
            text = f"“{step.title}” now prints:" if step.title else "Now:"
            fold += nodes.paragraph("", text, classes=["answer-step"])
            lines = StringList()
            for line in output_lines(found, step.title, name,
                                     page.samples):
                lines.append(line, source, line_number - 1)
            self.state.nested_parse(lines, 0, fold)
        if len(steps) < len(found["cpu"].steps):
            text = ("Every other step prints what it printed before."
                    if steps else "It prints what it printed before.")
            fold += nodes.paragraph("", text, classes=["answer-rest"])


def _changed(answer, recipe):
    """Steps that print something else than in the recipe itself."""
    if recipe is None:
        return [step for step in answer.steps if step.text]
    return [step for step in answer.steps
            if step.text and step.text != recipe.text_of(step.title)]


def setup(app):
    app.add_directive("exercise", Exercise)
