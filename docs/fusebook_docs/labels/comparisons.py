"""What is called faster, slower or half is so in the numbers.

After a ratio, `:value:` of one time to another, stand "as fast as" what took the first
time, or "the time of" what took the second; what is not named after it is named before.
Other words that compare (`_WORDS`) are bound in `docs/claims.toml`:

    [[compared]]
    page = "docs/about/fewer_bytes.rst"
    says = "little more than half of its bytes"
    holds = ["0.5 < q('codes: # bytes @ fewer_bytes') / q('float32: # bytes @ fewer_bytes') < 0.75"]

`says` is part of one sentence, and `holds` conditions, where `q` is a number as `:value:`
quotes it, `us(kind, case, variant)` a time of docs/measurements/, and `code(file, text)`
whether a file has a text. `is` in the place of `holds` says why there is no number.
"""

import re
import tomllib
from functools import cache

from .. import measurements, numbers, quotes
from ..claims import FILE
from ..errors import BookError

_RATIO = re.compile(r":value:`\s*(\w+_us)\s+/\s+(\w+_us)(?:\s+@[^`]*)?`")
_AFTER = re.compile(r"\s+(as\s+fast|the\s+time)(?:\s+(?:as|of)\s+([\w -]+))?")
# What prose calls the times.
NAMES = {
    "op_by_op_us": ("op by op", "no fusion"),
    "horizontal_us": ("eager", "horizontal"),
    "vertical_us": ("vertical",),
    "both_us": ("both", "compiled", "it is"),
    "eager_us": ("eager",),
    "compiled_us": ("compiled",),
}
_WORDS = re.compile(r"\b(?:faster|slower|fastest|slowest|slowly|half|twice|double[sd]?|"
                    r"a third|a quarter)\b|\b(?:times\s+as\s+(?:fast|slow|long|much)\b)", re.I)
_CODE = re.compile(r"^\s*:[\w-]+:\s.*$|``[^`]*``|:\w+:`[^`]*`|^\s*\.\. .*$|`[^`]*<[^`]*>`_+", re.M)
_NOT = re.compile(r"``double``|rounds\s+twice|computed\s+twice|optimizer,\s+twice|"
                  r"model,\s+twice|\btwice\s+(?=that|and)")
_ALT = re.compile(r":alt:(?:.|\n)*?(?=\n\s*\n)")


def in_prose(book, text):
    return text.errors([*_ratios(text.whole), *_words(book, str(text.path), text.whole)])


def _ratios(whole):
    for each in _RATIO.finditer(whole):
        above, below = each.groups()
        after = _AFTER.match(whole, each.end())
        before = whole[max(whole.rfind("\n\n", 0, each.start()), each.start() - 110, 0):
                       each.start()]
        before = before[_last_end(before):]
        words = " ".join(after[1].split()) if after else "as fast"
        named, subject = (above, below) if words == "as fast" else (below, above)
        if after is None and not re.match(r"[,.;]", whole[each.end():]):
            yield each.start(), ("'as fast as' or 'the time of' has to follow a ratio "
                                 "of times")
        elif after and after[2] and not _says(named, after[2]):
            yield each.start(), (f"{words!r} as {' '.join(after[2].split())!r}, but "
                                 f"{named} is: {' or '.join(NAMES.get(named, ()))}")
        elif not (after and after[2]) and not _says(subject, before):
            yield each.start(), (f"nothing before it says what {subject} is: "
                                 f"{' or '.join(NAMES.get(subject, ()))}")


def _last_end(text):
    """Where the words about what came before end."""
    ends = [m.end() for m in re.finditer(r"`\s+(?:as fast|the time)[^,.]*[,.]|[.;]\s",
                                         text)]
    return max(ends, default=0)


def _says(name, words):
    words = " ".join(words.lower().split())
    return any(each in words for each in NAMES.get(name, ()))


def _words(book, page, whole):
    plain = _CODE.sub(_blank, _NOT.sub(_blank, _ALT.sub(_blank, whole)))
    bound = []
    for table in _compared(book):
        if table["page"] != page:
            continue
        for place in _places(table, whole):
            bound.append(place.span())
            for condition in table.get("holds", ()):
                if not holds(book, condition):
                    yield place.start(), (f"says {table['says']!r}, but {condition} "
                                          "does not hold")
    for each in _WORDS.finditer(plain):
        if not any(a <= each.start() < b for a, b in bound):
            yield each.start(), (f"{each[0]!r} compares: say in {FILE}, under "
                                 "[[compared]], what holds")


def misplaced(book, texts):
    """Lines of the list that no page has, or that it has twice."""
    for table in _compared(book):
        whole = "\n".join(text.whole for text in texts
                          if str(text.path) == table["page"])
        count = len(list(_places(table, whole)))
        if count != 1:
            yield BookError(f"{table['says']!r} stands there {count} times; {FILE} binds "
                            "what it says", table["page"], 1)


def _places(table, whole):
    return re.finditer(r"\s+".join(map(re.escape, table["says"].split())), whole)


def holds(book, condition):
    """Whether a condition on numbers of samples and measurements is true."""
    def q(quote):
        shown = quotes.quoted(book, "value", quote, quotes.Home()).text
        return numbers.worth(shown.rstrip("."))[0]

    def us(kind, case, variant):
        return measurements.load(book).row(kind, case, variant).us

    def code(file, text):
        return text in " ".join((book.root / file).read_text(encoding="utf-8").split())

    known = {"q": q, "us": us, "code": code, "all": all, "any": any, "max": max, "min": min}
    return bool(eval(condition, {"__builtins__": {}, **known}))


@cache
def _compared(book):
    text = (book.root / FILE).read_text(encoding="utf-8")
    return tomllib.loads(text)["compared"]


def _blank(match):
    return re.sub(r"[^\n]", " ", match[0])
