"""Where trainings with every storage of weights and states ended, and was committed:
`docs/measurements/storages.json`, as the program wrote it, the command, and a digest
over both.

A storage holds for an optimizer if the mean of its final losses is among those of
float32 with the same seeds.
"""

import math
from dataclasses import dataclass

from .errors import BookError
from .words import say

NAME = "storages"
HOW = "./fusebook capture storages"
_FACTS = {"device": str, "compiler": str, "system": str, "date": str, "text": str,
          "letters": int, "parameters": int, "steps": int, "seeds": int}
_PLAIN = "float32"


@dataclass(frozen=True)
class Ended:
    """Trainings of one optimizer with one storage."""

    mean: float
    among: int  # of the seeds, how many ended among those of float32
    holds: bool


@dataclass(frozen=True)
class StorageMeasurement:
    """All of the file."""

    command: str
    facts: dict
    losses: dict  # (optimizer, storage) -> final losses, seed by seed

    def optimizers(self):
        return list(dict.fromkeys(name for name, _ in self.losses))

    def storages(self):
        """Without float32."""
        found = dict.fromkeys(name for _, name in self.losses)
        return [name for name in found if name != _PLAIN]

    def spread(self, optimizer):
        """(least, greatest) final loss of float32."""
        losses = self.losses[optimizer, _PLAIN]
        return min(losses), max(losses)

    def ended(self, optimizer, storage):
        low, high = self.spread(optimizer)
        losses = self.losses[optimizer, storage]
        mean = sum(losses) / len(losses)
        return Ended(mean, sum(low <= loss <= high for loss in losses),
                     low <= mean <= high)

    def provenance(self):
        """What, where and when, in one line."""
        facts = self.facts
        return " · ".join([
            say("{steps} steps, {seeds} seeds", steps=f"{facts['steps']:,}",
                seeds=facts["seeds"]),
            say("{count} parameters", count=f"{facts['parameters']:,}"),
            say("{count} letters of {text}", count=f"{facts['letters']:,}",
                text=facts["text"]),
            facts["device"], facts["compiler"], facts["date"]])


def read(result, command, show):
    """The measurement in what the program wrote."""
    if not isinstance(result, dict):
        raise BookError("'result' must be what convergence --json wrote", show)
    for name, kind in _FACTS.items():
        if not isinstance(result.get(name), kind) or not result[name]:
            raise BookError(f"'result' lacks {name!r}", show)
    facts, losses = {name: result[name] for name in _FACTS}, {}
    for row in result.get("rows") or ():
        _check(row, facts["seeds"], show)
        losses[row["optimizer"], row["storage"]] = row["losses"]
    found = StorageMeasurement(command, facts, losses)
    wanted = [_PLAIN, *found.storages()]
    if len(wanted) < 2 or any((optimizer, storage) not in losses
                              for optimizer in found.optimizers()
                              for storage in wanted):
        raise BookError("'rows' must have every optimizer with float32 and every "
                        "other storage", show)
    return found


def _check(row, seeds, show):
    losses = row.get("losses") if isinstance(row, dict) else None
    if (not isinstance(losses, list) or len(losses) != seeds
            or not all(isinstance(row.get(name), str)
                       for name in ("optimizer", "storage"))):
        raise BookError(f"{row!r} is not one of 'rows' with {seeds} losses", show)
    for loss in losses:
        if not (isinstance(loss, (int, float)) and math.isfinite(loss) and loss > 0):
            raise BookError(f"a loss of {row['optimizer']}, {row['storage']} is "
                            f"{loss!r}", show)


def load(book):
    """Reads it; a file that was edited since it was captured is refused."""
    from . import measurements  # which stores all of them
    command, result, show = measurements.kept(book, NAME)
    return read(result, command, show)
