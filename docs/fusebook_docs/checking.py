"""Compares a fresh run with the sample on the page."""

import difflib
from dataclasses import dataclass

from . import currency, gallery, languages, literate, patches, runner, samples
from .book import capture_command
from .errors import BookError
from .values import wrongly_shown

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
    return literate.parse(text, f"{recipe}.{exercise}", languages.of(path))


def fresh(book, program, recipe, device, timeout, exercise=None, words=()):
    """Runs a recipe: its record as a sample, and what is wrong with it."""
    source = source_of(book, recipe, exercise)
    name = samples_name(recipe, exercise)
    raw = runner.run(book, program, name, device, timeout, words,
                     gallery.ranks(book, recipe))
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
    found = [Difference(t, f"{left} has it, {right} does not") for t in extra]
    found += [Difference(t, f"{right} has it, {left} does not")
              for t in lacking]
    if not found and left_titles != right_titles:
        pairs = zip(left_titles, right_titles, strict=True)
        first = next(a for a, b in pairs if a != b)
        found.append(Difference(
            first, f"{left} and {right} have the steps in different order"))
    return found


def implausible(sample):
    """Values that cannot be true."""
    for name, value in sample.values.items():
        problem = value.problem()
        if problem:
            yield Difference(step_of(sample, name),
                             f"{value.kind} value {name!r} {problem}")
    for name, problem in wrongly_shown(sample.values):
        yield Difference(step_of(sample, name), f"value {name!r} {problem}")


def unfit(sample):
    """Values that a run may have and a page may not.

    The limit of a GPU is a copy, which moves as many bytes in another way; so
    its bounds are those of the CPU alone.
    """
    if sample.device != "cpu":
        return
    for name, value in sample.values.items():
        problem = value.unfit()
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
                step.title, "prints something different from the page",
                _diff(step.text, text, page_name)))
    if page.text_of("") is None and run.text_of(""):
        found.append(Difference("", "text before the first step",
                                _diff("", run.text_of(""), page_name)))
    if page.source_sha256 != run.source_sha256:
        found.append(Difference(
            "", "the code has changed since the page was captured, so the "
            "page's timings and numbers belong to an older program"))
    if page.options != run.options:
        found.append(Difference("", f"ran with the options {_listed(run.options)}, but the "
                                f"page with {_listed(page.options)}"))
    return [*found, *_values(page, run), *kernels(page, run)]


def _listed(options):
    return ", ".join(f"{name} {value}" for name, value in options.items()) or "none"


def disagreements(book, found, source, exercise=None):
    """Why samples, by device, do not belong to a program or to each other.

    A sample of a GPU that is older than the program is told on its page, and
    contradicts nobody.
    """
    cpu = found.get("cpu")
    for device, sample in found.items():
        name = samples_name(sample.recipe, exercise)
        path = book.show(book.sample_paths(device, sample.recipe, exercise)[0])
        stale = currency.is_stale(book, sample, source, cpu)
        if device == "cpu" and stale:
            yield BookError(f"the code of {name} has changed since its output "
                            "was captured; run: "
                            f"{capture_command(sample.recipe, device)}",
                            book.show(book.recipe_path(sample.recipe)), 1)
        elif device != "cpu" and cpu is not None and not stale:
            for problem in _agreement(cpu, sample, source.by_device):
                yield BookError(str(problem), path, 1)


def of_another_machine(book, recipe, answer):
    """Why the timings of an answer cannot stand beside those of its recipe."""
    mine, theirs = recipe.provenance, answer.provenance
    if not any(value.kind == "measured" for value in answer.values.values()):
        return
    for name in ("device", "compiler", "threads"):
        if mine.get(name) != theirs.get(name):
            paths = book.sample_paths(answer.device, answer.recipe, answer.exercise)
            yield BookError(
                f"{name!r} is {theirs.get(name)!r}, but {mine.get(name)!r} in the recipe's "
                "sample, whose timings the page compares with these: capture both on one "
                f"machine: {capture_command(recipe.recipe, recipe.device)} --fresh",
                book.show(paths[1]), 1)


def _agreement(cpu, other, by_device):
    """How a sample of another device contradicts that of the CPU.

    Named values may differ, and steps that are declared to differ.
    """
    yield from titles(f"the sample of {other.device}", other.titles,
                      "that of the CPU", cpu.titles)
    for step in cpu.steps:
        text = other.text_of(step.title)
        if text is None or step.title in by_device:
            continue
        if text != step.text:
            yield Difference(
                step.title, f"the sample of {other.device} differs from "
                "that of the CPU, but the step does not declare it "
                "(step(...);  // by device)",
                _diff(step.text, text, other.device))
            continue
        for name in samples.names_in(text):
            a, b = cpu.values[name], other.values[name]
            if (a.kind, a.unit, a.low, a.high) != (b.kind, b.unit, b.low,
                                                   b.high):
                yield Difference(step.title, f"value {name!r} of {other.device} "
                                 "differs in kind, unit or bounds from that "
                                 "of the CPU")


def kernels(page, run):
    """How the kernels of a run differ from those of a sample."""
    new, gone = (set(run.kernels) - set(page.kernels),
                 set(page.kernels) - set(run.kernels))
    if new or gone:
        yield Difference("", "generates different kernels than when the page "
                             f"was captured: {len(new)} new, {len(gone)} gone, "
                             f"{len(set(run.kernels)) - len(new)} unchanged")


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
                             f"value {name!r} is on the page, but not in "
                             "this run")
            continue
        for what in ("kind", "unit", "low", "high"):
            a, b = getattr(old, what), getattr(new, what)
            if a != b:
                yield Difference(step_of(run, name),
                                 f"{what} of value {name!r} is {b!r}, but "
                                 f"{a!r} on the page")
        if old.kind == new.kind == "place" and old.value != new.value:
            yield Difference(step_of(run, name),
                             f"place {name!r} is {new.value}, but "
                             f"{old.value} on the page")
    for name in run.values.keys() - page.values.keys():
        yield Difference(step_of(run, name),
                         f"value {name!r} is in this run, but not on the "
                         "page")
