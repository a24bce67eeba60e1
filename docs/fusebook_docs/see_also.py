"""What stands beside a link says where it leads.

Under "See also", `- :doc:`PAGE`: words` has words for that page (`SAYS`), and none of
another's; what `:api:` names there, the page describes. The title of a card on the
home page is the title of the page that it links to.
"""

import re
from functools import cache


# Beginnings of what a link to a page is described by.
SAYS = {
    "/background/from_pytorch": ("each construct of the original",),
    "/background/how_it_works": ("from the lambda to the launch",),
    "/background/many_ranks": ("times of a step on more ranks",),
    "/background/scalars_and_guards": ("the reasons, at length", "numbers on a GPU"),
    "/background/use_it": (
        "install the library", "in a program of your own", "with an installed copy",
        "the package with torch tensors"),
    "/ops": ("every operation",),
    "/recipes/compiling_optimizer": (
        "the step that is compiled here", "the Adam", "compiled step is made of",
        "against the limit", "the bare step", "how a step becomes one launch"),
    "/recipes/compiling_optimizer_lr_scheduler": (
        "numbers that may move", "why the rate is a tensor"),
    "/recipes/foreach_map": ("functions of elements",),
    "/recipes/mixed_precision_training": ("masters, and",),
    "/recipes/the_whole_tail": ("in the launch of a step", "that comes around a step"),
    "/reference/around_a_step": (),
    "/reference/checkpoints": ("what a file holds",),
    "/reference/compile": ("all that a compiled function",),
    "/reference/devices": (),
    "/reference/lists": ("operands, results",),
    "/reference/optimizers": ("masters, groups", "such a class", "an optimizer's memory"),
    "/reference/ranks": ("what ranks must agree on",),
    "/reference/schedulers": ("every scheduler", "the schedules"),
}
_ITEM = re.compile(r"^- :doc:`(?:[^`<]*<)?([^`>]+)>?`: ((?:.|\n  )+)", re.M)
_API = re.compile(r":api:`(?:[^`<]*<)?~?([\w:]+)>?`")
_CARD = re.compile(r"\.\. grid-item-card:: (.+)\n\s+:link: (\S+)")


def in_prose(book, text):
    """Links of one of prose.py's texts that lead elsewhere than it says."""
    return text.errors(_wrong(book, text.whole, str(text.path)))


def _wrong(book, whole, show):
    for match in _ITEM.finditer(whole):
        target = _absolute(show, match[1])
        problem = _problem(book, target, " ".join(match[2].split()))
        if problem:
            yield match.start(), problem
    for match in _CARD.finditer(whole):
        target = _absolute(show, match[2])
        title = _title(book.root, target)
        if match[1] != title:
            yield match.start(), (f"the card {match[1]!r} leads to {target}, whose "
                                  f"title is {title!r}")


def _problem(book, target, words):
    if target not in SAYS and target.startswith("/recipes/"):
        return None if (book.root / f"docs/about/{target[9:]}.rst").is_file() else (
            f"there is no page {target}")
    for name in _API.findall(words):
        if name not in _described(book.root, target):
            return f"{target} does not describe {name!r}: link to the page that does"
    others = [page for page, says in SAYS.items() if page != target
              and any(each in words for each in says)]
    if others:
        return f"{words!r} stands beside a link to {target}, but tells of {others[0]}"
    if not _API.search(words) and not any(
            each in words for each in SAYS.get(target, ())):
        return (f"nothing in {words!r} is known to tell of {target}: compare, and list "
                "the words in docs/fusebook_docs/see_also.py")
    return None


def _absolute(show, target):
    if target.startswith("/"):
        return target
    folder = show.removeprefix("docs/").rpartition("/")[0]
    folder = "recipes" if folder == "about" else folder
    return f"/{folder}/{target}" if folder else f"/{target}"


@cache
def _described(root, target):
    path = root / f"docs{target}.rst"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return frozenset(re.findall(r"^\s*\.\. api:: (\S+)", text, re.M))


@cache
def _title(root, target):
    path = root / f"docs{target}.rst"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    match = re.search(r"^(.+)\n=+$", text, re.M)
    return match[1] if match else None
