"""What the answer of an exercise has to show: what is not as in the recipe."""

import difflib
import re

from . import samples

LONG = 40  # lines; of more, the difference is shown
MOVED = 1.25  # timings that moved by less are those of another run


def changed(answer, recipe):
    """The steps of an answer that print another text than the recipe's."""
    return [step for step in answer.steps
            if step.text and step.text != recipe.text_of(step.title)]


def timings(answer, recipe, told=()):
    """(name, in the recipe, now) of what was measured and has moved, but for
    what the steps in `told` print."""
    known = {name for step in told for name in samples.names_in(step.text)}
    printed = {name for step in answer.steps
               for name in samples.names_in(step.text)}
    found = []
    for name in sorted(printed - known):
        now, before = answer.values[name], recipe.values.get(name)
        if now.kind not in ("measured", "ratio") or before is None:
            continue
        if max(now.value / before.value, before.value / now.value) > MOVED:
            found.append((name, before.shown.strip(), now.shown.strip()))
    return found


def has_timings(answer, told):
    """Whether a step that is not in `told` prints something measured."""
    return any(answer.values[name].kind in ("measured", "ratio")
               for step in answer.steps if step not in told
               for name in samples.names_in(step.text))


def has_others(answer, recipe, told):
    """Whether a step that is not in `told` shows other numbers in the same text."""
    return any(answer.values[name].kind == "varying"
               and answer.values[name].shown != recipe.values[name].shown
               for step in answer.steps if step not in told
               for name in samples.names_in(step.text) if name in recipe.values)


def difference(answer, recipe, title):
    """The diff of a long output, or None where the whole is better shown.

    Blanks that line up comments do not count as a difference.
    """
    before, now = recipe.text_of(title), answer.text_of(title)
    if before is None or now.count("\n") <= LONG:
        return None
    old, new = before.rstrip("\n").split("\n"), now.rstrip("\n").split("\n")
    matcher = difflib.SequenceMatcher(
        None, [_plain(line) for line in old], [_plain(line) for line in new],
        autojunk=False)
    rows = []
    for group in matcher.get_grouped_opcodes(1):
        rows += ["@@"] if rows else []
        for kind, a, b, c, d in group:
            if kind == "equal":
                rows += [f" {line}" for line in _filled(new[c:d], answer)]
                continue
            rows += [f"-{line}" for line in _filled(old[a:b], recipe)]
            rows += [f"+{line}" for line in _filled(new[c:d], answer)]
    return "\n".join(row.rstrip() for row in rows)


def _plain(line):
    return re.sub(r"\s+", " ", line)


def _filled(lines, sample):
    return [samples.filled(line, sample.values) for line in lines]
