"""All that is compared between what pages say and what there is.

Each of the modules looks at one kind of statement: `in_prose` in one of prose.py's
texts, `in_markdown` in a page of Markdown.
"""

from . import (alt_texts, bound_words, claims, code_names, command_lines, command_words,
               docstrings, downloads, exampled, formulas, labels, links, listed,
               measurements, members, promised, python_docs, see_also, snippets, versions)

PAGES = claims.PAGES
_OF_PROSE = (code_names, members, formulas, snippets, command_lines, command_words,
             versions, links, bound_words, see_also, alt_texts, *labels.OF_PROSE)
_OF_MARKDOWN = (code_names, members, command_lines, command_words, versions, links,
                bound_words, listed, *labels.OF_MARKDOWN)
_OF_README = (code_names, members, command_lines, versions)


def problems(book, texts):
    """What is not true in the texts of a recipe, or of pages."""
    if is_toy(book):
        return
    for text in texts:
        for check in _OF_PROSE:
            yield from check.in_prose(book, text)


def of_the_house(book, texts):
    """What is not true in the pages of Markdown, in the help of the commands, in
    comments of headers; and links that are in none of these nor in `texts`."""
    if is_toy(book):
        return
    pages = {name: (book.root / name).read_text(encoding="utf-8") for name in PAGES}
    for name, page in pages.items():
        for check in _OF_MARKDOWN:
            yield from check.in_markdown(book, name, page)
    yield from claims.problems(book)
    help_text = (book.root / "fusebook").read_text(encoding="utf-8")
    for check in (claims, command_lines, command_words, bound_words, listed):
        yield from check.of_help(book, help_text)
    yield from docstrings.problems(book)
    yield from python_docs.problems(book)
    yield from bound_words.of_headers(book)
    yield from bound_words.misplaced(book, texts)
    yield from labels.of_the_house(book, texts)
    yield from promised.problems(book)
    yield from exampled.problems(book)
    yield from measurements.problems(book)
    yield from versions.of_tools(book)
    yield from _of_zips(book)
    yield from versions.that_differ(book)
    yield from links.unused(book, [*pages.values(), *(
        text.whole for text in texts)])


def _of_zips(book):
    """What is not true in the READMEs of the zips."""
    for name in book.recipe_names():
        text = downloads.readme_of(book, name).decode()
        yield from of_readme(book, f"{name}.zip, README.md", text)


def of_readme(book, show, text):
    for check in _OF_README:
        yield from check.in_markdown(book, show, text)


def is_toy(book):
    """A book of the tests, without the library that statements are about."""
    return not (book.root / claims.FILE).is_file()
