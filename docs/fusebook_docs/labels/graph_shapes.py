"""What the text of a graph's picture says of its shapes is how they are drawn.

Below `.. graph-picture::`, each part of a sentence that names a shape (`_SHAPES`) names
what has it: what is read, operations, or what is written. How each is drawn comes from
graphs.py.
"""

import re

from .. import graphs

_PICTURE = re.compile(r"^\.\. graph-picture::.*\n(?:   +.*\n|\n)+", re.M)
_OPTION = re.compile(r"^   :[\w-]+:.*\n(?:    +.*\n)*", re.M)
_PART = re.compile(r"[^,;.]+")
_SHAPES = {"round": r"round ends", "box": r"box(?:es)?", "thick": r"thick",
           "dashed": r"dashed"}
_THINGS = {"read": r"read", "operation": r"operations?", "written": r"written|stored"}
_DRAWN = {"read": (False, ""), "operation": (True, ""), "written": (True, "bold")}


def in_prose(_, text):
    return text.errors(_wrong(text.whole))


def _wrong(whole):
    for picture in _PICTURE.finditer(whole):
        words = _OPTION.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), picture[0])
        words = re.sub(r"^.*", "", words, count=1)
        offset = picture.end() - len(words)
        for part in _PART.finditer(words):
            said = _named(_SHAPES, part[0])
            for thing in _named(_THINGS, part[0]) if said else ():
                wrong = said - _shapes(*_DRAWN[thing])
                if wrong:
                    at = offset + part.start() + len(part[0]) - len(part[0].lstrip())
                    yield at, (f"{' '.join(part[0].split())!r}: this is not drawn "
                               f"{' or '.join(sorted(wrong))} "
                               "(docs/fusebook_docs/graphs.py)")


def _named(words, part):
    return {name for name, word in words.items() if re.search(rf"\b(?:{word})\b", part)}


def _shapes(is_operation, style):
    """As the picture of one node has it."""
    plain, drawn = (graphs.svg({"n": graphs.Node("n", is_operation, each)}, "")
                    for each in ("", style))
    height, corner = (float(re.search(rf' {name}="([\d.]+)"', drawn)[1])
                      for name in ("height", "rx"))
    widths = [float(re.search(r'stroke-width="([\d.]+)"', each)[1])
              for each in (plain, drawn)]
    found = {"round"} if corner >= height / 2 else {"box"}
    found |= {"thick"} if widths[1] > widths[0] else set()
    return found | ({"dashed"} if "dasharray" in drawn else set())
