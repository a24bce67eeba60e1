"""`.. recipe-gallery::` lists every recipe with its first paragraph."""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

_FOLDER = "recipes/"


class gallery(nodes.General, nodes.Element):
    """Stands where the list will be once all pages are read."""


class RecipeGallery(SphinxDirective):
    def run(self):
        return [gallery()]


def _remember(app, doctree):
    """Keeps the first paragraph of a recipe page for the gallery."""
    docname = app.env.docname
    if not docname.startswith(_FOLDER):
        return
    plain = (p for p in doctree.findall(nodes.paragraph) if not p["classes"])
    first = next(plain, None)
    text = "" if first is None else first.astext().replace("\n", " ")
    app.env.metadata[docname]["fusebook_abstract"] = text


def _fill(app, doctree, docname):
    for node in list(doctree.findall(gallery)):
        box = nodes.container(classes=["recipe-gallery"])
        for name in sorted(app.env.found_docs):
            if name.startswith(_FOLDER):
                box += _card(app, docname, name)
        node.replace_self(box)


def _card(app, docname, name):
    title = app.env.titles[name].astext()
    link = nodes.reference(
        "", "", nodes.inline("", title), internal=True,
        refuri=app.builder.get_relative_uri(docname, name))
    card = nodes.container(classes=["recipe-card"])
    card += nodes.paragraph("", "", link, classes=["recipe-card-title"])
    text = app.env.metadata[name].get("fusebook_abstract", "")
    card += nodes.paragraph("", text)
    return card


def setup(app):
    app.add_node(gallery)
    app.add_directive("recipe-gallery", RecipeGallery)
    app.connect("doctree-read", _remember)
    app.connect("doctree-resolved", _fill)
