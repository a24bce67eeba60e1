"""Values that vary from run to run, as a record or a sample has them.

What is shown of a value follows from it, and a ratio from the values that it
divides: both are worked out here again, so that neither can be edited alone.
"""

import math
from dataclasses import dataclass

from .errors import BookError

_FIELDS = {
    "measured": ("value", "unit", "shown"),
    "ratio": ("value", "unit", "low", "above", "below", "shown"),
    "varying": ("value", "low", "high", "shown"),
    "place": ("value", "shown"),
    "text": ("value", "shown"),
}
_OPTIONAL = {"varying": ("unit",)}
_NUMBERS = ("measured", "ratio", "varying")


@dataclass(frozen=True)
class Value:
    """A value that varies from run to run, or from machine to machine."""

    kind: str
    value: object
    shown: str
    unit: str | None = None
    low: float | None = None
    high: float | None = None
    above: str | None = None  # names of measured values
    below: str | None = None

    def to_json(self):
        names = (*_FIELDS[self.kind], *_OPTIONAL.get(self.kind, ()))
        fields = {name: getattr(self, name) for name in names}
        fields = {name: v for name, v in fields.items() if v is not None}
        return {"kind": self.kind, **fields}

    def problem(self):
        """Why nobody should believe this value, or None."""
        if self.kind in ("place", "text"):
            return None if self.value else "is empty"
        if not math.isfinite(self.value):
            return f"is {self.value}, not a finite number"
        if self.kind != "varying":
            return None if self.value > 0 else f"is {self.value}, not positive"
        if not self.low <= self.value <= self.high:
            return (f"is {self.value}, outside its bounds "
                    f"[{self.low}, {self.high}]")
        return None

    def unfit(self):
        """Why a page should not show this value, which a run may have."""
        if self.kind == "ratio" and self.value < self.low:
            return (f"is {self.value:.4g}, below the lowest possible value "
                    f"{self.low}: the machine was busy; measure again")
        return None

    def text(self):
        """What a recipe prints for this value."""
        if self.kind in ("place", "text") or not math.isfinite(self.value):
            return str(self.value)
        if self.kind != "varying":
            return quantity_text(self.value, self.unit)
        blank = "" if self.unit in (None, "", "x") else " "
        return number_text(self.value) + blank + (self.unit or "")

    def text_in_table(self):
        """What a table prints for it, or None if it stands in none."""
        if self.kind != "varying" or self.unit or not math.isfinite(self.value):
            return None
        return quantity_text(self.value)


def number_text(value):
    """As `number_text` of kernels/support/number_text.h: the shortest exact text."""
    return repr(float(value)).removesuffix(".0")


def quantity_text(value, unit=None):
    """As `quantity_text` of kernels/support/number_text.h: four significant digits, or
    three of a ratio."""
    digits = 3 if unit == "x" else 4
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    text = (f"{value:.{digits - 1}e}" if exponent < -4 else
            f"{value:.{max(0, digits - 1 - exponent)}f}")
    return text + ("x" if unit == "x" else f" {unit}" if unit else "")


def read(name, raw, path):
    """Checks the form of a value; `path` is for messages."""
    where = f"value {name!r}"
    if not isinstance(raw, dict) or raw.get("kind") not in _FIELDS:
        raise BookError(f"{where} needs a kind of {', '.join(_FIELDS)}", path)
    kind = raw["kind"]
    for key in _FIELDS[kind]:
        if key not in raw:
            raise BookError(f"{where} is {kind} but lacks {key!r}", path)
    for key in ("value", "low", "high", "unit", "shown", "above", "below"):
        if key not in raw or raw[key] is None and key == "unit":
            continue
        number = key in ("low", "high") or key == "value" and kind in _NUMBERS
        wanted = (int, float) if number else (str,)
        if not isinstance(raw[key], wanted) or isinstance(raw[key], bool):
            raise BookError(f"{where}: {key!r} is {raw[key]!r}, not a "
                            f"{'number' if number else 'text'}", path)
    keys = (*_FIELDS[kind], *_OPTIONAL.get(kind, ()))
    return Value(kind, **{key: raw[key] for key in keys if key in raw})


def wrongly_shown(values):
    """(name, what is wrong) of values that show something else."""
    for name, value in values.items():
        shown, text = value.shown.strip(), value.text().strip()
        if shown not in (text, value.text_in_table()):
            yield name, f"shows {shown!r}, but {value.value} prints as {text!r}"


def check_ratios(values, path):
    """That every ratio is what its parts give."""
    for name, value in values.items():
        if value.kind == "measured" and value.unit == "x":
            raise BookError(f"value {name!r} is a ratio: print it with "
                            "ratio(), which names what it divides", path)
        if value.kind != "ratio":
            continue
        parts = [values.get(part) for part in (value.above, value.below)]
        if not all(part and part.kind == "measured" for part in parts):
            raise BookError(f"value {name!r} is the ratio of {value.above!r} and "
                            f"{value.below!r}, which are not both measured",
                            path)
        wanted = parts[0].value / parts[1].value if parts[1].value else math.nan
        if parts[0].unit != parts[1].unit or not math.isclose(
                value.value, wanted, rel_tol=1e-12):
            raise BookError(
                f"value {name!r} is {value.value}, but {value.above!r} / "
                f"{value.below!r} is {wanted}", path)
