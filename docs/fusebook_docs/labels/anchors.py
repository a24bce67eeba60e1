"""A link of a Markdown page leads to a file or heading that is there, and that is about
what its paragraph says.

A heading is meant by its own words, or by those that its section has and few others of
the file have. What a link calls a table has one.
"""

import re
from collections import Counter

from ..errors import errors_in
from . import fitting

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)([^)#\s]*)(?:#([\w-]+))?\)")
_HEADING = re.compile(r"^#+ (.+)$", re.M)
_CODE = re.compile(r"^```.*?^```", re.S | re.M)


def in_markdown(book, show, text):
    return errors_in(show, text, _problems(book, show, text))


def _problems(book, show, text):
    plain = _CODE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    for each in _LINK.finditer(plain):
        path = (book.root / show).parent / each[2] if each[2] else book.root / show
        message = None
        if not path.is_file():
            message = f"there is no file {each[2]!r}"
        elif each[3]:
            target = text if path == book.root / show else path.read_text("utf-8")
            message = _wrong(_sections(target), each, _paragraph(plain, each))
        if message:
            yield each.start(), message


def _wrong(sections, link, words):
    if link[3] not in sections:
        return f"there is no heading #{link[3]}"
    heading, body = sections[link[3]]
    if "table" in link[1] and "\n|" not in body:
        return f"the section {heading!r} has no table"
    if fitting.words(heading) & fitting.words(f"{link[1]} {words}"):
        return None
    count = Counter(word for each in sections.values()
                    for word in fitting.words(" ".join(each)))
    scores = {name: sum(1 / count[word] for word in fitting.words(words)
                        & fitting.words(f"{title} {each}"))
              for name, (title, each) in sections.items()}
    better = [name for name, score in scores.items() if score > scores[link[3]]]
    return f"nothing beside the link tells of {heading!r}" if better else None


def _sections(text):
    """{anchor: (heading, what stands under it)}."""
    found = list(_HEADING.finditer(_CODE.sub(
        lambda m: re.sub(r"[^\n]", " ", m[0]), text)))
    ends = [each.start() for each in found[1:]] + [len(text)]
    return {re.sub(r"[^\w -]", "", each[1]).lower().replace(" ", "-"):
            (each[1], text[each.end():end])
            for each, end in zip(found, ends, strict=True)}


def _paragraph(whole, match):
    """The paragraph or row around, without links, and the heading above."""
    begin = max(whole.rfind("\n\n", 0, match.start()), 0)
    end = whole.find("\n\n", match.end())
    rows = whole[begin:end if end >= 0 else len(whole)]
    if whole[whole.rfind("\n", 0, match.start()) + 1] in "|-":
        start = whole.rfind("\n", 0, match.start()) + 1
        rows = re.split(r"\n(?=[|-] ?)", whole[start:end])[0]
    heading = _HEADING.findall(whole, 0, match.start())[-1:]
    return " ".join([_LINK.sub(" ", rows), *heading])
