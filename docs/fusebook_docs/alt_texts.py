"""What the alt text of drawn curves says is true of the numbers they are drawn from.

    [[curves]]
    page = "recipes/mixed_precision_training.cpp"
    of = "With masters and without"
    says = "That of bfloat16 without masters ... stays far above them."
    holds = ["last('bare loss') > 10 * last('float32 loss')"]

in `docs/claims.toml`: `of` is the step, the kind of measurement, or the directive where it
takes no argument; `says` a part of the `:alt:`, and `holds` what has to be true for it.
`first`, `last`, `least` and `most` are numbers of a column, `upto` and `after` its rows
before and from one; `apart(a, b)` is the largest ratio of two columns in one row, and
`above(a, b)` the smallest of the first to the second; `steps(a)` are the ratios of each
number of a column to the one before. Every sentence of an
alt text is part of one of these.
"""

import re
import tomllib

from . import measurements, rank_measurements, samples
from .claims import FILE
from .errors import BookError
from .tables import table

_DRAWN = re.compile(r"^ *\.\. (?:(?:recipe-plot|measured-curves):: (.+)|"
                    r"(rank-(?:exchanges|steps))::)\n"
                    r"((?: +:[\w-]+:.*\n(?: {4,}(?!:)\S.*\n)*)*)", re.M)
_ALT = re.compile(r":alt:((?:.|\n)*?)(?=\n *:[\w-]+:|\Z)")
_TENSORS = re.compile(r"(\d+) tensors")


def in_prose(book, text):
    """Sentences of alt texts that are not bound, or not true, in one of prose.py's
    texts."""
    whole = text.whole
    for drawn in _DRAWN.finditer(whole):
        match = _ALT.search(drawn[3])
        alt = " ".join(match[1].split()) if match else ""
        line = text.line(drawn.start(3))
        of = (drawn[1] or drawn[2]).strip()
        for problem in _of_alt(book, str(text.path), of, alt):
            yield BookError(f":alt: {problem}", text.path, line)


def _of_alt(book, page, of, alt):
    try:
        columns = _columns(book, page, of)
    except ValueError as error:  # as for a step that was renamed since
        yield f"is of {of!r}, but {error}"
        return
    rest = alt
    for bound in _read(book):
        if (bound["page"], bound["of"]) != (page, of):
            continue
        if bound["says"] not in alt:
            yield f"does not say {bound['says']!r}, which {FILE} binds"
            continue
        rest = rest.replace(bound["says"], "", 1)
        for condition in bound["holds"]:
            problem = untrue(condition, columns)
            if problem:
                yield f"says {bound['says']!r}, but {problem}"
    if rest.strip():
        yield (f"{rest.strip()!r} is not bound: say in {FILE}, under [[curves]], what "
               "holds of the numbers")


def untrue(condition, columns):
    """Why a condition is not true of {name: numbers}, or None."""
    def column(name):
        if name not in columns:
            raise BookError(f"there is no column {name!r} but {', '.join(columns)}", FILE)
        return columns[name]

    known = {
        "first": lambda name: column(name)[0], "last": lambda name: column(name)[-1],
        "least": lambda name: min(column(name)), "most": lambda name: max(column(name)),
        "apart": lambda a, b: max(max(x / y, y / x) for x, y in zip(
            column(a), column(b), strict=True)),
        "above": lambda a, b: min(x / y for x, y in zip(
            column(a), column(b), strict=True)),
        "steps": lambda name: [y / x for x, y in zip(
            column(name), column(name)[1:])],  # noqa: B905
        "upto": lambda name, n: column(name)[:n],
        "after": lambda name, n: column(name)[n:],
        "all": all, "any": any, "max": max, "min": min, "zip": zip,
    }
    return None if eval(condition, {"__builtins__": {}}, known) else (
        f"{condition} does not hold")


def _columns(book, page, of):
    """{name: numbers} of a step's table, or of a kind of measurement."""
    if page.startswith("recipes/"):
        recipe = page.removeprefix("recipes/").rpartition(".")[0]
        sample = samples.load(book, "cpu", recipe)
        names, rows = table(samples.filled(sample.text_of(of) or "", sample.values))
        return {name: [row[i] for row in rows] for i, name in enumerate(names)}
    if of.startswith("rank-"):
        return rank_measurements.load(book).curves(of)
    found = {}
    for row in measurements.load(book, "cpu").rows[of]:
        if match := _TENSORS.fullmatch(row.of_case):
            found.setdefault(row.variant, {})[int(match[1])] = row.us
    return {name: [times[n] for n in sorted(times)] for name, times in found.items()}


def _read(book):
    text = (book.root / FILE).read_text(encoding="utf-8")
    return tomllib.loads(text)["curves"]
