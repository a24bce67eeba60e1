"""How long steps take that move fewer bytes.

    .. step-bytes::

has a row for each way to store weights and states, and for each optimizer of another
package: for every case the bytes that a step moves of an element, the time, and that
time as a multiple of the one here with float32. Under the table stand the machine and
the command.
"""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from .. import byte_measurements, measurements
from ..errors import BookError
from ..values import quantity_text
from ..words import later, say
from . import nodes as own
from . import page as pages
from .tables import table

_NAMES = {
    "here, float32": later("here, float32"),
    "here, 8-bit states": later("here, 8-bit states"),
    "here, split, 8-bit states": later("here, split masters, 8-bit states"),
    "here, stochastic, 8-bit states":
        later("here, stochastic rounding, 8-bit states"),
}


class StepBytes(SphinxDirective):
    def run(self):
        book = pages.book_of(self.env)
        self.env.note_dependency(
            str(measurements.path(book, byte_measurements.NAME)))
        try:
            found = byte_measurements.load(book)
        except BookError as error:
            raise self.error(str(error)) from None
        head = (say("step"), *(case.replace(" x ", " × ") for case in found.cases()))
        rows = [(say(_NAMES.get(variant, variant)),
                 *(_cell(found, case, variant) for case in found.cases()))
                for variant in found.variants()]
        return [table(head, rows), nodes.paragraph("", "", *own.sentence(
            "{where}. {command} measures it.", where=found.provenance(),
            command=nodes.literal(found.command, found.command)))]


def _cell(found, case, variant):
    step = found.steps[case, variant]
    in_us = step.us < 1000
    return say("{bytes} bytes, {time}, {ratio}", bytes=f"{step.bytes:.2f}",
               time=quantity_text(step.us if in_us else step.us / 1e3,
                                  "us" if in_us else "ms"),
               ratio=quantity_text(found.of_plain(case, variant), "x"))


def setup(app):
    app.add_directive("step-bytes", StepBytes)
