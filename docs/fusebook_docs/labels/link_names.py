"""A link says where it leads.

The words of a `:term:` are a form of the term. Those of a `:doc:` are in the title or the
name of the page, but for `CALLED`; "the first recipe" is the first of the gallery. Where
a page's title takes the place of words, the sentence has a word of that page: of its
title or name, of what it describes, or of `ABOUT`. (What "See also" says is looked at in
see_also.py.)
"""

import re
from functools import cache

from .. import gallery
from . import fitting

# What a page is called by besides its title.
CALLED = {"/recipes/replaying_a_step": "capturing"}
# Beginnings of what is said of a page where its title alone is the link.
ABOUT = {
    "/credits": "original credited",
    "/glossary": "the words",
    "/index": "what this book",
    "/background/benchmarks": "how much, measured, drawn",
    "/background/from_pytorch": "pytorch",
    "/background/how_it_works": "follows, keys, inside, rest",
    "/background/maths": "formula",
    "/background/promises": "can happen",
    "/background/scalars_and_guards": "tells why, hyper-parameter, retold in",
    "/background/use_it": "program of your own, know your way",
    "/recipes": "program, the chapters",
    "/recipes/compiling_optimizer": "first call, rung, all ways, asserts that one time",
    "/recipes/compiling_optimizer_lr_scheduler": "code here, constantlr",
    "/recipes/fewer_bytes": "weights and states are stored",
    "/recipes/foreach_map": "kernel of it, rate of zero, that one",
    "/recipes/mixed_precision_training": "with masters",
    "/recipes/sharded_step": "bytes",
    "/recipes/the_whole_tail": "parts",
    "/recipes/write_your_own_optimizer": "made of",
    "/reference/checkpoints": "save a run",
    "/reference/devices": "functions, exit codes you give, cpu, gpu",
    "/reference/index": "every name",
    "/reference/lists": "clip_grad_norm_",
    "/background/devices_and_variables": "variables, has to be installed",
    "/background/many_ranks": "many of them",
    "/ops": "foreach, lists all of them",
    "/reference/optimizers": "options, adam and its relatives, wants them in the order",
    "/reference/programs": "what a recipe needs",
    "/reference/schedulers": "moves a learning rate",
    "/reference/tensors": "handles to numbers",
}
_TERM = re.compile(r":term:`([^`<]+?)\s*<([^`>]+)>`")
_DOC = re.compile(r":doc:`(?:([^`<]+?)\s*<)?([^`>]+)>?`")
_WORD = re.compile(r"[a-z]+")
_END = re.compile(r"\n\s*\n|\n\s*\* |\n- |(?<=[.?!])[)]?\s")
_TITLE = re.compile(r"^(?://|#)? ?(.+)\n(?://|#)? ?=+$", re.M)


def in_prose(book, text):
    return text.errors([*_terms(text.whole), *_pages(book, str(text.path), text.whole)])


def _terms(whole):
    for each in _TERM.finditer(whole):
        said, term = (_WORD.findall(part.lower()) for part in each.groups())
        if len(said) != len(term) or not all(map(_is_form, said, term)):
            yield each.start(), (f"{' '.join(each[1].split())!r} leads to the term "
                                 f"{' '.join(each[2].split())!r}")


def _is_form(word, of):
    """Whether two words differ by their endings alone."""
    same = next((i for i, (a, b) in enumerate(zip(word, of)) if a != b),  # noqa: B905
                min(len(word), len(of)))
    return same >= max(3, min(len(word), len(of)) - 3)


def _pages(book, show, whole):
    for each in _DOC.finditer(whole):
        target = _absolute(show, each[2])
        title = _title(book, target)
        if title is None or show.startswith("docs/about/"):
            continue
        names = fitting.words(f"{title} {target.rpartition('/')[2]}")
        problem = each[1] and _wrong_words(book, each[1], target, title, names)
        if problem:
            yield each.start(), problem
        elif not (each[1] and "recipe" in each[1]) and not (each[1] and (
                each[1] == CALLED.get(target) or fitting.words(each[1]) & names)) and not _is_about(target, names, _sentence(whole, each)):
            yield each.start(), (f"nothing beside it tells of {target} ({title!r}): "
                                 "compare, and list the words in "
                                 "docs/fusebook_docs/labels/link_names.py")


def _wrong_words(book, said, target, title, names):
    said = " ".join(said.split())
    if "first recipe" in said:
        first = f"/recipes/{gallery.entries(book)[0].name}"
        return None if target == first else f"the first recipe is {first}, not {target}"
    if (said == CALLED.get(target) or fitting.words(said) & names
            or said == target.split("/")[1]):
        return None
    return f"{said!r} leads to {target}, whose title is {title!r}"


def _is_about(target, names, sentence):
    about = [each.strip() for each in ABOUT.get(target, "").split(",") if each.strip()]
    plain = _DOC.sub(" ", sentence)
    return bool(fitting.words(plain) & names) or any(
        each in " ".join(plain.lower().split()) for each in about)


def _sentence(whole, match):
    """Its sentence, item of a list or row."""
    ends = [m.start() for m in _END.finditer(whole)]
    begins = [0, *(at for at in ends if at <= match.start())]
    end = min((at for at in ends if at >= match.end()), default=len(whole))
    found = whole[begins.pop():end]
    if len(_WORD.findall(_DOC.sub("", found))) < 3 and begins:  # "See that page."
        found = whole[begins.pop():end]
    return found


def _absolute(show, target):
    if target.startswith("/"):
        return target
    folder = show.removeprefix("docs/").rpartition("/")[0]
    return f"/{folder}/{target}" if folder else f"/{target}"


@cache
def _title(book, target):
    name = target.removeprefix("/recipes/")
    path = (book.recipe_path(name) if name in book.recipe_names()
            else book.root / f"docs{target}.rst")
    if not path.is_file():
        return None
    found = _TITLE.search(path.read_text(encoding="utf-8"))
    return found[1] if found else None
