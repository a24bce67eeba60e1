"""`.. recipe-gallery::` lists every recipe in the order of the gallery.

A card has the first paragraph of the page, and what gallery.toml says about it.
`.. recipe-toctree::` is the same order for the side bar.
"""

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from .. import gallery as order
from .. import thumbnails
from ..errors import BookError
from . import page as pages
from . import plot
from .editions import said
from .recipe import entry_line

_FOLDER = "recipes/"


class gallery(nodes.General, nodes.Element):
    """Stands where the list will be once all pages are read."""


def _entries(directive, book):
    try:
        return order.entries(book)
    except BookError as error:
        raise directive.error(str(error)) from None


class RecipeGallery(SphinxDirective):
    def run(self):
        book = pages.book_of(self.env)
        node = gallery()
        for entry in _entries(self, book):
            line = entry_line(self.env, book, entry.name)
            node += nodes.container("", *([line] if line else []),
                                    name=entry.name,
                                    thumbnail=self._thumbnail(book, entry))
        return [node]

    def _thumbnail(self, book, entry):
        if not (entry.bars or entry.curves):
            return None
        for path in book.sample_paths("cpu", entry.name):
            self.env.note_dependency(str(path))
        try:
            if entry.curves:
                return plot.sketch(*plot.table(thumbnails.table_text(book,
                                                                     entry)))
            return thumbnails.svg(book, entry, lambda label: said(
                self.env, label, order.path(book)))
        except (BookError, ValueError) as error:
            raise self.error(f"{book.show(order.path(book))}: thumbnail of "
                             f"{entry.name}: {error}") from None


class RecipeToctree(SphinxDirective):
    def run(self):
        # As a toctree with globs: read again when a recipe comes or goes.
        self.env.glob_toctrees.add(self.env.docname)
        source, number = self.get_source_info()
        lines = StringList([".. toctree::", "   :hidden:", ""], source)
        for entry in _entries(self, pages.book_of(self.env)):
            lines.append(f"   {_FOLDER}{entry.name}", source, number)
        box = nodes.Element()
        self.state.nested_parse(lines, 0, box)
        return box.children


def _remember(app, doctree):
    """Keeps the first paragraph of a recipe page for the gallery."""
    docname = app.env.docname
    if not docname.startswith(_FOLDER):
        return
    plain = (p for p in doctree.findall(nodes.paragraph)
             if isinstance(p.parent, nodes.section) and not p["classes"])
    first = next(plain, None)
    text = "" if first is None else first.astext().replace("\n", " ")
    app.env.metadata[docname]["fusebook_abstract"] = text


def _fill(app, doctree, docname):
    for node in list(doctree.findall(gallery)):
        box = nodes.container(classes=["recipe-gallery"])
        for entry in list(node):
            name = f"{_FOLDER}{entry['name']}"
            if name in app.env.found_docs:
                box += _card(app, docname, name, entry)
        node.replace_self(box)


def _card(app, docname, name, entry):
    title = app.env.titles[name].astext()
    link = nodes.reference(
        "", "", nodes.inline("", title), internal=True,
        refuri=app.builder.get_relative_uri(docname, name))
    card = nodes.container(classes=["recipe-card"])
    card += nodes.paragraph("", "", link, classes=["recipe-card-title"])
    text = app.env.metadata[name].get("fusebook_abstract", "")
    card += nodes.paragraph("", text)
    card += list(entry)
    if entry["thumbnail"]:
        card["classes"].append("with-thumbnail")
        card += nodes.raw("", entry["thumbnail"], format="html")
    return card


def setup(app):
    app.add_node(gallery)
    app.add_directive("recipe-gallery", RecipeGallery)
    app.add_directive("recipe-toctree", RecipeToctree)
    app.connect("doctree-read", _remember)
    app.connect("doctree-resolved", _fill)
