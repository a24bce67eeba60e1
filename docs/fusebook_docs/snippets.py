"""Numbers in code that pages write out are those of code that runs.

In a recipe they have to stand in its program; on another page in the example
(`.. api-example::`) that is shown before them, whose counterpart they are.
"""

import re

from . import examples, languages
from .errors import BookError

LANGUAGES = ("cpp", "cuda", "python")
_BLOCK = re.compile(r"^( *)\.\. code-block:: *(\w+)\n((?:\1 +[^\n]*\n|\s*\n)*)", re.M)
_EXAMPLE = re.compile(r"^ *\.\. api-example:: (\w+)$", re.M)
_NUMBER = re.compile(r"(?<![\w.])\d[\d']*(?:\.\d*)?(?:e[-+]?\d+)?(?![\w.])")
_BESIDE = re.compile(r"//.*|#.*")


def in_prose(book, text):
    """Numbers of one of prose.py's texts that no program has."""
    whole = "\n".join(line.text for line in text.lines) + "\n"
    for block in _BLOCK.finditer(whole):
        if block[2] not in LANGUAGES:
            continue
        numbers = list(_NUMBER.finditer(_BESIDE.sub(_blank, block[3])))
        if not numbers:
            continue
        known, where = _around(book, text, whole[:block.start()])
        for number in numbers:
            if _worth(number[0]) not in known:
                offset = block.start(3) + number.start()
                line = text.lines[whole.count("\n", 0, offset)].number
                yield BookError(f"{number[0]!r} is not a number of {where}",
                                text.path, line)


def _around(book, text, before):
    """The numbers of the code beside a block, and what that is."""
    if text.home is not None and text.home.recipe:
        path = book.recipe_path(text.home.recipe)
        code = languages.of(path).blanked(path.read_text(encoding="utf-8"), path)
        return _numbers(code), "the recipe's program"
    shown = _EXAMPLE.findall(before)
    if not shown:
        return set(), ("an example: show the code that runs before it, by "
                       ".. api-example::")
    return (_numbers(examples.read(book)[shown[-1]].code),
            f"the example {shown[-1]}, which stands before it")


def _numbers(code):
    return {_worth(number) for number in _NUMBER.findall(code)}


def _worth(number):
    return float(number.replace("'", ""))


def _blank(match):
    return " " * len(match[0])
