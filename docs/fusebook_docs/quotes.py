"""Numbers in prose that are bound to where they come from.

`:value:` quotes what a program printed, and `:constant:` what stands in code:

    :value:`speedup`                            a value that varies, by its name
    :value:`horizontal_us / both_us`            the ratio of two of them
    :value:`28 <bytes per element: #>`          # is the number in a printed line
    :value:`four <loads: ...>`                  ... is a printed list, to count
    :constant:`sixteen <Linear room(#, 1>`      # is the number in a line of code
    :constant:`three <enum class Policy { ... }>`
    :constant:`0.985`                           the code has this very number

What varies is written by the tool. What is the same in every run is written by
the author, in digits or in words, and compared here. Blanks in a quote stand
for any blanks, line ends included in code.

A printed line is looked up in the step around it, then in the whole sample of
the page, and code in the whole program. ` @ ` and a step's title, a recipe
(`recipe.exercise` for its answer), a device (`cpu`, `h200`), what was measured on ranks
(`docs/measurements/ranks.json`) or, for code, a file says where else.
"""

import re
from dataclasses import dataclass, replace

from . import (languages, literate, measurements, numbers, patches,
               rank_measurements, samples)
from .errors import BookError
from .values import quantity_text

ROLES = ("value", "constant")
ROLE = re.compile(rf":({'|'.join(ROLES)}):`([^`]*)`")
_NUMBER = r"([-+]?\d[\d']*(?:\.\d*)?(?:e[-+]?\d+)?)"
_HOLES = ("#", "...")
_SOURCES = (".cpp", ".cu", ".def", ".h", ".py")


@dataclass(frozen=True)
class Home:
    """Where a quote stands."""

    recipe: str | None = None
    step: str | None = None
    exercise: str | None = None
    is_answer: bool = False  # else the exercise's question


@dataclass(frozen=True)
class Quote:
    """What a reader sees, and what it was made from."""

    text: str
    kind: str | None = None  # of the value, if it varies
    files: tuple = ()


@dataclass(frozen=True)
class _Place:
    """Where to look: what stands behind the @s, or what is around."""

    recipe: str | None
    exercise: str | None
    step: str | None = None
    device: str = "cpu"
    file: object = None
    prefer: str | None = None  # a step to look at first


def quoted(book, role, content, home):
    """What a role shows. Throws BookError when it is not true."""
    return {"value": _value, "constant": _constant}[role](book, content, home)


def filled(book, text, home):
    """A plain text with what its roles show, for where no markup is."""
    return ROLE.sub(
        lambda match: quoted(book, match[1], match[2], home).text, text)


def wrong_unit(book, role, content, home, unit):
    """Why a unit does not fit to the number before it, or None.

    It has to stand where the number does: on the lines of the step, in the quote or
    in the code. What varies shows its own.
    """
    what, place = _place(book, target(content), home, code=role == "constant")
    if role == "constant":
        around = _code(book, place)[0]
    elif any(hole in what for hole in _HOLES):
        sample = samples.load(book, place.device, place.recipe, place.exercise)
        pattern = _pattern(what, r"[ \t]+")
        around = " ".join(step.text for step in sample.steps
                          if pattern.search(step.text))
    else:
        return f"{what!r} shows its own unit: leave out {unit!r}"
    stem = unit.removesuffix("s") if len(unit) > 2 else unit
    if re.search(rf"(?<![a-zA-Z]){re.escape(stem)}s?(?![a-zA-Z])", f"{what} {around}"):
        return None
    return f"{unit!r} does not stand where {what!r} does"


def target(content):
    """What is quoted, without what is shown for it."""
    return _parsed(content)[1]


def _parsed(content):
    """(text to show or None, what is quoted)."""
    content = " ".join(content.split())
    match = re.fullmatch(r"([^<]*?)\s*<(.+)>", content)
    return (match[1], match[2]) if match else (None, content)


def _place(book, target, home, *, code=False):
    what, *wheres = re.split(r"\s@\s", target)
    own = code or home.is_answer
    place = _Place(home.recipe, home.exercise if own else None,
                   prefer=home.step)
    for where in wheres:
        recipe, _, exercise = where.partition(".")
        file = book.root / where
        if recipe in book.recipe_names():
            place = replace(place, recipe=recipe, exercise=exercise or None,
                            prefer=None)
        elif (book.samples / where).is_dir():
            place = replace(place, device=where)
        elif not code and file == measurements.path(book, rank_measurements.NAME):
            place = replace(place, file=file, prefer=None)
        elif code and file.suffix and file.is_file():
            place = replace(place, file=file, prefer=None)
        else:
            place = replace(place, step=where)
    if place.recipe is None and place.file is None:
        raise BookError(f"{target!r} does not say which recipe it is from: end "
                        "it with ' @ ' and the recipe's name")
    return what, place


# ---- what was printed -------------------------------------------------------


def _value(book, content, home):
    shown, target = _parsed(content)
    what, place = _place(book, target, home)
    if place.file is not None:
        return _named(shown, what, rank_measurements.load(book).values,
                      (place.file,), book.show(place.file))
    sample = samples.load(book, place.device, place.recipe, place.exercise)
    files = book.sample_paths(place.device, place.recipe, place.exercise)
    if any(hole in what for hole in _HOLES):
        found, where = _printed(book, what, sample, place, files[0])
        return Quote(_agreed(shown, found, where), None, files)
    return _named(shown, what, sample.values, files, book.show(files[1]))


def _named(shown, what, known, files, show):
    """A value by its name, or a ratio of two."""
    if shown is not None:
        raise BookError(f"{what!r} is the name of a value that varies, so the "
                        f"text {shown!r} would go stale: write only the name")
    parts = [part.strip() for part in what.split(" / ")]
    for part in parts:
        if part not in known:
            raise BookError(_unknown(part, known, show))
    values = [known[part] for part in parts]
    if len(values) == 1:
        return Quote(values[0].shown.strip(), values[0].kind, files)
    return Quote(_ratio(what, values), "measured", files)


def _unknown(name, values, path):
    known = ", ".join(sorted(name for name, value in values.items()
                             if value.kind != "place")) or "none"
    return (f"no value {name!r} in {path}; it has: {known}. To quote a line of "
            "output, write # in place of its number")


def _ratio(what, values):
    if len(values) != 2 or any(v.kind != "measured" for v in values):
        raise BookError(f"{what!r} is not a ratio of two measured values")
    if values[0].unit != values[1].unit:
        raise BookError(f"{what!r} divides {values[0].unit} by "
                        f"{values[1].unit}")
    return quantity_text(values[0].value / values[1].value, "x")


def _printed(book, what, sample, place, path):
    """What a printed line has in the place of the hole, and where."""
    pattern = _pattern(what, r"[ \t]+")
    steps = [step for step in sample.steps if place.step in (None, step.title)]
    if not steps:
        known = ", ".join(repr(title) for title in sample.titles)
        raise BookError(f"{place.recipe} has no step {place.step!r}; it has "
                        f"{known}")
    own = [step for step in steps if step.title == place.prefer
           and pattern.search(step.text)]
    show = book.show(path)
    return _only(what, {step.title: _counted(pattern, step.text)
                        for step in own or steps}, show)


def _pattern(what, blanks):
    """A quote as a regular expression; its group is what is in the hole."""
    holes = [hole for hole in _HOLES if hole in what]
    if len(holes) != 1 or what.count(holes[0]) != 1:
        raise BookError(f"{what!r} must have one # in place of a number, or "
                        "one ... in place of a list")
    before, _, after = what.partition(holes[0])
    if holes[0] == "#":
        hole = rf"(?<![\w.]){_NUMBER}(?![\w'])"
    else:
        hole = r"([^\n]*)" if not after.strip() else r"([^{}()]*?)"
    ends = [blanks.join(re.escape(word) for word in part.split())
            for part in (before, after)]
    left = blanks.replace("+", "*") if before.endswith(" ") or (
        holes[0] == "...") else ""
    right = blanks.replace("+", "*") if after.startswith(" ") else ""
    start = r"(?<!\w)" if re.match(r"\w", before) else ""
    return re.compile(f"{start}{ends[0]}{left}{hole}{right}{ends[1]}")


def _counted(pattern, text):
    """The numbers, or the lengths of the lists, that fit."""
    lists = "[^" in pattern.pattern and _NUMBER not in pattern.pattern
    return [_length(match[1]) if lists else match[1].replace("'", "")
            for match in pattern.finditer(text)]


def _length(text):
    items = [item for item in text.split(",") if item.strip()]
    return "0" if text.strip() == "nothing" else str(len(items))


def _only(what, found, show):
    """The one number in {place: [numbers]}, and that place."""
    different = {float(number): (number, where)
                 for where, all in found.items() for number in all}
    if not different:
        step = next(iter(found)) if len(found) == 1 else ""
        raise BookError(f"{what!r} does not appear in "
                        + (f"{step!r} of " if step else "") + str(show))
    if len(different) > 1:
        shown = ", ".join(f"{number} in {where!r}"
                          for number, where in different.values())
        raise BookError(f"{what!r} has several numbers in {show}: {shown}. Quote "
                        "more of the line, or name the step: ' @ ' and its "
                        "title")
    (number, where), = different.values()
    return number, f"{show}, {where!r}" if where else str(show)


def _agreed(shown, found, where):
    if shown is None:
        return found
    if not numbers.says(shown, float(found)):
        raise BookError(f"says {shown!r}, but it is {found} in {where}")
    return shown


# ---- what stands in the code ------------------------------------------------


def _constant(book, content, home):
    shown, target = _parsed(content)
    what, place = _place(book, target, home, code=True)
    code, show, files = _code(book, place)
    if shown is None:
        return Quote(_in_step(what, code, show), None, files)
    pattern = _pattern(what, r"\s*")
    found, where = _only(what, {"": _counted(pattern, code)}, show)
    return Quote(_agreed(shown, found, where), None, files)


def _in_step(text, code, show):
    """A number that speaks for itself: no other has its digits."""
    worth = numbers.worth(text)
    if worth is None or not re.fullmatch(numbers.NUMERAL, text) or (
            worth[0] == int(worth[0]) and worth[0] < 10):
        raise BookError(f"{text!r} is too common: quote the code around it, "
                        f"`{text} <i < #>`")
    if not re.search(rf"(?<![\w.]){re.escape(text)}(?![\w.]|'\d)", code):
        raise BookError(f"{text!r} is not in the code of {show}")
    return text


def _code(book, place):
    """Code without comments, its name, and the files it is from."""
    if place.file is not None:
        text = place.file.read_text(encoding="utf-8")
        show = book.show(place.file)
        if place.file.suffix in _SOURCES:
            text = languages.of(show).blanked(text, show, keep_strings=True)
        return text, show, (place.file,)
    path = book.recipe_path(place.recipe)
    source, files = path.read_text(encoding="utf-8"), (path,)
    if place.exercise:
        source = patches.patched(book, place.recipe, place.exercise)
        files = (path, book.patch_path(place.recipe, place.exercise))
    show, language = book.show(files[-1]), languages.of(path)
    if place.step is not None:
        source = _step_code(literate.parse(source, show, language), place.step)
    return language.blanked(source, show, keep_strings=True), show, files


def _step_code(recipe, title):
    for part in recipe.steps:
        if part.title == title:
            return "\n".join(line.text for line in part.shown)
    known = ", ".join(repr(title) for title in recipe.step_titles)
    raise BookError(f"unknown step {title!r}; known: {known}")
