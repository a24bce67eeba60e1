"""What `./fusebook bench --ranks` measured and was committed:
`docs/measurements/ranks.json`, with what its model says of other numbers of ranks, as
the benchmark wrote it, the command, and a digest over both.

Pages quote it by `:value:` with ` @ docs/measurements/ranks.json`, and draw it.
"""

import math
from dataclasses import dataclass

from .errors import BookError
from .values import Value, quantity_text
from .words import many

NAME = "ranks"
HOW = "./fusebook capture ranks"
_FACTS = {"device": str, "compiler": str, "system": str, "date": str, "mpi": str,
          "threads": int, "cores": int, "ranks": int, "fitted_at": int}
_LISTS = {"calls": ("ranks", "us"),
          "exchanges": ("ranks", "pattern", "bytes", "us", "model_us"),
          "steps": ("ranks", "mode", "us", "limit_us", "owned", "gradients",
                    "bytes_per_element", "sent"),
          "plan": ("case", "ranks", "mode", "owned", "gradients", "transport_us",
                   "own_us", "sent")}
_SENT = ("gradients", "parameters", "sums", "agreement", "calls", "exchanges",
         "messages")
_BYTES = ("gradients", "parameters", "sums", "agreement")
MODES = ("exact", "fast")


@dataclass(frozen=True)
class RankMeasurement:
    """All of the file."""

    command: str
    facts: dict
    values: dict  # name -> Value
    calls: list
    exchanges: list
    steps: list
    plan: list

    def provenance(self):
        """Where and when, in one line."""
        facts = self.facts
        return " · ".join([
            many("{device}, {count} core", "{device}, {count} cores",
                 facts["cores"], device=facts["device"]),
            facts["mpi"],
            many("{count} process of one machine",
                 "{count} processes of one machine", facts["ranks"]),
            facts["compiler"], facts["date"]])

    def cases(self):
        return list(dict.fromkeys(row["case"] for row in self.plan))

    def planned(self, case, mode):
        """The rows of a case and a mode, by the number of ranks."""
        found = [row for row in self.plan
                 if (row["case"], row["mode"]) == (case, mode)]
        if not found:
            raise BookError(f"nothing is planned for {case!r}, {mode}; there are: "
                            + ", ".join(self.cases()))
        return sorted(found, key=lambda row: row["ranks"])

    def curves(self, kind):
        """{name: numbers} of what the directive `kind` draws."""
        return {"rank-exchanges": self._of_exchanges, "rank-steps": self._of_steps}[
            kind]()

    def _of_exchanges(self):
        most, columns = max(row["ranks"] for row in self.exchanges), {}
        for row in self.exchanges:
            if row["ranks"] == self.facts["fitted_at"]:
                names = {row["pattern"]: "us"}
                if row["pattern"] == "gradients":
                    names |= {"model": "model_us", "bytes": "bytes"}
            elif row["ranks"] == most:
                names = {f"{row['pattern']} of most": "us"}
            else:
                continue
            for name, field in names.items():
                columns.setdefault(name, []).append(row[field])
        return columns

    def _of_steps(self):
        columns = {}
        for mode in MODES:
            rows = self.planned(self.cases()[0], mode)
            columns |= {"ranks": [row["ranks"] for row in rows],
                        "step alone": [row["own_us"] for row in rows],
                        f"{mode} model": [row["transport_us"] + row["own_us"]
                                          for row in rows]}
            expected = dict(zip(columns["ranks"], columns[f"{mode} model"], strict=True))
            steps = [row for row in self.steps if row["mode"] == mode]
            columns[f"{mode} measured"] = [row["us"] for row in steps]
            columns[f"{mode} expected"] = [expected[row["ranks"]] for row in steps]
        return columns


def bytes_of(sent):
    return sum(sent[name] for name in _BYTES)


def read(result, command, show):
    """The measurement in what `bench --ranks --json` wrote."""
    if not isinstance(result, dict):
        raise BookError("'result' must be what bench --ranks --json wrote", show)
    for name, kind in _FACTS.items():
        if not isinstance(result.get(name), kind) or not result[name]:
            raise BookError(f"'result' lacks {name!r}", show)
    for name, fields in _LISTS.items():
        rows = result.get(name)
        if not isinstance(rows, list) or not rows:
            raise BookError(f"'result' lacks {name!r}", show)
        for row in rows:
            _check(row, fields, name, show)
    facts = {name: result[name] for name in _FACTS}
    lists = {name: result[name] for name in _LISTS}
    return RankMeasurement(command, facts, _values(result, show), **lists)


def _check(row, fields, name, show):
    if not isinstance(row, dict) or any(field not in row for field in fields):
        raise BookError(f"{row!r} is not one of {name!r}", show)
    for field in fields:
        value = row[field]
        if field.endswith("us") and not (isinstance(value, (int, float))
                                         and math.isfinite(value) and value >= 0):
            raise BookError(f"{field} of one of {name!r} is {value!r}", show)
    if "sent" in fields and any(not isinstance(row["sent"].get(each), int)
                                for each in _SENT):
        raise BookError(f"one of {name!r} does not say what was sent", show)


def _values(result, show):
    """What pages may quote, by name."""
    found = {}
    raw = result.get("values")
    if not isinstance(raw, dict):
        raise BookError("'result' lacks 'values'", show)
    for name, value in raw.items():
        found[name] = _measured(value["value"], value["unit"])
    for name in ("cores", "ranks", "fitted_at", "threads"):
        found[name] = Value("text", str(result[name]), str(result[name]))
    for row in result["steps"]:
        stem = f"{row['mode']}_{row['ranks']}"
        found[f"{stem}_ms"] = _measured(row["us"] / 1e3, "ms")
        found[f"{stem}_limit_ms"] = _measured(row["limit_us"] / 1e3, "ms")
    last = result["plan"][-1]["case"]
    for row in result["plan"]:
        stem = f"{'large_' if row['case'] == last else ''}{row['mode']}_{row['ranks']}"
        found[f"{stem}_transport_ms"] = _measured(row["transport_us"] / 1e3, "ms")
        found[f"{stem}_own_ms"] = _measured(row["own_us"] / 1e3, "ms")
        found[f"{stem}_sent_mb"] = _measured(bytes_of(row["sent"]) / 1e6, "MB")
    return found


def _measured(value, unit):
    return Value("measured", value, quantity_text(value, unit), unit)


def load(book):
    """Reads it; a file that was edited since it was captured is refused."""
    from . import measurements  # which stores both
    command, result, show = measurements.kept(book, NAME)
    return read(result, command, show)
