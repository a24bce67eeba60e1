"""A shown file, output, step or graph is the one that is spoken of.

A caption of code is the name of its file, an output follows the program that prints it,
and each program fits the words of its section better than another of the page. An
excerpt of a recipe is the step that a `:constant:` or `:value:` of its section names;
where none does, its title has a word of
the section's. A drawn graph is called what its log
calls it.
"""

import re
from pathlib import PurePosixPath

from .. import samples
from . import fitting

_INCLUDED = re.compile(r"^( *)\.\. literalinclude:: (\S+)\n((?:\1 +:.*\n)*)", re.M)
_OPTION = re.compile(r":([\w-]+): *(.*)")
_PRINTS = "What it prints"
_EXCERPT = re.compile(r"^( *)\.\. recipe-excerpt:: (\w+)\n((?:\1 +:.*\n)*)", re.M)
_SECTION = re.compile(r"^(?=.+\n(?:=+|-+)$)", re.M)
_GRAPH = re.compile(r"^\.\. graph-picture:: .*\n +:graph: (.+)\n +:alt: ((?:.+\n)+)"
                    r"\n   (.+)", re.M)
_SUITES = (".cpp", ".py")
_PROGRAMS = "consumers"


def in_prose(book, text):
    for check in (_included, _excerpts, _graphs):
        yield from text.errors(check(book, text.whole))


def _included(book, whole):
    before, shown, pairs = None, [], []
    for each in _INCLUDED.finditer(whole):
        caption = dict(_OPTION.findall(each[3])).get("caption")
        path = PurePosixPath(each[2])
        is_build = path.name == "CMakeLists.txt"
        if path.suffix == ".txt" and not is_build:
            if before is None or before.with_suffix("") != path.with_suffix(""):
                yield each.start(), (f"{path} is not what the program before it prints")
            if caption not in (None, _PRINTS):
                yield each.start(), f"an output is called {_PRINTS!r}, not {caption!r}"
            continue
        if caption not in (None, path.name):
            yield each.start(), f"the caption {caption!r} stands over {path.name}"
        if is_build:
            if before is not None and before.parent != path.parent:
                yield each.start(), f"{path} does not build {before}"
            continue
        before = path
        file = (book.root / "docs/background" / path).resolve()
        if path.suffix in _SUITES and _PROGRAMS in path.parts and file.is_file():
            shown.append((each, path))
            pairs.append((frozenset(fitting.words(_around(whole, each))),
                          fitting.words(file.read_text(encoding="utf-8"))))
    for i, j in fitting.swapped(pairs):
        yield shown[i][0].start(), (f"{shown[i][1]} fits the words around {shown[j][1]} "
                                    "better, and that one those here")


def _excerpts(book, whole):
    for each in _EXCERPT.finditer(whole):
        step = dict(_OPTION.findall(each[3])).get("step", "")
        around = " ".join(_around(whole, each).split())
        named = {title for title in samples.load(book, "cpu", each[2]).titles
                 if title and f" @ {title} @ " in around}
        if named and step not in named:
            yield each.start(), f"{step!r} is shown where {sorted(named)} is quoted"
        elif not named:
            heading = around.partition(" ---")[0]
            if not fitting.words(heading) & fitting.words(step):
                yield each.start(), f"{step!r} is shown under {heading!r}"


def _around(whole, match):
    starts = [m.start() for m in _SECTION.finditer(whole)]
    begin = max((at for at in starts if at <= match.start()), default=0)
    end = min((at for at in starts if at > match.start()), default=len(whole))
    return whole[begin:match.start()] + whole[match.end():end]


def _graphs(book, whole):
    for each in _GRAPH.finditer(whole):
        last = fitting.stem(each[1].split()[-1])
        for words in (each[2], each[3]):
            if last[:4] not in words.partition(".")[0].partition(":")[0].lower():
                yield each.start(), (f"{words.split('.')[0]!r} is said of the graph "
                                     f"{each[1]!r}")
