"""What the benchmark measured, drawn.

    .. measured-bars:: step
       :case: 1000 x 64

       op by op = tensor by tensor
       compiled

draws variants of one case, each line "label = variant" or the variant alone, as
bars and as a table; with `:ratio:` how many times as long they take as what they
were divided by. `:cases:` in the place of `:case:` has cases in the place of
variants, "label = case", all of the variant that it names. `:from: peers` takes the
measurement that has PyTorch beside some cases.

    .. measured-curves:: compile
       :alt: What the picture shows, in words.

       cold
       disk

draws variants of the cases "N tensors" over N. Under every picture stand the
machine and the command.
"""

import re

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from .. import measurements, thumbnails
from ..errors import BookError
from ..values import quantity_text
from ..words import say
from . import nodes as own
from . import page as pages
from . import plot
from .drawing import drawing
from .editions import said
from .tables import table

_WIDTH = 360
_LONGEST = 8  # label of a curve
_TENSORS = re.compile(r"(\d+) tensors")


class _Measured(SphinxDirective):
    required_arguments = 1
    has_content = True

    def run(self):
        self.assert_has_content()
        book = pages.book_of(self.env)
        name = self.options.get("from", "cpu")
        self.env.note_dependency(str(measurements.path(book, name)))
        if self.arguments[0] not in measurements.KINDS:
            raise self.error("measured: there is no kind of measurement "
                             f"{self.arguments[0]!r}")
        try:
            found = measurements.load(book, name)
            figure, numbers = self.drawn(found)
        except BookError as error:
            raise self.error(str(error)) from None
        figure += nodes.paragraph("", "", *own.sentence(
            "{where}. {command} measures it.", where=found.provenance(),
            command=nodes.literal(found.command, found.command)))
        fold = own.fold(summary=say("The same numbers as a table"), classes=[])
        fold += numbers
        return [figure, fold]

    def lines(self):
        """(label, name) of every line of the content."""
        for line in filter(str.strip, self.content):
            label, _, name = map(str.strip, line.partition(" = "))
            yield (said(self.env, label, *self.get_source_info()),
                   name or label)


class MeasuredBars(_Measured):
    def _compared(self, row):
        if row.ratio is None:
            return ""
        what = said(self.env, row.divided_by or "", measurements.path(
            pages.book_of(self.env), self.options.get("from", "cpu")))
        return say("{ratio} {what}", ratio=quantity_text(row.ratio, "x"), what=what)

    option_spec = {"case": directives.unchanged_required,
                   "cases": directives.unchanged_required,
                   "from": directives.unchanged_required,
                   "ratio": directives.flag}

    def drawn(self, found):
        bars, kind, rows = [], self.arguments[0], []
        for label, name in self.lines():
            row = (found.row(kind, name, self.options["cases"])
                   if "cases" in self.options
                   else found.labelled(kind, self.options.get("case", ""),
                                       name, label))
            if "ratio" in self.options and row.ratio is None:
                raise BookError(f"{label} is divided by nothing")
            value, unit = ((row.ratio, "x") if "ratio" in self.options
                           else (row.us, "us"))
            bars.append(thumbnails.Bar(label, quantity_text(value, unit), value,
                                       None))
            rows.append((label, quantity_text(row.us, "us"), self._compared(row)))
        return (drawing(kind="value-bars", drawn=thumbnails.drawn(bars, _WIDTH)),
                table((say("what"), say("time"), say("compared")), rows))


class MeasuredCurves(_Measured):
    option_spec = {"alt": directives.unchanged_required}

    def drawn(self, found):
        kind = self.arguments[0]
        if "alt" not in self.options:
            raise BookError("measured-curves needs :alt:, the picture in words")
        counts = sorted({int(match[1]) for row in found.rows[kind]
                         if (match := _TENSORS.fullmatch(row.of_case))})
        if len(counts) < 2:
            raise BookError(f"{kind} was measured for fewer numbers of tensors "
                            "than a curve needs")
        wanted = list(self.lines())
        for label, _ in wanted:
            if len(label) > _LONGEST:
                raise BookError(f"{label!r} does not fit beside its curve: at most "
                                f"{_LONGEST} characters")
        times = [[found.labelled(kind, f"{count} tensors", *names).us
                  for names in ((variant, label) for label, variant in wanted)]
                 for count in counts]
        names = [say("tensors"), *(f"{label} us" for label, _ in wanted)]
        picture = plot.draw(names, [[count, *row] for count, row
                                    in zip(counts, times, strict=True)],
                            said(self.env, self.options["alt"],
                                 *self.get_source_info()), evenly=False)
        rows = [(f"{count:,}", *(quantity_text(us, "us") for us in row))
                for count, row in zip(counts, times, strict=True)]
        return (drawing(kind="recipe-plot", drawn=picture),
                table((say("tensors"), *(label for label, _ in wanted)), rows))


def setup(app):
    app.add_directive("measured-bars", MeasuredBars)
    app.add_directive("measured-curves", MeasuredCurves)
