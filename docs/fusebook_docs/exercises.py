"""The exercises of a recipe: three, each answered by a patch that fits.

A patch that no longer fits, since the recipe has changed around it, is
rebased: what it changes in the newest committed recipe that it fits is changed
in the recipe as it is now.
"""

import re
import subprocess
from difflib import SequenceMatcher

from . import patches
from .errors import BookError

COUNT = 3
_ASKED = re.compile(r"^(?://|#) \.\. exercise:: (\w+)$", re.MULTILINE)
_CONFLICT = "<<<<<<< "


def problems(book, recipe):
    """Everything that is wrong with the exercises of a recipe."""
    path = book.recipe_path(recipe)
    asked = _ASKED.findall(path.read_text(encoding="utf-8"))
    kept = book.exercise_names(recipe)
    if len(asked) != COUNT:
        yield BookError(f"has {len(asked)} exercises; a recipe needs {COUNT}",
                        book.show(path))
    for name in sorted({*asked} - {*kept}):
        yield BookError(f"exercise {name} has no answer; make its patch "
                        "with `make-patch`", book.show(path))
    for name in sorted({*kept} - {*asked}):
        yield BookError(f"answers an exercise that {book.show(path)} does not "
                        "have", book.show(book.patch_path(recipe, name)))
    yield from misfits(book, recipe)


def misfits(book, recipe, exercise=None):
    """The answers that cannot be applied."""
    for name in [exercise] if exercise else book.exercise_names(recipe):
        try:
            patches.patched(book, recipe, name)
        except BookError as error:
            yield error


def rebased(book, recipe, exercise):
    """The recipe as it is now with the answer in it, and its conflicts."""
    now = book.recipe_path(recipe).read_text(encoding="utf-8")
    hunks = patches.read(book, recipe, exercise)
    path = book.show(book.patch_path(recipe, exercise))
    target = patches.target_of(book, recipe)
    for then in _committed(book, target):
        try:
            answer = patches.apply(then, hunks, path, target)
        except BookError:
            continue
        return _merged(now, then, answer)
    raise BookError(f"does not apply to any committed version of {target}: "
                    "edit a copy of the recipe and make a new patch with "
                    "`make-patch`",
                    path)


def conflicts(text):
    """The lines where a merged text has a conflict."""
    return [number for number, line in enumerate(text.split("\n"), start=1)
            if line.startswith(_CONFLICT)]


def _committed(book, target):
    """The versions of a file that git has, the newest first."""
    for commit in _git(book.root, "log", "--format=%H", "--", target).split():
        try:
            yield _git(book.root, "show", f"{commit}:./{target}")
        except BookError:
            continue  # the commit that removed it


def _merged(now, then, answer):
    """Makes the changes from `then` to `answer` in `now`.

    Lines beside a change may be others than they were; those that it replaces
    may not. Where they are, both texts are left between markers.
    """
    now, then, answer = (text.split("\n") for text in (now, then, answer))
    place = _places(then, now)
    out, done = [], 0
    for tag, i1, i2, j1, j2 in SequenceMatcher(
            None, then, answer, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        begin = place.get(i1) if i1 < i2 else _between(place, i1)
        rows = answer[j1:j2]
        if begin is None or begin < done or any(
                place.get(i) != begin + i - i1 for i in range(i1, i2)):
            rows = [f"{_CONFLICT}the recipe was", *then[i1:i2], "=======",
                    *rows, ">>>>>>> the answer is"]
            begin = max([done, *(place[i] + 1 for i in place if i < i1)])
            i2 = i1
        out += [*now[done:begin], *rows]
        done = begin + i2 - i1
    return "\n".join([*out, *now[done:]])


def _places(then, now):
    """Where lines of one text are in the other; the ends are there, too."""
    blocks = SequenceMatcher(None, then, now,
                             autojunk=False).get_matching_blocks()
    return {-1: -1, len(then): len(now),
            **{block.a + k: block.b + k
               for block in blocks for k in range(block.size)}}


def _between(place, index):
    """Where to insert before a line: after the one above, if that is there."""
    if index - 1 in place:
        return place[index - 1] + 1
    return place.get(index)


def _git(folder, *words):
    try:
        done = subprocess.run(["git", "-C", str(folder), *words],
                              capture_output=True, check=False)
    except OSError as error:
        raise BookError(f"git cannot be run: {error}") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise BookError(f"git {words[0]} failed: {said}")
    return done.stdout.decode("utf-8")
