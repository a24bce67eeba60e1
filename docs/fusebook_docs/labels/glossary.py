"""A term of the glossary has its own definition, and opposites are not mixed up.

Each definition says what `means` of docs/terms.toml says of its term, and no other does.
Wherever one of two opposites is named, its sentence has words of that one (`OPPOSITES`),
no fewer than of the other.
"""

import re
import tomllib

from ..errors import BookError
from ..translation import terms

PAGE = "docs/glossary.rst"
# Words that are true of one alone.
OPPOSITES = (
    {"horizontal": (r"\bacross\b", r"\ball (?:other )?tensors\b", r"\bmany tensors\b",
                    r"\bone operation\b", r"\boperation\w* (?:for|over) all\b",
                    r"\bforeach\b", r"\bsaves? (?:more )?launches\b", r"no traffic"),
     "vertical": (r"\bdown\b", r"\balong\b", r"\bchain\b", r"\bone tensor\b",
                  r"\b(?:all|many) operations\b", r"\bregisters\b",
                  r"\bsaves (?:memory )?traffic\b", r"\bin between\b")},
)
_ENTRY = re.compile(r"^   (\S.*)\n((?:      .*\n|\n)+)", re.M)
_ROLE = re.compile(r":\w+:`([^`<]*?)\s*(?:<[^`]*>)?`")
_LITERAL = re.compile(r"``[^`\n]+``")
_CLAUSE = re.compile(r"\n\s*\n|(?<=[.;?!])[)]?\s|(?<=:)\s")


def in_prose(book, text):
    whole = "\n".join(line.text for line in text.lines) + "\n"
    found = _definitions(book, whole) if str(text.path) == PAGE else ()
    for start, message in [*found, *_opposites(whole)]:
        yield BookError(message, text.path,
                        text.lines[whole.count("\n", 0, start)].number)


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
    whole = _LITERAL.sub(lambda m: " " * len(m[0]), whole)
    ends = [m.end() for m in _CLAUSE.finditer(whole)]
    for pair in OPPOSITES:
        for name in pair:
            for each in re.finditer(rf"\b{name}(?:ly)?\b(?!_)", whole, re.I):
                begins = [0, *(at for at in ends if at <= each.start())]
                end = min((at for at in ends if at >= each.end()), default=len(whole))
                paragraph = whole.rfind("\n\n", 0, each.start())
                clause = whole[begins.pop():end]
                while not _counts(pair, clause) and begins and begins[-1] > paragraph:
                    clause = whole[begins.pop():end]
                other = next(key for key in pair if key != name)
                counts = _counts(pair, clause)
                if counts.get(name, 0) < counts.get(other, 0) and not re.search(
                        rf"\b{other}", clause, re.I):
                    yield each.start(), (f"{each[0]!r} stands where words of {other} "
                                         "fusion do")


def _counts(pair, clause):
    plain = " ".join(re.sub("[*`]", "", clause).split())
    found = {name: sum(bool(re.search(word, plain)) for word in words)
             for name, words in pair.items()}
    return {name: count for name, count in found.items() if count}
