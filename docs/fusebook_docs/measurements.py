"""What `./fusebook bench --json` measured and was committed:
`docs/measurements/cpu.json`, and `peers.json` with PyTorch beside some cases, as the
benchmark wrote it, with the command and a digest over both; `adapters.json` is what
tests/consumers/adapters.py measured over tensors of PyTorch. `ranks.json`,
`storages.json` and `bytes.json` are of other kinds (rank_measurements.py,
storage_measurements.py, byte_measurements.py).

Nothing is measured when the book is built, and no number is typed: the page of
benchmarks draws these.
"""

import hashlib
import json
import math
import re
from dataclasses import dataclass

from . import byte_measurements, rank_measurements, samples, storage_measurements
from .book import check_name
from .errors import BookError
from .words import many

FORMAT = 1
HOW = {"cpu": "./fusebook capture bench", "peers": "./fusebook capture peers",
       "adapters": "./fusebook capture peers",
       rank_measurements.NAME: rank_measurements.HOW,
       storage_measurements.NAME: storage_measurements.HOW,
       byte_measurements.NAME: byte_measurements.HOW}
_OWN_KINDS = {module.NAME: module for module in (
    rank_measurements, storage_measurements, byte_measurements)}
KINDS = {"step": "rows", "tail": "tail", "gradients": "gradients", "groups": "groups",
         "host": "host", "compile": "compile"}
_FACTS = ("device", "compiler", "system", "date")
# A step that is faster than what bounds it was measured on a busy machine.
_LEAST = 0.97
_BOUND = ("compiled", "by hand")
_BOUND_IN = {"adapters": ("LibTorch adapter", "Python package")}
# A ratio is the median over processes of ratios, not that of the two medians.
_NEAR = 1.5
_WHOLE = 1e-3  # of a byte
_OF = re.compile(r" of (?:float32|our own process)$")
_PEER = re.compile(r"torch (\S+) ")
_LARGE = "10 x 1024 x 1024"


@dataclass(frozen=True)
class Row:
    """One figure: the median over the processes."""

    of_case: str
    variant: str
    us: float
    ratio: float | None = None  # of the median of what it was divided by
    divided_by: str | None = None


@dataclass(frozen=True)
class Measurement:
    """All of a file."""

    command: str
    facts: dict
    rows: dict  # kind -> its rows

    def row(self, kind, of_case, variant):
        """`#` in the name of a variant stands for the version that was measured."""
        name = re.compile(re.escape(variant).replace(r"\#", r"[\d.]+"))
        for row in self.rows[kind]:
            if row.of_case == of_case and name.fullmatch(row.variant):
                return row
        here = sorted({r.of_case for r in self.rows[kind]})
        known = [r.variant for r in self.rows[kind] if r.of_case == of_case]
        raise BookError(f"{kind} has no {variant!r} of {of_case!r}; there are: "
                        + ", ".join(known or here))

    def labelled(self, kind, of_case, variant, label):
        """A row whose label does not name another row beside it."""
        found, said = self.row(kind, of_case, variant), _words(label)
        is_peer = _PEER.match(found.variant) is not None
        others = [row.variant for row in self.rows[kind] if row.of_case == of_case
                  and (_PEER.match(row.variant) is not None) == is_peer]
        if label.startswith("PyTorch") != is_peer or any(
                _words(other) <= said and not _words(found.variant) <= said
                for other in others):
            raise BookError(f"{label}: {variant!r} is not what has this name")
        return found

    def provenance(self):
        """Where and when, in one line."""
        facts, processes = self.facts, self.facts["processes"]
        threads = facts["threads"]
        peers = {f"PyTorch {match[1]}" for rows in self.rows.values() for row in rows
                 if (match := _PEER.match(row.variant))}
        return " · ".join([
            many("{device}, {count} thread", "{device}, {count} threads", threads,
                 device=facts["device"]),
            facts["compiler"], *sorted(peers), facts["date"],
            many("medians over {count} process", "medians over {count} processes",
                 processes)])


def _words(name):
    """Of the name of a variant or of a label, without a peer and its version."""
    return set(re.findall(r"[^\s,()]+", _PEER.sub("", name)))


def path(book, name="cpu"):
    check_name("measurement", name)
    return book.root / "docs" / "measurements" / f"{name}.json"


def _digest(command, result):
    whole = json.dumps([command, result], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(whole.encode()).hexdigest()


def store(book, result, command, name="cpu"):
    """Keeps what the benchmark wrote; refuses what cannot be shown."""
    show = book.show(path(book, name))
    for problem in _problems(result, command, show, name):
        raise BookError(f"not captured: {problem}. Measure again when the machine "
                        "is quiet")
    document = {"format": FORMAT, "command": command, "result": result,
                "digest": _digest(command, result)}
    text = json.dumps(document, indent=1, ensure_ascii=False)
    samples.write_files({path(book, name): f"{text}\n"})


def _must_agree(result, later):
    for name in (*_FACTS, "threads", "processes"):
        if result.get(name) != later.get(name):
            raise BookError(f"{name!r} is {later.get(name)!r} when measured again, "
                            f"and was {result.get(name)!r}")


def joined(result, more):
    """A result and another case of the same machine and day."""
    _must_agree(result, more)
    return {**result, **{name: result[name] + more[name]
                         for name in KINDS.values()}}


def merged(result, again):
    """A result with one case measured again, on the same machine and day."""
    _must_agree(result, again)
    found = dict(result)
    for name in KINDS.values():
        new = {(row["case"], row["variant"]): row for row in again[name]}
        found[name] = [new.pop((row["case"], row["variant"]), row)
                       for row in result[name]]
        if new:
            raise BookError(f"was not measured before: {', '.join(map(str, new))}")
    return found


def _problems(result, command, show, name):
    if name in _OWN_KINDS:
        _OWN_KINDS[name].read(result, command, show)
        return ()
    return unfit(_read(result, command, show), _BOUND_IN.get(name, _BOUND))


def load(book, name="cpu"):
    """Reads them; a file that was edited since it was captured is refused."""
    command, result, show = kept(book, name)
    return _read(result, command, show)


def problems(book):
    """What is wrong with the files that pages draw."""
    for name in HOW:
        try:
            command, result, show = kept(book, name)
            for problem in _problems(result, command, show, name):
                yield BookError(problem, show)
        except BookError as error:
            yield error


def kept(book, name):
    """(command, result, name of the file) of one that was not edited."""
    if name not in HOW:
        raise BookError(f"there is no measurement {name!r}; there are: "
                        + ", ".join(HOW))
    file = path(book, name)
    show = book.show(file)
    try:
        raw = samples.parse_json(file.read_bytes(), show)
    except OSError as error:
        raise BookError(f"cannot be read ({error.strerror}); make it with: "
                        f"{HOW[name]}", show) from None
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise BookError(f"has not format {FORMAT}", show)
    command, result = raw.get("command"), raw.get("result")
    if not isinstance(command, str) or raw.get("digest") != _digest(command,
                                                                   result):
        raise BookError("was edited after it was captured: it is not what the "
                        f"digest was made of. Take it from a run: {HOW[name]}",
                        show)
    return command, result, show


def unfit(measurement, bound=_BOUND):
    """Why a measurement should not be shown."""
    for variant in bound:
        row = measurement.row("step", _LARGE, variant)
        if row.ratio is None or row.ratio < _LEAST:
            what = ("the machine's limit" if row.divided_by == "limit"
                    else row.divided_by)
            yield (f"{variant}, {_LARGE}: {row.ratio} of {what}, and "
                   f"nothing is faster than that; at least {_LEAST} is kept")


def _read(result, command, show):
    if not isinstance(result, dict):
        raise BookError("'result' must be what bench --json wrote", show)
    for name in _FACTS:
        if not isinstance(result.get(name), str) or not result[name]:
            raise BookError(f"'result' lacks {name!r}", show)
    for name in ("threads", "processes"):
        if not isinstance(result.get(name), int) or result[name] < 1:
            raise BookError(f"'result' lacks {name!r}", show)
    facts = {name: result[name] for name in (*_FACTS, "threads", "processes")}
    rows = {}
    for kind, name in KINDS.items():
        if not isinstance(result.get(name), list):
            raise BookError(f"'result' lacks {name!r}: measure everything", show)
        rows[kind] = [_row(raw, show) for raw in result[name]]
        _check_parts(rows[kind], result[name], show)
    return Measurement(command, facts, rows)


def _check_parts(rows, raws, show):
    """That a ratio is near what its parts give, and a bandwidth that of whole bytes."""
    times = {(row.of_case, row.variant): row.us for row in rows}
    for row, raw in zip(rows, raws, strict=True):
        where = f"{row.variant!r} of {row.of_case!r}"
        if row.ratio is not None:
            below = times.get((row.of_case, _OF.sub("", row.divided_by or "")))
            if below is None:
                raise BookError(f"{where} was divided by {row.divided_by!r}, which was "
                                "not measured", show)
            wanted = row.us / below
            if not wanted / _NEAR < row.ratio < wanted * _NEAR:
                raise BookError(f"{where} has the ratio {row.ratio}, but its time by "
                                f"that of {row.divided_by!r} is {wanted:.3g}", show)
        moved = row.us * (raw.get("gb_per_s") or 0) * 1e3
        if abs(moved - round(moved)) > _WHOLE:
            raise BookError(f"{where} moved {moved} bytes, by its time and GB/s", show)


def _row(raw, show):
    try:
        row = Row(raw["case"], raw["variant"], float(raw["us"]),
                  raw.get("ratio"), raw.get("divided_by"))
    except (KeyError, TypeError, ValueError):
        raise BookError(f"{raw!r} is not a row of bench", show) from None
    if not math.isfinite(row.us) or row.us <= 0:
        raise BookError(f"{row.variant!r} of {row.of_case!r} took {row.us} us",
                        show)
    return row
