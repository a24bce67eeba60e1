"""Compares a fresh run with the sample on the page."""

import difflib
from dataclasses import dataclass

from . import currency, literate, patches, runner, samples

_DIFF_LINES = 40


@dataclass(frozen=True)
class Difference:
    """One way in which two runs disagree; `step` is "" outside of steps."""

    step: str
    message: str
    diff: str = ""

    def __str__(self):
        where = f"step {self.step!r}: " if self.step else ""
        return f"{where}{self.message}{self.diff}"


def source_of(book, recipe, exercise=None):
    """The parsed recipe, with the exercise's patch applied if there is one."""
    path = book.recipe_path(recipe)
    if exercise is None:
        return literate.read(path, book.show(path))
    text = patches.patched(book, recipe, exercise)
    return literate.parse(text, f"{recipe}.{exercise}")


def fresh(book, program, recipe, device, timeout, exercise=None, words=()):
    """Runs a recipe: its record as a sample, and what is wrong with it."""
    source = source_of(book, recipe, exercise)
    name = samples_name(recipe, exercise)
    raw = runner.run(book, program, name, device, timeout, words)
    gpu_code = None if device == "cpu" else currency.gpu_code(book)
    record = samples.from_record(raw, f"record of {name}", exercise=exercise,
                                 source_sha256=source.fingerprint,
                                 gpu_code_sha256=gpu_code)
    return record, [*_identity(record, recipe, device),
                    *titles("the program", record.titles,
                            "its source", source.step_titles),
                    *implausible(record)]


def samples_name(recipe, exercise):
    return recipe if exercise is None else f"{recipe}, exercise {exercise}"


def _identity(record, recipe, device):
    for what, got, wanted in (("recipe", record.recipe, recipe),
                              ("device", record.device, device)):
        # The first GPU answers to both names.
        if got != wanted and (wanted, got) != ("cuda", "cuda:0"):
            yield Difference("", f"the record is of {what} {got!r}, not of "
                                 f"{wanted!r}")


def titles(left, left_titles, right, right_titles):
    """Differences between two lists of steps."""
    extra = [title for title in left_titles if title not in right_titles]
    lacking = [title for title in right_titles if title not in left_titles]
    found = [Difference(t, f"{left} has it, {right} has not") for t in extra]
    found += [Difference(t, f"{right} has it, {left} has not")
              for t in lacking]
    if not found and left_titles != right_titles:
        pairs = zip(left_titles, right_titles, strict=True)
        first = next(a for a, b in pairs if a != b)
        found.append(Difference(first, f"{left} has the steps in another "
                                       f"order than {right}"))
    return found


def implausible(sample):
    """Values that cannot be true."""
    for name, value in sample.values.items():
        problem = value.problem()
        if problem:
            yield Difference(step_of(sample, name),
                             f"{value.kind} value {name!r} {problem}")


def step_of(sample, name):
    """The first step that prints a value."""
    for step in sample.steps:
        if name in samples.names_in(step.text):
            return step.title
    return ""


def compare(page, run, page_name):
    """Every difference between a sample and a fresh run, in page order."""
    found = titles("this run", run.titles, "the page", page.titles)
    for step in page.steps:
        text = run.text_of(step.title)
        if text is not None and text != step.text:
            found.append(Difference(
                step.title, "prints something else than the page",
                _diff(step.text, text, page_name)))
    if page.text_of("") is None and run.text_of(""):
        found.append(Difference("", "text before the first step",
                                _diff("", run.text_of(""), page_name)))
    return [*found, *_values(page, run), *kernels(page, run)]


def kernels(page, run):
    """How the kernels of a run differ from those of a sample."""
    new, gone = (set(run.kernels) - set(page.kernels),
                 set(page.kernels) - set(run.kernels))
    if new or gone:
        yield Difference("", "generates other kernels than when the page was "
                             f"captured: {len(new)} new, {len(gone)} gone, "
                             f"{len(set(run.kernels)) - len(new)} as before")


def _diff(page, run, page_name):
    lines = list(difflib.unified_diff(
        page.split("\n"), run.split("\n"), str(page_name), "this run", n=2,
        lineterm=""))
    if len(lines) > _DIFF_LINES:
        rest = len(lines) - _DIFF_LINES
        lines = [*lines[:_DIFF_LINES], f"... {rest} more lines"]
    return "".join(f"\n    {line}" for line in lines)


def _values(page, run):
    for name, old in page.values.items():
        new = run.values.get(name)
        if new is None:
            yield Difference(step_of(page, name),
                             f"value {name!r} is on the page, this run has "
                             "none")
            continue
        for what in ("kind", "unit", "low", "high"):
            a, b = getattr(old, what), getattr(new, what)
            if a != b:
                yield Difference(step_of(run, name),
                                 f"{what} of value {name!r} is {b!r}, on the "
                                 f"page {a!r}")
        if old.kind == new.kind == "place" and old.value != new.value:
            yield Difference(step_of(run, name),
                             f"place {name!r} is {new.value}, on the page "
                             f"{old.value}")
    for name in run.values.keys() - page.values.keys():
        yield Difference(step_of(run, name),
                         f"value {name!r} is new, the page has none")
