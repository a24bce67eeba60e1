"""What a recipe of the book needs around its own code, as the recipes in C++ have it:
a command line, headings, output that a page can be made from, and exit codes.

    def body():
        step("Model")
        print("layers: ", 4)

    if __name__ == "__main__":
        run_recipe(body)

Optimizers do not need it.
"""

from __future__ import annotations

import argparse
import builtins
import datetime
import json
import math
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _core

__all__ = ["Within", "exact", "interleaved", "measured", "print", "print_block",
           "print_columns", "print_row", "ratio", "run_recipe", "step", "varying",
           "varying_text"]

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_RESERVED = ("recipe", "device", "threads", "options")
_MOST_THREADS = 1024


class UsageError(_core.Error):
    """A command line that cannot be used."""


@dataclass(frozen=True)
class Named:
    """A value as it is printed; the record has its name in that place."""

    name: str
    shown: str


@dataclass(frozen=True)
class Within:
    """A number of a table that may differ between runs, from `low` to `high`."""

    value: float
    low: float
    high: float


class _Run:
    """What the recipe that is running has put out so far."""

    def __init__(self) -> None:
        self.steps: list[dict[str, str]] = [{"title": "", "text": ""}]
        self.values: dict[str, dict[str, Any]] = {}
        self.results: dict[str, Any] = {}
        self.names: set[str] = set()
        self.columns: list[str] = []

    def add_name(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise _core.Error(f"a value cannot be named '{name}'; use small letters, "
                              "digits and underscores")
        if name in _RESERVED:
            raise _core.Error(f"the value name '{name}' is reserved for the run itself")
        if name in self.names:
            raise _core.Error(f"the value name '{name}' is used twice")
        self.names.add(name)

    def keep(self, name: str, value: dict[str, Any]) -> Named:
        self.add_name(name)
        self.values[name] = value
        return Named(name, value["shown"])

    def add_text(self, text: str) -> None:
        recorded = self.steps[-1]["text"]
        for character in text:
            recorded += "@" if character == "{" and recorded.endswith("@") else ""
            recorded += character
        self.steps[-1]["text"] = recorded

    def add_placeholder(self, name: str) -> None:
        if self.steps[-1]["text"].endswith("@"):
            raise _core.Error(f"the text before the value '{name}' must not end in '@'")
        self.steps[-1]["text"] += f"@{{{name}}}"


_current: _Run | None = None


def _run() -> _Run:
    if _current is None:
        raise _core.Error("steps and named values exist only inside run_recipe")
    return _current


def _number_text(value: float) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(float(value)).removesuffix(".0")


def _quantity_text(value: float, unit: str = "") -> str:
    digits = 3 if unit == "x" else 4
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    text = (f"{value:.{digits - 1}e}" if exponent < -4 else
            f"{value:.{max(0, digits - 1 - exponent)}f}")
    return text + ("x" if unit == "x" else f" {unit}" if unit else "")


def _shown(value: Any) -> str:
    if isinstance(value, Named):
        return value.shown
    return _number_text(value) if isinstance(value, (bool, float)) else str(value)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def step(title: str) -> None:
    """Starts the next step: its heading separates what follows."""
    run = _run()
    if not title or any(each["title"] == title for each in run.steps):
        raise _core.Error(f"the step title '{title}' is empty or used twice")
    first = run.steps == [{"title": "", "text": ""}]
    run.steps.append({"title": title, "text": ""})
    bold = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    heading = f"\033[1m== {title}\033[0m\n" if bold else f"== {title}\n"
    _write(heading if first else f"\n{heading}")


def print(*values: Any) -> None:
    """Prints its arguments one after the other, numbers in their shortest exact
    form, and ends the line."""
    run, line = _run(), ""
    for value in values:
        text = _shown(value)
        line += text
        if isinstance(value, Named):
            run.add_placeholder(value.name)
        else:
            run.add_text(text)
    run.add_text("\n")
    _write(f"{line}\n")


def print_block(text: str) -> None:
    """Prints a text of any number of lines."""
    print(text.removesuffix("\n"))


def _aligned(shown: str, is_first: bool) -> str:
    return shown.rjust(4 if is_first else max(14, len(shown) + 2))


def print_columns(*names: str) -> None:
    """The first line of a table: a name for each column."""
    _run().columns = list(names)
    print(*(_aligned(name, not i) for i, name in enumerate(names)))


def print_row(*numbers: Any) -> None:
    """A line of the table: whole numbers as they are, others with four significant
    digits. A number that is Within bounds is named after its column and row."""
    run, cells = _run(), []
    for i, number in enumerate(numbers):
        if i >= len(run.columns):
            raise _core.Error("a row has more numbers than print_columns named columns")
        if isinstance(number, Within):
            name = f"{run.columns[i]}_{numbers[0]}".replace(" ", "_").lower()
            shown = _aligned(_quantity_text(number.value), not i)
            value = _varying_number(name, number.value, number.low, number.high)
            cells.append(run.keep(name, {**value, "unit": "", "shown": shown}))
        else:
            text = str(number) if isinstance(number, int) else _quantity_text(number)
            cells.append(_aligned(text, not i))
    print(*cells)


def measured(name: str, value: float, unit: str) -> Named:
    """A timing: four significant digits, the unit behind them."""
    if not math.isfinite(value) or value <= 0:
        raise _core.Error(f"the measured value '{name}' is {value}; it must be finite "
                          "and positive")
    run = _run()
    run.results[name] = value
    return run.keep(name, {"kind": "measured", "value": value, "unit": unit,
                           "shown": _quantity_text(value, unit)})


def ratio(name: str, above: Named | str, below: Named | str) -> Named:
    """How many times `below` goes into `above`, both of which were measured."""
    run, parts = _run(), []
    for part in (above, below):
        part = part.name if isinstance(part, Named) else part
        if run.values.get(part, {}).get("kind") != "measured":
            raise _core.Error(f"the ratio '{name}' needs measured values, but '{part}' "
                              "is not one")
        parts.append(part)
    a, b = (run.values[part] for part in parts)
    if a["unit"] != b["unit"]:
        raise _core.Error(f"the ratio '{name}' divides {a['unit']} by {b['unit']}; both "
                          "must have the same unit")
    value = a["value"] / b["value"]
    run.results[name] = value
    return run.keep(name, {"kind": "ratio", "value": value, "unit": "x", "low": 0,
                           "above": parts[0], "below": parts[1],
                           "shown": _quantity_text(value, "x")})


def _varying_number(name: str, value: float, low: float, high: float) -> dict[str, Any]:
    if not low <= value <= high:
        raise _core.Error(f"the value '{name}' is {value}; it must lie from {low} to "
                          f"{high}")
    return {"kind": "varying", "value": float(value), "low": low, "high": high}


def varying(name: str, value: float, low: float, high: float, unit: str = "") -> Named:
    """A number that may differ between runs, but only from `low` to `high`."""
    run = _run()
    text = _number_text(value) + ("" if unit in ("", "x") else " ") + unit
    run.results[name] = float(value)
    return run.keep(name, {**_varying_number(name, value, low, high), "unit": unit,
                           "shown": text})


def varying_text(name: str, text: str) -> Named:
    """Text that may differ between machines."""
    return _run().keep(name, {"kind": "text", "value": text, "shown": text})


def exact(name: str, value: Any) -> Any:
    """A value that is the same in every run, printed as it is. It goes into the
    results."""
    run = _run()
    run.add_name(name)
    run.results[name] = value
    return value


def interleaved(functions: Iterable[Callable[[], Any]],
                seconds: float = 0.2) -> list[float]:
    """The median time of a call of each function, in microseconds, measured in turns
    for `seconds` each and at least nine rounds."""
    functions = list(functions)
    times: list[list[float]] = [[] for _ in functions]
    for function in functions:
        function()
    end = time.perf_counter() + seconds * len(functions)
    while len(times[0]) < 9 or time.perf_counter() < end:
        for function, found in zip(functions, times, strict=True):
            begin = time.perf_counter()
            function()
            found.append((time.perf_counter() - begin) * 1e6)
    return [sorted(found)[len(found) // 2] for found in times]


def _date() -> str:
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d")


def _record(name: str, run: _Run) -> dict[str, Any]:
    steps = [each for each in run.steps if each["title"] or each["text"]]
    return {"format": 1, "recipe": name, "device": "cpu", "options": {},
            "provenance": {
                "device": _core.cpu_name(), "threads": _core.thread_count(),
                "compiler": f"Python {platform.python_version()}",
                "system": _core.system_name(), "date": _date()},
            "steps": steps, "kernels": sorted(set(_core.watched_kernels())),
            "values": dict(sorted(run.values.items()))}


def _results(name: str, run: _Run) -> dict[str, Any]:
    return {"recipe": name, "device": "cpu", "threads": _core.thread_count(),
            "options": {}, **run.results}


def _save(path: str, document: dict[str, Any]) -> None:
    """Writes a file aside first, then renames it into place; leaves nothing if it
    fails."""
    target = Path(path)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    aside = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=2, ensure_ascii=False)
            file.write("\n")
        aside.chmod(0o644)
        aside.replace(target)
    except BaseException:
        aside.unlink()
        raise


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UsageError(message)


def _options(name: str) -> argparse.Namespace:
    parser = _Parser(prog=name, epilog="Exit codes: 0 success, 1 the run failed, 2 the "
                     "command line is wrong, 3 the device is not available, 130 "
                     "interrupted.")
    parser.add_argument("--device", default="auto", metavar="D", help="auto or cpu")
    parser.add_argument("--threads", type=int, metavar="N",
                        help="threads to use (default FUSEBOOK_THREADS, else all CPUs)")
    parser.add_argument("--json", metavar="FILE", help="write the results to FILE")
    parser.add_argument("--record", metavar="FILE",
                        help="write the output, step by step, to FILE")
    options = parser.parse_args()
    if options.threads is not None and not 1 <= options.threads <= _MOST_THREADS:
        raise UsageError(f"--threads: expected an integer from 1 to {_MOST_THREADS}, "
                         f"not {options.threads}")
    return options


def _complain(name: str, error: BaseException | str) -> None:
    title = _current.steps[-1]["title"] if _current else ""
    where = f' (in step "{title}")' if title else ""
    builtins.print(f"{name}: error: {error}{where}", file=sys.stderr)


def run_recipe(body: Callable[[], None]) -> None:
    """Runs `body` as the recipe that is named after the program's file, and ends the
    program: 0 success, 1 the run failed, 2 bad command line, 3 device not available,
    130 interrupted. Files asked for appear only after `body` succeeded."""
    global _current
    name = Path(sys.argv[0]).stem
    code = 1
    try:
        options = _options(name)
        if options.device not in ("auto", "cpu"):
            _complain(name, f"--device {options.device}: arrays of Python are stepped "
                            "on the CPU")
            sys.exit(3)
        if options.threads:
            _core.set_thread_count(options.threads)
        if options.record:
            _core.watch_kernels()
        _current = run = _Run()
        body()
        for path, document in ((options.json, _results), (options.record, _record)):
            if path:
                _save(path, document(name, run))
        code = 0
    except UsageError as error:
        _complain(name, error)
        code = 2
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        _complain(name, error)
    sys.exit(code)
