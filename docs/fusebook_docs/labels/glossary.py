"""A term of the glossary has its own definition, and opposites are not mixed up.

Each definition says what `means` of docs/terms.toml says of its term, and no other does.
Wherever one of two opposites is named, its sentence has words of that one (`OPPOSITES`),
no fewer than of the other.
"""

import re
import tomllib

from ..translation import terms

PAGE = "docs/glossary.rst"
# Words that are true of one alone.
OPPOSITES = (
    {"horizontal": (r"across", r"all (?:other )?tensors", r"many tensors", r"one operation",
                    r"operation\w* (?:for|over) all", r"foreach",
                    r"saves? (?:more )?launches", r"no traffic"),
     "vertical": (r"down", r"along", r"chain", r"one tensor", r"(?:all|many) operations",
                  r"registers", r"saves (?:memory )?traffic", r"in between")},
    {"``promote``": (r"one recompile", r"inputs of all", r"if none is given", "default",
                     "if you name none"),
     "``specialize``": (r"each (?:new )?value", r"few values", r"at its word", r"at most"),
     "``fail_on_recompile``": (r"an error", r"throws", r"tests")},
    {"fast mode": (r"one copy",), "exact mode": (r"as many times",)},
)
_ENTRY = re.compile(r"^   (\S.*)\n((?:      .*\n|\n)+)", re.M)
_ROLE = re.compile(r":\w+:`([^`<]*?)\s*(?:<[^`]*>)?`")
_LITERAL = re.compile(r"``[^`\n]+``")
_CLAUSE = re.compile(r"\n\s*\n|(?<=[.;?!])[)]?\s|(?<=:)\s")


def in_prose(book, text):
    found = _definitions(book, text.whole) if str(text.path) == PAGE else ()
    yield from text.errors([*found, *_opposites(text.whole)])


def _definitions(book, whole):
    table = tomllib.loads(terms.path(book).read_text(encoding="utf-8"))["term"]
    means = {each["en"]: each["means"] for each in table if "means" in each}
    for each in _ENTRY.finditer(whole, whole.index(".. glossary::")):
        if each[1].startswith(":"):
            continue
        said = " ".join(re.sub("[`*]", "", _ROLE.sub(r"\1", each[2])).split())
        if each[1] not in means:
            yield each.start(), f"docs/terms.toml does not say what {each[1]!r} means"
        elif means[each[1]] not in said:
            yield each.start(), (f"the definition of {each[1]!r} does not say "
                                 f"{means[each[1]]!r} (docs/terms.toml)")
        for term, words in means.items():
            if term != each[1] and words in said:
                yield each.start(), f"{each[1]!r} is defined as {term!r} is"


def _opposites(whole):
    ends = [m.end() for m in _CLAUSE.finditer(whole)]
    prose = _LITERAL.sub(lambda m: " " * len(m[0]), whole)
    for opposites in OPPOSITES:
        for name in opposites:
            pattern = r"\s+".join(map(re.escape, name.split()))
            text = whole if name.startswith("`") else prose
            for each in re.finditer(rf"(?<!\w){pattern}(?:ly)?(?!\w)", text, re.I):
                counts = _counts(opposites, _clause(whole, ends, each, opposites))
                said = [other for other in opposites if other != name
                        and counts[other] > counts[name] and not counts[f"named {other}"]]
                if said:
                    yield each.start(), f"{each[0]!r} stands where words of {said[0]} do"


def _clause(whole, ends, match, opposites):
    """Where a name stands; of "This is ...", also what is before it in its paragraph until
    there is a word of one of the opposites."""
    begins = [0, *(at for at in ends if at <= match.start())]
    end = min((at for at in ends if at >= match.end()), default=len(whole))
    paragraph = whole.rfind("\n\n", 0, match.start())
    clause = whole[begins.pop():end]
    refers = clause.lstrip(" /").startswith("This")
    while refers and begins and begins[-1] > paragraph and not any(
            _counts(opposites, clause)[name] for name in opposites):
        clause = whole[begins.pop():end]
    return clause


def _counts(opposites, clause):
    """How many words of each are said, and whether it is named."""
    plain = " ".join(re.sub("[*]", "", clause).split())
    found = {name: sum(bool(re.search(rf"\b{word}\b", plain)) for word in words)
             for name, words in opposites.items()}
    return found | {f"named {name}": name.lower() in plain.lower() for name in opposites}
