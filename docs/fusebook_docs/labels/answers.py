"""Each exercise has the answer to its own question.

A question has words of its patch, and an answer those of question and patch; both are
compared with the other exercises of the recipe. An answer whose quoted numbers are not
those of the other's output needs no words.
"""

import re
from functools import cache

from .. import prose, quotes
from ..errors import BookError
from ..literate import Line
from . import fitting

_ASKED = re.compile(r"^\.\. exercise:: (\w+)\n((?:\n|   .*\n)+)", re.M)
_BOUND = ":constant:`"
_TARGET = re.compile(r"<[^>]*>")


def in_prose(book, text):
    recipe, exercise = text.home.recipe, text.home.exercise
    whole = text.whole
    if recipe is None:
        return
    if text.home.is_answer:
        for problem in _of_answer(book, recipe, exercise, whole):
            yield BookError(problem, text.path, text.lines[0].number)
        return
    asked = list(_ASKED.finditer(whole))
    known = set(book.exercise_names(recipe))
    pairs = [(fitting.words(_TARGET.sub("", each[2])), _of_patch(book, recipe, each[1]))
             for each in asked if each[1] in known]
    for i, j in fitting.swapped(pairs, _all_questions(book)):
        if _BOUND in asked[i][2] or _BOUND in asked[j][2]:
            continue  # the code of its own answer has these numbers
        line = text.lines[whole.count("\n", 0, asked[i].start())].number
        yield BookError(f"asks what {asked[j][1]!r} answers, not {asked[i][1]!r}",
                        text.path, line)


def _of_answer(book, recipe, exercise, whole):
    asked = _questions(book, recipe)
    for other in book.exercise_names(recipe):
        if other == exercise or other not in asked:
            continue
        try:
            theirs = book.answer_path(recipe, other).read_text(encoding="utf-8")
        except FileNotFoundError:
            continue  # reported where answers are read
        if theirs.strip() == whole.strip():
            yield f"is the answer to {other!r} as well"
        elif _may_be(book, recipe, exercise, theirs) and _may_be(
                book, recipe, other, whole):
            pairs = [(fitting.words(_TARGET.sub("", answer)), asked[each])
                     for each, answer in ((exercise, whole), (other, theirs))]
            if list(fitting.swapped(pairs, _all_questions(book))):
                yield (f"fits the question of {other!r} better, and that answer this "
                       "one: name what was asked")


def _may_be(book, recipe, exercise, answer):
    """Whether nothing that an answer quotes is wrong for an exercise."""
    lines = tuple(Line(n, line) for n, line in enumerate(answer.split("\n"), 1))
    home = quotes.Home(recipe, None, exercise, True)
    return not any(prose.problems(book, prose.Text("", lines, home)))


@cache
def _all_questions(book):
    return [question for recipe in book.recipe_names()
            for question in _questions(book, recipe).values()]


@cache
def _questions(book, recipe):
    """{exercise: words of the question and of what its patch adds}."""
    source = book.recipe_path(recipe).read_text(encoding="utf-8")
    plain = re.sub(r"^(?://|#) ?", "", source, flags=re.M)
    known = book.exercise_names(recipe)
    return {each[1]: fitting.words(_TARGET.sub("", each[2]))
            | _of_patch(book, recipe, each[1])
            for each in _ASKED.finditer(plain) if each[1] in known}


def _of_patch(book, recipe, exercise):
    """Words of what a patch adds, and of its name."""
    text = book.patch_path(recipe, exercise).read_text(encoding="utf-8")
    return fitting.words(" ".join([exercise, *re.findall(r"^\+(?!\+\+)(.*)", text,
                                                         re.M)]))
