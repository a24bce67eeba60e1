"""A quoted number is one of what the sentence counts.

`:value:` quotes a line that says what is counted: launches, loads, stores, bytes,
compilations. Where the next words count something of this kind, or what was said since
the number before reads or writes, it is that: no stores stand where loads were quoted.
"""

import re

from .. import quotes
from . import fitting

# What is counted, and how prose speaks of it, as stems.
COUNTED = {
    "launch": {"launch"},
    "load": {"load", "read"},
    "stor": {"stor", "writ"},
    "byt": {"byt"},
    "compilation": {"compilation", "kernel"},
    "recompil": {"recompil"},
    "kernel": {"kernel"},
    "phas": {"phas"},
    "paramet": {"paramet", "tensor", "layer"},  # what has numbers
}
_END = re.compile(r"\n\s*\n|(?<=[.?!:;])[)]?\s")
_VERBS = {"load", "read", "stor", "writ"}
_NEXT = re.compile(r"(?!\s+(?:and|where|with)\b)\s+[\w-]+(?:\s+(?!and\b|where\b|with\b)[\w-]+)?")


def in_prose(_, text):
    return text.errors(_wrong(text.whole))


def _wrong(whole):
    ends = [0, *(m.end() for m in _END.finditer(whole)), len(whole)]
    last = 0
    for each in quotes.ROLE.finditer(whole):
        begin = max(last, max(at for at in ends if at <= each.start()))
        end = min(at for at in ends if at >= each.end())
        last = each.end()
        own = _counted(each)
        if not own:
            continue
        after = _NEXT.match(whole, each.end(), end)
        said = _nouns(after[0] if after else "") or (
            _nouns(whole[begin:each.start()]) & _VERBS)
        if said and not said & own:
            yield each.start(), (f"{' '.join(each[2].split())!r} is quoted where "
                                 f"{', '.join(sorted(said))} is counted")


def _counted(role):
    """How prose may speak of what a role quotes; nothing where it is no count."""
    if role[1] != "value" or "<" not in role[2]:
        return set()
    what = re.split(r"\s@\s", quotes.target(role[2]))[0]
    names = fitting.words(what) & COUNTED.keys()
    return set().union(*(COUNTED[name] for name in names))


def _nouns(words):
    return fitting.words(quotes.ROLE.sub(" ", words)) & set().union(*COUNTED.values())
