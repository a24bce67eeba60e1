"""Where trainings ended, by how weights and states are stored.

    .. final-losses::

has a row for each optimizer: the final losses of float32, from the least to the
greatest of its seeds, and of each other storage the mean, and how many of its seeds
ended among those of float32. A mean that is not among them says so. Under the table
stand what was trained, the machine and the command.
"""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from .. import measurements, storage_measurements
from ..errors import BookError
from ..words import later, say
from . import nodes as own
from . import page as pages
from .tables import table


_NAMES = {
    "8-bit states": later("8-bit states"),
    "bfloat16, masters": later("bfloat16, masters"),
    "bfloat16, split": later("bfloat16, split masters"),
    "split, 8-bit states": later("split masters, 8-bit states"),
    "stochastic, 8-bit states": later("stochastic rounding, 8-bit states"),
}


def _number(loss):
    return f"{loss:.4f}"


class FinalLosses(SphinxDirective):
    def run(self):
        book = pages.book_of(self.env)
        self.env.note_dependency(
            str(measurements.path(book, storage_measurements.NAME)))
        try:
            found = storage_measurements.load(book)
        except BookError as error:
            raise self.error(str(error)) from None
        head = (say("optimizer"), "float32",
                *(say(_NAMES.get(name, name)) for name in found.storages()))
        rows = [self._row(found, optimizer) for optimizer in found.optimizers()]
        return [table(head, rows), nodes.paragraph("", "", *own.sentence(
            "{where}. {command} measures it.", where=found.provenance(),
            command=nodes.literal(found.command, found.command)))]

    def _row(self, found, optimizer):
        low, high = found.spread(optimizer)
        return (optimizer,
                say("{low} to {high}", low=_number(low), high=_number(high)),
                *(self._cell(found, optimizer, storage)
                  for storage in found.storages()))

    def _cell(self, found, optimizer, storage):
        ended = found.ended(optimizer, storage)
        among = say("{among} of {seeds}", among=ended.among,
                    seeds=found.facts["seeds"])
        if ended.holds:
            return say("{mean}, {among}", mean=_number(ended.mean), among=among)
        return say("{mean}, outside, {among}", mean=_number(ended.mean), among=among)


def setup(app):
    app.add_directive("final-losses", FinalLosses)
