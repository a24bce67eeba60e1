"""What stands beside something is about that thing: captions, names of links, labels of
bars, programs and their outputs, definitions, answers.

Each of the modules looks at one kind of label, `in_prose` in one of prose.py's texts and
`in_markdown` in a page of Markdown. What is true comes from what the label is on, or
from the one place that lists it.
"""

from . import (abouts, anchors, answers, bars, citations, comparisons, declared, examples,
               glossary, graph_shapes, licences, link_names, names_say, orders, packages,
               pictures, programs, promoted, quoted_nouns, symbols, torch_table, variables)

OF_PROSE = (abouts, answers, bars, citations, comparisons, declared, examples,
            glossary, graph_shapes, licences, link_names, names_say, orders, packages,
            programs, promoted, quoted_nouns, symbols, torch_table, variables)
OF_MARKDOWN = (anchors, declared, licences, names_say, orders, packages, variables)


def of_the_house(book, texts):
    """What is wrong with labels outside of the texts, and lists of what no text says."""
    yield from citations.of_headers(book)
    yield from names_say.of_headers(book)
    yield from bars.of_cards(book)
    yield from comparisons.misplaced(book, texts)
    yield from pictures.problems(book)
