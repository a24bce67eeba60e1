"""What was measured on ranks, and what its model says of more of them.

    .. rank-exchanges::
       :alt: What the picture shows, in words.

draws how long exchanges took over their bytes, as points, and the model as a line;

    .. rank-steps::
       :alt: ...

a step over the number of ranks, measured and modelled. `.. rank-sent::` is the table
of what was counted, and `.. rank-plan:: CASE` that of what the model says of a case.
Under each stand the machine and the command.
"""

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from .. import measurements, rank_measurements
from ..errors import BookError
from ..rank_measurements import MODES, bytes_of
from ..values import quantity_text
from ..words import many, say
from . import nodes as own
from . import page as pages
from . import plot
from .drawing import drawing
from .editions import said
from .tables import table

_FLOAT = 4  # bytes of a number
_LEAST = 8  # ranks of the table of plans


class _OfRanks(SphinxDirective):
    option_spec = {"alt": directives.unchanged_required}

    def run(self):
        book = pages.book_of(self.env)
        self.env.note_dependency(
            str(measurements.path(book, rank_measurements.NAME)))
        try:
            found = rank_measurements.load(book)
            return self.shown(found)
        except BookError as error:
            raise self.error(str(error)) from None

    def alt(self):
        if "alt" not in self.options:
            raise BookError(f"{self.name} needs :alt:, the picture in words")
        return said(self.env, self.options["alt"], *self.get_source_info())

    def caption(self, found):
        return nodes.paragraph("", "", *own.sentence(
            "{where}. {command} measures it.", where=found.provenance(),
            command=nodes.literal(found.command, found.command)))

    def drawn(self, found, picture, head, rows):
        figure = drawing(kind="recipe-plot", drawn=picture)
        figure += self.caption(found)
        fold = own.fold(summary=say("The same numbers as a table"), classes=[])
        fold += table(head, rows)
        return [figure, fold]


class RankExchanges(_OfRanks):
    def shown(self, found):
        at, rows = found.facts["fitted_at"], found.exchanges
        marked = [(self._label(pattern, ranks, found), points)
                  for pattern, ranks, points in _series(rows)]
        line = [(row["bytes"], row["model_us"]) for row in rows
                if row["ranks"] == at and row["pattern"] == rows[0]["pattern"]]
        picture = plot.chart(say("bytes that a rank sends"), say("us"),
                             [(many("model, {count} rank", "model, {count} ranks",
                                    at), line)], marked, self.alt())
        numbers = [(self._label(row["pattern"], row["ranks"], found),
                    f"{row['bytes']:,}", quantity_text(row["us"], "us"),
                    quantity_text(row["model_us"], "us")) for row in rows]
        return self.drawn(found, picture, (say("what"), say("bytes"),
                                           say("measured"), say("model")), numbers)

    def _label(self, pattern, ranks, found):
        name = {"gradients": say("gradients"),
                "parameters": say("parameters")}[pattern]
        if ranks > found.facts["cores"]:
            return say("{name}, {count} ranks, more than cores", name=name,
                       count=ranks)
        return say("{name}, {count} ranks", name=name, count=ranks)


def _series(rows):
    names = dict.fromkeys((row["pattern"], row["ranks"]) for row in rows)
    for pattern, ranks in names:
        yield pattern, ranks, [(row["bytes"], row["us"]) for row in rows
                               if (row["pattern"], row["ranks"]) == (pattern, ranks)]


def _mode(mode):
    return {"exact": say("exact"), "fast": say("fast")}[mode]


class RankSteps(_OfRanks):
    def shown(self, found):
        case = found.cases()[0]
        lines, marked = [], []
        for mode in MODES:
            rows = found.planned(case, mode)
            lines.append((say("model, {mode}", mode=_mode(mode)),
                          [(row["ranks"], _ms(row["transport_us"] + row["own_us"]))
                           for row in rows]))
            marked.append((say("measured, {mode}", mode=_mode(mode)),
                           [(row["ranks"], _ms(row["us"])) for row in found.steps
                            if row["mode"] == mode]))
        lines.append((say("the step alone, {mode}", mode=_mode("fast")),
                      [(row["ranks"], _ms(row["own_us"]))
                       for row in found.planned(case, "fast")]))
        picture = plot.chart(say("ranks"), say("ms"), lines, marked, self.alt())
        names = [say("ranks"), *(label for label, _ in [*lines, *marked])]
        known = [dict(points) for _, points in [*lines, *marked]]
        places = sorted({x for points in known for x in points})
        rows = [(str(x), *(quantity_text(points[x], "ms") if x in points else ""
                           for points in known)) for x in places]
        return self.drawn(found, picture, names, rows)


def _ms(us):
    return us / 1e3


def _mb(count):
    return quantity_text(count / 1e6, "MB") if count else "0"


class RankSent(_OfRanks):
    """What a step sends, as it was counted on rank 0."""

    def shown(self, found):
        head = (say("ranks"), say("mode"), say("gradients"), say("parameters"),
                say("agreement"), say("calls"), say("exchanges"), say("messages"),
                say("step / limit"))
        rows = [(str(row["ranks"]), _mode(row["mode"]),
                 _mb(row["sent"]["gradients"]), _mb(row["sent"]["parameters"]),
                 say("{count} bytes", count=f"{row['sent']['agreement']:,}"),
                 *(str(row["sent"][name])
                   for name in ("calls", "exchanges", "messages")),
                 quantity_text(row["us"] / row["limit_us"], "x"))
                for row in found.steps]
        return [table(head, rows), self.caption(found)]


class RankPlan(_OfRanks):
    """What the model says of a case, from eight ranks on."""

    required_arguments = 1
    final_argument_whitespace = True

    def shown(self, found):
        case = self.arguments[0]
        exact, fast = (found.planned(case, mode) for mode in MODES)
        elements = exact[0]["owned"]  # of the only rank
        head = (say("ranks"), say("sent, exact"), say("sent, fast"),
                say("messages, fast"), say("transport, exact"),
                say("transport, fast"), say("step alone, fast"),
                say("states of a rank"), say("parameters and gradients of a rank"))
        rows = [(str(a["ranks"]), _mb(bytes_of(a["sent"])),
                 _mb(bytes_of(b["sent"])), f"{b['sent']['messages']:,}",
                 quantity_text(_ms(a["transport_us"]), "ms"),
                 quantity_text(_ms(b["transport_us"]), "ms"),
                 quantity_text(_ms(b["own_us"]), "ms"),
                 _mb(2 * _FLOAT * a["owned"]), _mb(2 * _FLOAT * elements))
                for a, b in zip(exact, fast, strict=True) if a["ranks"] >= _LEAST]
        return [table(head, rows), self.caption(found)]


def setup(app):
    app.add_directive("rank-exchanges", RankExchanges)
    app.add_directive("rank-steps", RankSteps)
    app.add_directive("rank-sent", RankSent)
    app.add_directive("rank-plan", RankPlan)
