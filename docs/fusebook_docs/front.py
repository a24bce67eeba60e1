"""What README.md shows of the book, made from what was captured.

Between `<!-- made: NAME -->` and `<!-- end -->` stand a program, what it printed,
and the result of two recipes; beside the README its picture. Nobody edits these by
hand: `capture` writes them anew, and a test compares them.
"""

import re
from pathlib import Path

from . import examples, launches, samples, values
from .errors import BookError

README = "README.md"
PICTURE = Path("docs/launches.svg")
EXAMPLE = "front"
# A line of the table: the sample, and the exercise it is of.
RESULTS = (("10 tensors of 1024 x 1024", "compiling_optimizer", None),
           ("1,000 tensors of 64", "compiling_optimizer", "small_tensors"))
_PART = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.S)


def parts(book):
    """Name of each part of README.md -> what belongs there."""
    example = examples.read(book).get(EXAMPLE)
    if example is None or example.output is None:
        raise BookError(f"example {EXAMPLE!r} is missing or has no output",
                        book.show(examples.folder(book)))
    return {"program": f"```cpp\n{example.code.strip()}\n```",
            "output": f"```\n{example.output.strip()}\n```",
            "results": _results(book)}


def _results(book):
    rows = ["| a step of Adam | op by op | eager: one launch per operation "
            "| compiled: one launch | faster than op by op |",
            "|---|---|---|---|---|"]
    for what, recipe, exercise in RESULTS:
        sample = samples.load(book, "cpu", recipe, exercise)
        shown = [sample.values[name].shown.strip() for name in
                 ("op_by_op_us", "eager_us", "compiled_us")]
        factor = values.quantity_text(
            sample.values["op_by_op_us"].value
            / sample.values["compiled_us"].value, "x")
        rows.append("| " + " | ".join([what, *shown, factor]) + " |")
    made = sample.provenance
    rows += ["", f"Captured on {made['device']}, {made['threads']} threads, "
             f"{made['compiler']}, by `./fusebook capture`."]
    return "\n".join(rows)


def text(book):
    """README.md as it should be."""
    path = book.root / README
    made = parts(book)
    found = set()

    def put(match):
        found.add(match[2])
        if match[2] not in made:
            raise BookError(f"unknown part {match[2]!r}", README)
        return f"{match[1]}{made[match[2]]}\n{match[3]}"

    whole = _PART.sub(put, path.read_text(encoding="utf-8"))
    if missing := set(made) - found:
        raise BookError(f"missing part {', '.join(sorted(missing))}", README)
    return whole


def files(book):
    """Path -> text of all that is made for the front."""
    return {book.root / README: text(book),
            book.root / PICTURE: launches.alone()}


def stale(book):
    """The files that are not what they should be."""
    return [book.show(path) for path, wanted in files(book).items()
            if not path.is_file() or path.read_text("utf-8") != wanted]


def write(book):
    for path, wanted in files(book).items():
        path.write_text(wanted, encoding="utf-8")
