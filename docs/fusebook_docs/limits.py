"""The limits a recipe page keeps, so that it stays short enough to read.

Lines are counted as the page shows them: blank ones do not count, and the
whole program that folds away at the end does not either. *Harness* is every
shown line that only makes the program run: includes, `using`, the head of the
function that holds the steps, and `main`. *Prose* is the share of comment
lines with text in them among all lines of the file with text in them, without
those that quote another file.
"""

import re

from . import samples
from .errors import BookError

CODE_LINES = 60
CODE_LINES_OF = {"foreach_map": 120}
COLUMNS = 80
HARNESS_LINES = 6
PROSE = (0.35, 0.55)
ENGINE_ROOM = re.compile(r"\b(slots?|entry|entries|bindings?)\b", re.I)
# Code of another file that a page quotes is neither prose nor its own.
_QUOTES = re.compile(r"\.\. (?:literalinclude|kernel-beside)::|\s+:[\w-]+:")
# What another library brings is what its page is about.
_HARNESS = re.compile(r"\s*(#include\b(?!.*(?:torch|distributed))|using\b|"
                      r"int main\b|from\b|import\b|if __name__\b)|"
                      r"\brun_recipe\b|\bargv\b")


def shown_code(recipe):
    """The lines of code on the page, without blank ones."""
    return [line for part in recipe.parts for line in part.shown
            if line.text.strip()]


def harness(recipe):
    """The shown lines that are there to make the program run."""
    within = set()
    for scope in recipe.scopes:
        if scope.is_namespace:
            continue
        if recipe.language.is_main(scope):
            within.update(range(scope.first_line, scope.close_line + 1))
        elif any(scope.open_line < step.line < scope.close_line
                 for step in recipe.steps):
            within.update(range(scope.first_line, scope.open_line + 1))
    return [line for line in shown_code(recipe)
            if line.number in within or _HARNESS.match(line.text)]


def prose_share(recipe):
    """Lines of prose over lines of prose and code."""
    prose = sum(bool(line.text) and not _QUOTES.match(line.text)
                for part in recipe.parts for line in part.prose)
    inside = {line.number for part in recipe.parts for line in part.prose}
    inside.update(part.line for part in recipe.parts)
    mark = recipe.language.COMMENT
    code = sum(bool(text.strip()) and not text.lstrip().startswith(mark)
               for number, text in enumerate(recipe.source.split("\n"), 1)
               if number not in inside)
    return prose / max(prose + code, 1)


def summary(name, recipe):
    low, high = PROSE
    most = CODE_LINES_OF.get(name, CODE_LINES)
    return (f"{name}: {len(shown_code(recipe))} of {most} lines of {recipe.language.NAME}, "
            f"{len(harness(recipe))} of {HARNESS_LINES} harness, "
            f"{prose_share(recipe):.0%} prose (from {low:.0%} to {high:.0%})")


def problems(book, name, recipe):
    """Everything in which a recipe does not keep the limits."""
    yield from _lengths(name, recipe)
    yield from _columns(recipe)
    yield from _words(recipe)
    yield from _words_printed(book, name)


def _lengths(name, recipe):
    shown, most = len(shown_code(recipe)), CODE_LINES_OF.get(name, CODE_LINES)
    if shown > most:
        yield BookError(f"the page shows {shown} lines of {recipe.language.NAME}; the limit is "
                        f"{most}", recipe.path)
    lines = harness(recipe)
    if len(lines) > HARNESS_LINES:
        numbers = ", ".join(str(line.number) for line in lines)
        yield BookError(f"{len(lines)} lines of harness (lines {numbers}); the "
                        f"limit is {HARNESS_LINES}", recipe.path)
    share = prose_share(recipe)
    if not PROSE[0] <= share <= PROSE[1]:
        yield BookError(f"{share:.1%} of it is prose; it must be between "
                        f"{PROSE[0]:.0%} and {PROSE[1]:.0%}", recipe.path)


def _columns(recipe):
    for number, text in enumerate(recipe.source.split("\n"), start=1):
        link = text.lstrip().startswith(recipe.language.COMMENT) and "://" in text
        if len(text) > COLUMNS and not link:
            yield BookError(f"{len(text)} columns; the limit is {COLUMNS}",
                            recipe.path, number)


def _words(recipe):
    for part in recipe.parts:
        for line in [*part.prose, *part.shown]:
            for match in ENGINE_ROOM.finditer(line.text):
                yield BookError(
                    f"{match[0]!r} is an internal term of the engine",
                    recipe.path, line.number)


def _words_printed(book, name):
    # Samples of other devices are shown as they are; they never block a change.
    for device in {"cpu"} & set(book.devices(name)):
        sample = samples.load(book, device, name)
        for step in sample.steps:
            for match in ENGINE_ROOM.finditer(step.text):
                path = book.sample_paths(device, name)[0]
                yield BookError(
                    f"step {step.title!r} prints {match[0]!r}, an internal "
                    "term of the engine", book.show(path))
