"""`.. op-table::` lists the operations of kernels/ops/ops.def.

A row has a place of its own, `:ref:` to `op-lerp`. The setting
`fusebook_more_ops` names files with more rows, from the root of the book: those
that a build gets as FUSEBOOK_MORE_OPS.

    python -m sphinx -D fusebook_more_ops=tests/new_op/more_ops.def ...
"""

import re

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from .. import ops
from ..errors import BookError
from . import page as pages

_COLUMNS = (("operation", 14), ("value", 38), ("error", 10), ("operands", 8),
            ("calls", 30))
_LONG = 32  # characters of a formula that fit beside each other


class OpTable(SphinxDirective):
    def run(self):
        book = pages.book_of(self.env)
        more = self.config.fusebook_more_ops
        for path in (book.operations, book.elements,
                     *(book.root / name for name in more)):
            self.env.note_dependency(str(path))
        try:
            rows = ops.read(book, more)
        except BookError as error:
            raise self.error(str(error)) from None
        return [self._table(book, rows)]

    def _table(self, book, rows):
        table = nodes.table(classes=["op-table"])
        group = nodes.tgroup(cols=len(_COLUMNS))
        group += [nodes.colspec(colwidth=width) for _, width in _COLUMNS]
        heads = [self._prose(title) for title, _ in _COLUMNS]
        own = book.show(book.operations)
        body = nodes.tbody()
        body += [self._row(op, op.path != own) for op in rows]
        group += [nodes.thead("", _row_of(heads)), body]
        table += group
        return table

    def _row(self, op, is_added):
        label = f"op-{op.name}"
        row = _row_of(
            nodes.paragraph("", "", nodes.reference(
                "", "", nodes.literal("", op.name), refid=label)),
            self._value(op, is_added),
            self._prose(f"{op.ulp:g} ulp" if op.ulp else "exact"),
            self._prose(str(op.arity)), _calls(op))
        row["ids"].append(label)
        self.env.get_domain("std").note_hyperlink_target(
            label, self.env.docname, label, op.name)
        return row

    def _value(self, op, is_added):
        """The formula, and under it what a reader has to know besides."""
        notes = []
        if op.compares:
            notes.append("1 where that holds, 0 elsewhere.")
        if op.domain == "positive":
            notes.append("The bound is for a ≥ 0.")
        if op.moves:
            notes.append("In place, the values come from a second operand.")
        if is_added:
            notes.append(f"Only in a build with {op.path}.")
        return [_formula(op.value),
                *(self._prose(note, "op-note") for note in notes)]

    def _prose(self, text, *classes):
        paragraph = nodes.paragraph(text, text, classes=list(classes))
        self.set_source_info(paragraph)
        return paragraph


def _formula(text):
    """A long one may go on in a new line before each `?` and `:`."""
    parts = re.split(r" (?=[?:] )", text) if len(text) > _LONG else [text]
    line = nodes.paragraph()
    for part in parts:
        if line.children:
            line += nodes.Text(" ")
        classes = ["op-part"] if len(parts) > 1 else []
        line += nodes.literal("", part, classes=classes)
    return line


def _calls(op):
    lines = [nodes.paragraph("", "", nodes.literal("", call))
             for call in op.calls]
    if op.with_operator:
        lines[-1] += [nodes.Text(" or "), nodes.literal("", op.with_operator)]
    return lines


def _row_of(*cells):
    cells = cells[0] if len(cells) == 1 else cells
    row = nodes.row()
    for cell in cells:
        row += nodes.entry("", *(cell if isinstance(cell, list) else [cell]))
    return row


def setup(app):
    app.add_config_value("fusebook_more_ops", [], "env", list)
    app.add_directive("op-table", OpTable)
