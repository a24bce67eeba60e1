"""The messages of a recipe's page, read from its sources without Sphinx.

So a new recipe has its catalogue at once, with nothing translated; the update of all
catalogues makes the same one.
"""

import re

from .. import gallery, literate, prose
from . import catalogues, po

_DIRECTIVE = re.compile(r"\.\. ([\w-]+)::")
_WITH_CONTENT = ("exercise",)  # whose content is prose, too


def messages(book, name):
    """In the order of the page, each once."""
    recipe = literate.read(book.recipe_path(name))
    about = gallery.about(book, name)
    found = {}

    def add(path, lines):
        for text in texts([line.text for line in lines]):
            found.setdefault(text, book.show(path).as_posix())

    program = recipe.path
    first, last = recipe.parts[0], recipe.parts[-1]
    add(program, first.prose[:2])
    if about:
        found.setdefault("What you will learn", book.show(program).as_posix())
        add(gallery.about_path(book, name), about.learn)
    add(program, first.prose[2:])
    for part in recipe.parts[1:]:
        if part is last and about:
            add(gallery.about_path(book, name), [*about.conclusion, *about.see_also])
        if part.title:
            title = re.sub(r"([\\*`|_])", r"\\\1", part.title)
            found.setdefault(title, book.show(program).as_posix())
        add(program, part.prose)
    for exercise in book.exercise_names(name):
        path = book.answer_path(name, exercise)
        add(path, [literate.Line(0, line)
                   for line in prose.answer(book, name, exercise)])
    found.setdefault("The whole program", book.show(program).as_posix())
    return [po.Message(text, "", [place]) for text, place in found.items()]


def texts(lines):
    """Paragraphs, items and headings of simple reStructuredText, as messages."""
    block, hidden = [], None
    for line in [*lines, ""]:
        indent = len(line) - len(line.lstrip())
        if hidden is not None and line.strip() and indent <= hidden:
            hidden = None
        if hidden is not None:
            continue
        directive = _DIRECTIVE.match(line.strip())
        if directive and directive[1] not in _WITH_CONTENT:
            hidden = indent
        if directive or not line.strip() or line.lstrip().startswith("- "):
            yield from _joined(block)
            block = []
        if line.strip() and not directive:
            block.append(line.strip())


def _joined(block):
    if not block:
        return
    if len(block) > 1 and re.fullmatch(r"([=~^-])\1{2,}", block[1]):
        yield block[0]
        block = block[2:]
    text = " ".join(block)
    if text:
        yield text.removeprefix("- ")


def files(book, name):
    """{path: text} of the catalogue of a new recipe."""
    if not catalogues.names(book):
        return {}
    said = {each.msgid: each.msgstr for other in catalogues.names(book)
            for each in catalogues.read(book, other)
            if each.msgstr and not each.fuzzy}
    return {catalogues.path(book, f"recipes/{name}"): po.text_of(
        po.merged(messages(book, name), [], said), catalogues.LANGUAGE)}
