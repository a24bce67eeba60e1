"""How long steps take that move fewer bytes, here and in other packages, measured and
committed: `docs/measurements/bytes.json`, as tests/consumers/fewer_bytes.py wrote it,
the command, and a digest over both.
"""

import math
from dataclasses import dataclass

from .errors import BookError
from .words import many

NAME = "bytes"
HOW = "./fusebook capture peers"
_FACTS = {"device": str, "compiler": str, "system": str, "date": str, "threads": int,
          "processes": int}
PLAIN = "here, float32"  # what the others are compared with


@dataclass(frozen=True)
class Step:
    """One figure: the median over the processes."""

    bytes: float  # of an element
    us: float


@dataclass(frozen=True)
class ByteMeasurement:
    """All of the file."""

    command: str
    facts: dict
    steps: dict  # (case, variant) -> Step

    def cases(self):
        return list(dict.fromkeys(case for case, _ in self.steps))

    def variants(self):
        return list(dict.fromkeys(variant for _, variant in self.steps))

    def of_plain(self, case, variant):
        """How many times as long as PLAIN one takes."""
        return self.steps[case, variant].us / self.steps[case, PLAIN].us

    def provenance(self):
        """Where and when, in one line."""
        facts = self.facts
        return " · ".join([
            many("{device}, {count} thread", "{device}, {count} threads",
                 facts["threads"], device=facts["device"]),
            facts["compiler"], facts["date"],
            many("medians over {count} process", "medians over {count} processes",
                 facts["processes"])])


def read(result, command, show):
    """The measurement in what the program wrote."""
    if not isinstance(result, dict):
        raise BookError("'result' must be what fewer_bytes.py wrote", show)
    for name, kind in _FACTS.items():
        if not isinstance(result.get(name), kind) or not result[name]:
            raise BookError(f"'result' lacks {name!r}", show)
    steps = {}
    for row in result.get("rows") or ():
        _check(row, show)
        steps[row["case"], row["variant"]] = Step(row["bytes"], row["us"])
    found = ByteMeasurement(command, {name: result[name] for name in _FACTS}, steps)
    wanted = {(case, variant) for case in found.cases()
              for variant in (PLAIN, *found.variants())}
    if not steps or wanted - steps.keys():
        raise BookError(f"'rows' must have {PLAIN!r} and every other variant for "
                        "every case", show)
    return found


def _check(row, show):
    if not isinstance(row, dict) or not all(isinstance(row.get(name), str)
                                            for name in ("case", "variant")):
        raise BookError(f"{row!r} is not one of 'rows'", show)
    for name in ("bytes", "us"):
        value = row.get(name)
        if not (isinstance(value, (int, float)) and math.isfinite(value) and value > 0):
            raise BookError(f"{name!r} of {row['variant']}, {row['case']} is {value!r}",
                            show)


def load(book):
    """Reads it; a file that was edited since it was captured is refused."""
    from . import measurements  # which stores all of them
    command, result, show = measurements.kept(book, NAME)
    return read(result, command, show)
