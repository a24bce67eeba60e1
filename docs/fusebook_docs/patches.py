"""Exercises: answers that are stored as patches of their recipe.

A patch is a unified diff of the recipe's file in `recipes/`. It is applied strictly:
every line of context must be there, letter by letter, in exactly one place.
"""

import difflib
import re
from dataclasses import dataclass, field

from .errors import BookError

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*")

_PROSE = re.compile(r"\s*(//|#( |$)|(?:fuse::)?step\(\")")


@dataclass
class Hunk:
    """One place that changes. `line` is where the patch has it."""

    line: int
    start: int
    rows: list[tuple[str, str]] = field(default_factory=list)

    @property
    def old(self):
        return [text for sign, text in self.rows if sign != "+"]

    @property
    def new(self):
        return [text for sign, text in self.rows if sign != "-"]


def read(book, recipe, exercise):
    """The hunks of an exercise's patch."""
    path = book.patch_path(recipe, exercise)
    show = book.show(path)
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        known = ", ".join(book.exercise_names(recipe)) or "none"
        raise BookError(f"unknown exercise; {recipe} has: {known}",
                        show) from None
    except (OSError, UnicodeDecodeError) as error:
        raise BookError(f"cannot be read: {error}", show) from None
    return parse(text, show, target_of(book, recipe))


def target_of(book, recipe):
    """What a patch of the recipe changes."""
    return f"recipes/{book.recipe_path(recipe).name}"


def parse(text, path, target):
    """Parses a unified diff of one file; `path` is for messages."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    hunks, names, wanted = [], {}, (0, 0)
    for number, line in enumerate(lines, start=1):
        if wanted != (0, 0):
            wanted = _row(hunks[-1], line, wanted, path, number)
        elif match := _HUNK.fullmatch(line):
            hunks.append(Hunk(number, int(match[1])))
            wanted = (int(match[2] or 1), int(match[4] or 1))
        elif line.startswith(("--- ", "+++ ")):
            _name(names, line, path, number, target)
        elif hunks or not line.startswith(("diff ", "index ")):
            raise BookError("not a line of a unified diff", path, number)
    if wanted != (0, 0):
        raise BookError("the last hunk is cut off", path, len(lines))
    if not hunks or set(names) != {"---", "+++"}:
        raise BookError(f"not a unified diff of {target}", path)
    if all(hunk.old == hunk.new for hunk in hunks):
        raise BookError("changes nothing", path)
    return hunks


def _name(names, line, path, number, target):
    sign, name = line[:3], line[4:].split("\t")[0].strip()
    if sign in names:
        raise BookError(f"a second file; a patch may change only {target}",
                        path, number)
    names[sign] = name
    if name not in (target, f"a/{target}", f"b/{target}"):
        raise BookError(f"is a patch of {name}, not of {target}", path, number)


def _row(hunk, line, wanted, path, number):
    sign, text = (line[0], line[1:]) if line else (" ", "")
    if sign not in " +-":
        raise BookError("a line of a hunk must begin with ' ', '+' or '-'",
                        path, number)
    hunk.rows.append((sign, text))
    left = (wanted[0] - (sign != "+"), wanted[1] - (sign != "-"))
    if min(left) < 0:
        raise BookError("the hunk is longer than its @@ line says", path,
                        number)
    return left


def apply(source, hunks, path, target):
    """The patched text. Throws when a hunk does not fit in one place."""
    lines, out, at, shift = source.split("\n"), [], 0, 0
    for hunk in hunks:
        expected = max(hunk.start - 1, 0) + shift
        found = _place(lines, hunk, at, expected, path, target)
        shift += found - expected
        out += [*lines[at:found], *hunk.new]
        at = found + len(hunk.old)
    return "\n".join([*out, *lines[at:]])


def _place(lines, hunk, begin, expected, path, target):
    old = hunk.old
    if not old:
        raise BookError("a hunk without context", path, hunk.line)
    fits = [i for i in range(begin, len(lines) - len(old) + 1)
            if lines[i : i + len(old)] == old]
    if expected in fits:
        return expected
    if len(fits) == 1:
        return fits[0]
    if fits:
        raise BookError(f"applies in {len(fits)} places of {target}; give it "
                        "more context", path, hunk.line)
    raise BookError(_misfit(lines, old, expected, target), path, hunk.line)


def _misfit(lines, old, expected, target):
    message = f"no longer applies to {target}"
    for index, text in enumerate(old):
        at = expected + index
        there = lines[at] if at < len(lines) else None
        if there != text:
            what = "the file ends" if there is None else f"found {there!r}"
            message += f": line {at + 1}: expected {text!r}, {what}"
            break
    return (f"{message}. Run `rebase-patch`, or make a new patch from an "
            "edited copy with `make-patch`")


def patched(book, recipe, exercise):
    """The text of a recipe with the answer of an exercise in it."""
    path = book.recipe_path(recipe)
    hunks = read(book, recipe, exercise)
    return apply(path.read_text(encoding="utf-8"), hunks,
                 book.show(book.patch_path(recipe, exercise)),
                 target_of(book, recipe))


def answer(hunks):
    """The patch as the page shows it: code, without names and numbers."""
    blocks = ("\n".join(f"{sign}{text}".rstrip() for sign, text in hunk.rows
                        if sign != " " or not _PROSE.match(text))
              for hunk in hunks)
    return "\n@@\n".join(blocks)


def make(target, before, after):
    """A patch from one text of a file, the `target`, to another.

    It has the least context that tells every place apart, so that prose can
    be edited without making patches anew.
    """
    for context in (1, 2, 3):
        rows = difflib.unified_diff(
            before.split("\n"), after.split("\n"), f"a/{target}",
            f"b/{target}", n=context, lineterm="")
        text = "".join(f"{row}\n" for row in rows)
        hunks = parse(text, "the difference", target)
        if all(_count(before.split("\n"), hunk.old) == 1 for hunk in hunks):
            break
    return text


def _count(lines, block):
    return sum(lines[i : i + len(block)] == block
               for i in range(len(lines) - len(block) + 1))
