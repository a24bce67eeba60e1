"""The terms of the book in Chinese: docs/terms.toml.

Where a message has one of a term's `forms` (default: `en` and its plural), its
translation has `zh`, or one of `or`; and no translation has one of `not`. (`means` is
for the glossary's own words: labels/glossary.py.)
"""

import re
import tomllib
from dataclasses import dataclass

from ..errors import BookError
from . import catalogues

_KEYS = {"en", "zh", "forms", "or", "not", "means"}
_CODE = re.compile(r"``.+?``|(?<![:\w`])`[^`<]+`(?!_)|:(?:value|constant|api|doc):"
                   r"`[^`]*`|`[^`<]*<[^`>]*>`__?|<[^<>`]*>|\{\w+\}|https?://\S+")


@dataclass(frozen=True)
class Term:
    en: str
    zh: str
    forms: tuple[str, ...]
    others: tuple[str, ...]
    never: tuple[str, ...]
    line: int


def path(book):
    return book.root / "docs" / "terms.toml"


def read(book):
    """Every term of the table; none where there is no table."""
    file = path(book)
    if not file.is_file():
        return []
    text, show = file.read_text(encoding="utf-8"), book.show(file)
    try:
        tables = tomllib.loads(text).get("term", [])
    except tomllib.TOMLDecodeError as error:
        raise BookError(f"not a table of terms: {error}", show, 1) from None
    return [_term(raw, text, show) for raw in tables]


def _term(raw, text, show):
    en = raw.get("en", "")
    line = text[:max(text.find(f'en = "{en}"'), 0)].count("\n") + 1
    if set(raw) - _KEYS or not en or not raw.get("zh"):
        raise BookError(f"a term needs 'en' and 'zh', and may have 'forms', 'or', "
                        f"'not' and 'means': {raw}", show, line)
    forms = raw.get("forms", (en, f"{en}s"))
    return Term(en, raw["zh"], tuple(forms), tuple(raw.get("or", ())),
                tuple(raw.get("not", ())), line)


def problems(book, table):
    """Terms that are in the table twice, or in the glossary and not in the table."""
    show, seen = book.show(path(book)), {}
    for term in table:
        if term.en in seen:
            yield BookError(f"{term.en!r} is here twice, first in line "
                            f"{seen[term.en]}", show, term.line)
        seen.setdefault(term.en, term.line)
    if not catalogues.path(book, "glossary").is_file():
        return
    for name, line in glossary(book):
        if name not in seen:
            yield BookError(f"{name!r} is in the glossary, but not in {show}",
                            book.show(book.root / "docs" / "glossary.rst"), line)


def glossary(book):
    """(term, line) of the glossary."""
    lines = (book.root / "docs" / "glossary.rst").read_text("utf-8").split("\n")
    inside = False
    for number, line in enumerate(lines, 1):
        inside = inside or line.startswith(".. glossary::")
        if inside and re.match(r"   [^\s:]", line):
            yield line.strip(), number


def wrong(table, original, translation):
    """Terms that the translation calls something else."""
    words = _CODE.sub(" ", original)
    for term in table:
        for never in term.never:
            if never in translation and never not in term.zh:
                yield f"says {never!r}, where docs/terms.toml has {term.zh!r}"
        if _has(words, term.forms) and not any(
                each in translation for each in (term.zh, *term.others)):
            yield f"has no {term.zh!r} for {term.en!r} (docs/terms.toml)"


def _has(text, forms):
    return any(re.search(rf"(?<![\w-]){re.escape(form)}(?![\w-])", text, re.IGNORECASE)
               for form in forms)
