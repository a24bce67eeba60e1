"""What is wrong with a catalogue, message by message.

A translation is complete; it has the code, links, references, quoted numbers and
places for values of the original; its terms are those of docs/terms.toml, and its
punctuation follows one rule.
"""

import re
from collections import Counter

from ..errors import BookError
from . import catalogues, meaning, numerals, terms, typography

# ``code``, `code` of a .md file, :role:`...`, `text <address>`_, |name|, {value}.
_ROLE = re.compile(r":([\w:-]+):`([^`]*)`")
_LITERAL = re.compile(r"``(.+?)``")
_LINK = re.compile(r"`[^`<]*<([^`>]*)>`__?")
_MD_LINK = re.compile(r"\]\(([^)]*)\)")
_MD_CODE = re.compile(r"(?<![:`\w])`([^`<]+)`(?![`_])")
_NAME = re.compile(r"\|\w[\w ]*\||\{\w+\}")
# Roles whose text is a number that is bound to what stands behind it.
_BOUND = ("value", "constant")
_STRONG = re.compile(r"\*\*(.+?)\*\*")
_DIGITS = re.compile(r"\d[\d,]*(?:\.\d+)?")


def problems(book):
    """Everything that is wrong with the catalogues, as errors with file and line."""
    table = terms.read(book)
    yield from terms.problems(book, table)
    for name in catalogues.names(book):
        show = book.show(catalogues.path(book, name))
        try:
            messages = catalogues.read(book, name)
        except BookError as error:
            yield error
            continue
        for message in messages:
            for text in _of(message, table):
                yield BookError(f"{text}: {_short(message.msgid)}", show, message.line)
    yield from _lost(book)


def _short(text, most=60):
    return repr(text if len(text) <= most else text[:most - 3] + "...")


def _of(message, table):
    if not message.msgstr:
        yield "not translated"
        return
    if message.fuzzy:
        was = f" (it said {_short(message.before)})" if message.before else ""
        yield f"changed since it was translated{was}; translate it anew and take " \
              "away '#, fuzzy'"
        return
    yield from differences(message.msgid, message.msgstr)
    yield from terms.wrong(table, message.msgid, message.msgstr)
    yield from numerals.wrong(message.msgid, message.msgstr)
    yield from meaning.wrong(message.msgid, message.msgstr)
    yield from typography.wrong(message.msgstr)


def _lost(book):
    """The tools' own words are read here; a page's, when it is built."""
    wanted = {text: place for text, place in catalogues.own_words(book)}
    path = catalogues.path(book, catalogues.OWN)
    if not path.is_file():
        return
    known = {each.msgid for each in catalogues.read(book, catalogues.OWN)}
    for text, place in wanted.items():
        if text not in known:
            yield BookError(f"not in {book.show(path)}: {_short(text)}. Update the "
                            "catalogues: ./fusebook docs --update-translations", place)


def differences(original, translation):
    """What must be the same in both, and is not."""
    before, after = _fixed(original), _fixed(translation)
    for what in before:
        gone, new = before[what] - after[what], after[what] - before[what]
        for text in gone:
            yield f"lacks {what} {text!r}"
        for text in new:
            yield f"has {what} {text!r}, which the original has not"


def _fixed(text):
    """{kind: how often each stands in the text}."""
    found = {"the number": Counter(), "the reference": Counter(),
             "the code": Counter(), "the link": Counter(), "the place": Counter()}

    def take(kind, value):
        found[kind][value] += 1
        return " "

    text = _LITERAL.sub(lambda m: take("the code", m[1]), text)
    text = _ROLE.sub(lambda m: take(*_role(m)), text)
    text = _LINK.sub(lambda m: take("the link", m[1]), text)
    text = _MD_LINK.sub(lambda m: take("the link", m[1]), text)
    text = _MD_CODE.sub(lambda m: take("the code", m[1]), text)
    _NAME.sub(lambda m: take("the place", m[0]), text)
    return found


def _role(match):
    role, content = match[1], " ".join(match[2].split())
    angle = re.fullmatch(r"(.*?)\s*<(.+)>", content)
    target = angle[2] if angle else content
    if role in _BOUND:
        return "the number", f":{role}:`{target}`"
    return "the reference", f":{role}:`{target}`"
