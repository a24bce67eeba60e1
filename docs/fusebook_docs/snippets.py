"""Numbers and switches in code that pages write out are those of code that runs.

In a recipe they have to stand in its program; on another page in the example
(`.. api-example::`) that is shown before them, whose counterpart they are. A switch in
``literals``, such as ``.foreach = false``, has to stand in the program of the recipe
or one of its answers, on another page in that of any recipe.
"""

import re
from functools import cache

from . import examples, languages

LANGUAGES = ("cpp", "cuda", "python")
_BLOCK = re.compile(r"^( *)\.\. code-block:: *(\w+)\n((?:\1 +[^\n]*\n|\s*\n)*)", re.M)
_EXAMPLE = re.compile(r"^ *\.\. api-example:: (\w+)$", re.M)
_NUMBER = re.compile(r"(?<![\w.])\d[\d']*(?:\.\d*)?(?:e[-+]?\d+)?(?![\w.])")
_SWITCH = re.compile(r"\b(\w+) *= *([Tt]rue|[Ff]alse)\b")
_LITERAL = re.compile(r"``([^`]+)``")
_BESIDE = re.compile(r"//.*|#.*")


def in_prose(book, text):
    """What no program has, in the code of one of prose.py's texts."""
    return text.errors([*_in_literals(book, text), *_in_blocks(book, text)])


def _in_blocks(book, text):
    whole = text.whole
    for block in _BLOCK.finditer(whole):
        code = _BESIDE.sub(_blank, block[3])
        said = list(_NUMBER.finditer(code)) + list(_SWITCH.finditer(code))
        if block[2] not in LANGUAGES or not said:
            continue
        around, where = _around(book, text, whole[:block.start()])
        for match, problem in _wrong(said, around, where):
            yield block.start(3) + match.start(), problem


def _in_literals(book, text):
    names = ([text.home.recipe] if text.home is not None and text.home.recipe
             else book.recipe_names())
    for literal in _LITERAL.finditer(text.whole):
        switches = list(_SWITCH.finditer(literal[1]))
        if switches:
            programs = "\n".join(_programs(book, name) for name in names)
            where = "its program" if len(names) == 1 else "any recipe's program"
            for _, problem in _wrong(switches, programs, where):
                yield literal.start(), problem


@cache
def _programs(book, name):
    """The code of a recipe, and what its answers add."""
    path = book.recipe_path(name)
    code = [languages.of(path).blanked(path.read_text(encoding="utf-8"), path)]
    for exercise in book.exercise_names(name):
        patch = book.patch_path(name, exercise).read_text(encoding="utf-8")
        code += (line[1:] for line in patch.split("\n") if line.startswith("+"))
    return "\n".join(code)


def _wrong(said, around, where):
    """Numbers and switches that the code around does not have, each with why."""
    numbers = {_worth(number) for number in _NUMBER.findall(around)}
    switches = {(name, value.lower()) for name, value in _SWITCH.findall(around)}
    named = {name for name, _ in switches}
    for match in said:
        if match.re is _NUMBER:
            if _worth(match[0]) not in numbers:
                yield match, f"{match[0]!r} is not a number of {where}"
        elif match[1] in named and (match[1], match[2].lower()) not in switches:
            yield match, f"{match[0]!r} is the opposite of what {where} has"


def _around(book, text, before):
    """The code beside a block, and what that is."""
    if text.home is not None and text.home.recipe:
        path = book.recipe_path(text.home.recipe)
        code = languages.of(path).blanked(path.read_text(encoding="utf-8"), path)
        return code, "the recipe's program"
    shown = _EXAMPLE.findall(before)
    if not shown:
        return "", ("an example: show the code that runs before it, by "
                    ".. api-example::")
    return (examples.read(book)[shown[-1]].code,
            f"the example {shown[-1]} before it")


def _worth(number):
    return float(number.replace("'", ""))


def _blank(match):
    return " " * len(match[0])
