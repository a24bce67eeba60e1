"""Catalogues of gettext: `.po` files, read and written.

Written, a message stands in one line, its places have no line numbers and the
header no date, so that a diff shows what has changed and nothing else.
"""

import re
from dataclasses import dataclass, field

from ..errors import BookError

_ESCAPES = {"\\": "\\", '"': '"', "n": "\n", "t": "\t"}
_CODE = re.compile(r"``[^`]*``|(?<!:)`[^`<]*`(?!_)")
_LETTER = re.compile(r"[A-Za-z]")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_HEADER = """\
msgid ""
msgstr ""
"Project-Id-Version: Fusebook\\n"
"Language: {language}\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"""


@dataclass
class Message:
    """What is said, how it is said in the other language, and where."""

    msgid: str
    msgstr: str = ""
    places: list[str] = field(default_factory=list)
    fuzzy: bool = False
    before: str | None = None  # the msgid that the translation was made from
    line: int = 0  # of `msgid` in its file


def read(path, show=None):
    """The messages of a catalogue, without its header."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BookError(f"cannot be read: {error.strerror}", show or path) from None
    return parse(text, show or path)


def parse(text, show):
    found, now, last = [], Message(""), None
    seen = set()
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if last == "msgstr" and not line.startswith('"'):
            _keep(found, seen, now, show)
            now, last = Message(""), None
        if not line.strip():
            continue
        if line.startswith("#"):
            _comment(now, line)
        else:
            last = _string(now, last, line, number, show)
    return found


def _keep(found, seen, message, show):
    if not message.msgid:  # the header
        return
    if message.msgid in seen:
        raise BookError(f"{message.msgid!r} stands here twice", show, message.line)
    seen.add(message.msgid)
    found.append(message)


def _comment(message, line):
    if line.startswith("#: "):
        message.places += line[3:].split()
    elif line.startswith("#,"):
        message.fuzzy = "fuzzy" in line
    elif line.startswith('#| msgid "'):
        message.before = _unquoted(line[9:])


def _string(message, last, line, number, show):
    key, _, rest = line.partition(" ")
    if key not in ("msgid", "msgstr"):
        key, rest = last, line
    text = _unquoted(rest)
    if key is None or text is None:
        raise BookError(f"not a line of a catalogue: {line!r}", show, number)
    if key == "msgid" and key != last:
        message.line = number
    setattr(message, key, getattr(message, key) + text)
    return key


def _unquoted(text):
    match = _STRING.fullmatch(text.strip())
    if match is None:
        return None
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[0]), match[1])


def _quoted(text):
    for plain, letter in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"),
                          ("\t", "\\t")):
        text = text.replace(plain, letter)
    return f'"{text}"'


def text_of(messages, language):
    """A whole file."""
    parts = [_HEADER.format(language=language)]
    for each in messages:
        lines = [f"#: {place}" for place in each.places]
        if each.fuzzy:
            lines.append("#, fuzzy")
        if each.before is not None:
            lines.append(f"#| msgid {_quoted(each.before)}")
        lines += [f"msgid {_quoted(each.msgid)}",
                  f"msgstr {_quoted(each.msgstr)}", ""]
        parts.append("\n".join(lines))
    return "\n".join(parts)


def merged(wanted, kept, elsewhere=()):
    """`wanted`, with the translations that there are already.

    A message that is new takes that of the most similar one that is gone, marked
    fuzzy; else what another catalogue (`elsewhere`: msgid -> msgstr) says for the
    same words. Code says the same in every language.
    """
    known = {each.msgid: each for each in kept}
    gone = [each for each in kept if each.msgstr
            and each.msgid not in {new.msgid for new in wanted}]
    found = []
    for new in wanted:
        old = known.get(new.msgid)
        if old is not None:
            found.append(Message(new.msgid, old.msgstr, new.places, old.fuzzy,
                                 old.before))
        elif new.msgid in elsewhere:
            found.append(Message(new.msgid, dict(elsewhere)[new.msgid], new.places))
        elif _CODE.search(new.msgid) and not _LETTER.search(
                _CODE.sub("", new.msgid)):
            found.append(Message(new.msgid, new.msgid, new.places))
        else:
            found.append(_resembling(new, gone))
    return found


def _resembling(new, gone):
    like = max(gone, key=lambda each: _likeness(each.msgid, new.msgid),
               default=None)
    if like is None or _likeness(like.msgid, new.msgid) < _ALIKE:
        return Message(new.msgid, "", new.places)
    gone.remove(like)
    return Message(new.msgid, like.msgstr, new.places, True,
                   like.before or like.msgid)


_ALIKE = 0.6


def _likeness(one, other):
    """The share of words that two texts have in common."""
    words, others = one.split(), other.split()
    left = list(others)
    both = sum(1 for word in words if word in left and not left.remove(word))
    return 2 * both / max(len(words) + len(others), 1)
