"""The glossary gives each term its name in the other language, from docs/terms.toml."""

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

from ..translation import catalogues, terms
from . import editions
from . import page as pages


class other_name(nodes.Inline, nodes.TextElement):
    """A term in the other language, `lang`."""


class BothNames(SphinxTransform):
    default_priority = 30  # after the translation

    def apply(self, **kwargs):
        book = pages.book_of(self.env)
        if self.env.docname != "glossary" or not catalogues.names(book):
            return
        self.env.note_dependency(str(terms.path(book)))
        chinese = editions.is_translation(self.config)
        known = {_id(term.en): term for term in terms.read(book)}
        if chinese:
            self._sort()
        for node in self.document.findall(nodes.term):
            term = next((known[each] for each in map(str.lower, node["ids"])
                         if each in known), None)
            if term is not None and term.zh != term.en:
                node += (other_name("", term.en, lang="en") if chinese else
                         other_name("", term.zh, lang=catalogues.TAG))


    def _sort(self):
        """By the English names; Chinese has no order that readers would look for."""
        for glossary in self.document.findall(addnodes.glossary):
            if glossary["sorted"]:
                glossary["sorted"] = False
                for found in glossary.findall(nodes.definition_list):
                    found[:] = sorted(found, key=lambda item: item[0]["ids"][0].lower())


def _id(name):
    return "term-" + re.sub(r"[^a-z0-9]+", "-", name.lower())


def _visit(self, node):
    self.body.append(f' <span class="other-language" lang="{node["lang"]}">')


def _depart(self, node):
    self.body.append("</span>")


def _skip(self, node):
    raise nodes.SkipNode


def setup(app):
    app.add_node(other_name, html=(_visit, _depart), text=(_skip, None),
                 gettext=(_skip, None))
    app.add_transform(BothNames)
