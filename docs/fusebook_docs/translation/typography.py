"""How Chinese is set: one rule for all catalogues.

Punctuation of Chinese is full-width, with no blank beside it. Between Chinese
characters and Latin letters or digits stands one blank, between Chinese characters
none. Markup does not count: code and bound numbers are Latin, the words of a link
what they are.
"""

import re

_HAN = "\u3400-\u9fff\uf900-\ufaff"
_WIDE = "，。：；？！（）“”‘’、《》…—"
_FREE = "·→←"  # set as in English
_TITLE = "题"  # a link without words of its own: it gets a Chinese title

_RULES = (
    (rf"[{_HAN}][A-Za-z0-9]|[A-Za-z0-9%][{_HAN}]",
     "needs a blank between Chinese and Latin characters"),
    (rf"[{_HAN}] +[{_HAN}]", "has a blank between Chinese characters"),
    (rf" [{_WIDE}]|[{_WIDE}] ", "has a blank beside full-width punctuation"),
    (rf"[{_HAN}{_WIDE}] ?[,;!?()]|[,;:!?()] ?[{_HAN}{_WIDE}]|[{_HAN}][.:]",
     "has half-width punctuation in Chinese"),
    (rf"[{_HAN}] *[\"']|[\"'] *[{_HAN}]", "has straight quotes in Chinese"),
    (r"  ", "has two blanks"),
    (r"[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]", "has full-width letters or digits"),
)


def wrong(text):
    """What breaks the rule, with the place in the text."""
    plain = shown(text)
    if not re.search(f"[{_HAN}]", plain):
        return
    for pattern, words in _RULES:
        if match := re.search(pattern, plain):
            around = plain[max(match.start() - 8, 0):match.end() + 8]
            yield f"{words}, at {around!r}"


def shown(text):
    """The text as a reader sees it, with x for code and 0 for bound numbers."""
    text = re.sub(r"``.+?``", "x", text).replace("\\_", "_")
    text = re.sub(r":(?:value|constant):`[^`]*`", "0", text)
    text = re.sub(r":(?:api|math|code|option):`[^`]*`", "x", text)
    text = re.sub(r":(?:doc|ref|term):`([^`<]*?)\s*<[^`]*>`", r"\1", text)
    text = re.sub(r":(?:doc|ref|term):`[^`]*`", _TITLE, text)
    text = re.sub(r"`([^`<]*?)\s*<[^`]*>`__?", r"\1", text)
    text = re.sub(r"(?<![:`\w])`[^`<]+`", "x", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\|\w[\w ]*\|", "0", text)
    text = re.sub(r"\*\*(.+?)\*\*", r"\1", text)
    return re.sub(r"\*(.+?)\*", r"\1", text)
