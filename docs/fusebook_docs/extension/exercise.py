"""`.. exercise:: name`: a question, and its answer folded underneath.

The answer is what `docs/exercises/RECIPE/NAME.rst` says in one to three
sentences, the exercise's patch, and what the patched recipe prints now. Of a
long output, such as a kernel, the difference is shown. Timings that moved by
more than a quarter are told, too.
"""

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from .. import answers, literate, patches, prose
from ..errors import BookError
from ..words import say
from . import nodes as own
from . import page as pages
from . import quote
from .editions import said_title
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
        box += nodes.paragraph("", say("Exercise {number}", number=number),
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
            raise BookError(f"exercise {name!r} appears twice")
        page.exercises.append(name)
        hunks = patches.read(page.book, page.name, name)
        show = page.book.show(path)
        text = patches.apply(page.recipe.source, hunks, show,
                             f"recipes/{page.path.name}")
        source = literate.parse(text, show, page.recipe.language)
        found = pages.open_samples(self.env, page, source, name,
                                   self.get_source_info()[1])
        self.env.temp_data[f"{pages.KEY}.{name}"] = (found, source)
        fold = own.fold(summary=say("Answer"), classes=["answer"])
        self._words(page, name, fold)
        diff = patches.answer(hunks)
        fold += nodes.literal_block(diff, diff, language="diff")
        if "cpu" in found and "cpu" in page.samples:
            self._outputs(page, name, found, fold)
        return fold

    def _words(self, page, name, fold):
        """The sentences of the answer, with places in their own file."""
        path = page.book.answer_path(page.name, name)
        self.env.note_dependency(str(path))
        lines = StringList()
        for number, line in enumerate(prose.answer(page.book, page.name, name)):
            lines.append(line, str(path), number)
        quote.within(self.env, name, is_answer=True)
        self.state.nested_parse(lines, 0, fold)
        quote.within(self.env, None)

    def _outputs(self, page, name, found, fold):
        answer, recipe = found["cpu"], page.samples["cpu"]
        steps = answers.changed(answer, recipe)
        for step in steps:
            self._step(step, page, name, found, fold)
        timings = answers.timings(answer, recipe, steps)
        if timings:
            fold += _paragraph(say(
                "In the other sections, these timings differ from those on this page by "
                "more than a quarter. Unless the answer mentions it, that may just be "
                "noise:"))
            fold += _list(timings)
        if len(steps) < len(answer.steps):
            still = not timings and answers.has_timings(answer, steps)
            others = answers.has_others(answer, recipe, steps)
            fold += _paragraph(_rest(bool(steps), others, still), "answer-rest")

    def _step(self, step, page, name, found, fold):
        source, number = self.get_source_info()
        what = (f"“{said_title(self.env, page, step.title)}”" if step.title
                else say("The program"))
        diff = answers.difference(found["cpu"], page.samples["cpu"], step.title)
        if diff:
            fold += _paragraph(say("{step} now prints this instead:", step=what))
            block = nodes.literal_block(diff, diff, language="diff")
            block["classes"].append("output-difference")
            fold += block
            return
        fold += _paragraph(say("{step} now prints:", step=what))
        lines = StringList()
        for line in output_lines(found, step.title, name):
            lines.append(line, source, number - 1)
        self.state.nested_parse(lines, 0, fold)


def _rest(some, others, still):
    """What is said of the sections that print the same text."""
    text = (say("Every other section prints the same text.") if some
            else say("Every section prints the same text."))
    if others:
        text = say("{text} Where a table has dotted numbers, they are others.",
                   text=text)
    if still:
        text = say("{text} No timing in it moved by more than a quarter.", text=text)
    return text


def _paragraph(text, kind="answer-step"):
    return nodes.paragraph("", text, classes=[kind])


def _list(rows):
    """Name, recipe and answer of each timing."""
    items = nodes.bullet_list(classes=["answer-timings"])
    for name, before, now in rows:
        item = nodes.paragraph("", "", *own.sentence(
            "{name}: {before}, now {now}", name=nodes.literal("", name),
            before=before, now=now))
        items += nodes.list_item("", item)
    return items


def setup(app):
    app.add_directive("exercise", Exercise)
