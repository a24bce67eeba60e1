"""The downloads of a recipe's page: its file, a zip that builds alone, and a
notebook. The zip and the notebook are written when the site is."""

from pathlib import Path

from docutils import nodes
from sphinx import addnodes

from .. import downloads
from ..machine import kept
from . import editions
from . import nodes as own
from . import page as pages

FOLDER = "_downloads"


class file_link(nodes.General, nodes.Inline, nodes.TextElement):
    """A link to a file that this module writes: `file` is its name."""


def links(env, page):
    """The three of them, for the end of a line."""
    return own.sentence(
        "Download {program}, {zip}, which builds alone, or {notebook}, a notebook.",
        program=program(env, page), zip=_link(page, "zip"),
        notebook=_link(page, "ipynb"))


def program(env, page):
    """A link to the recipe's file."""
    name = page.path.name
    return addnodes.download_reference(
        "", "", nodes.literal(name, name, classes=["download"]),
        refdoc=env.docname, reftarget=f"/recipes/{name}", refdomain="",
        reftype="download", refexplicit=False, refwarn=False)


def _link(page, suffix):
    return written(f"{page.name}.{suffix}")


def written(name):
    """A link to a file in the folder of downloads, by its name."""
    return file_link("", "", nodes.literal(name, name), file=name)


def _visit(self, node):
    path = "../" * self.builder.current_docname.count("/")
    if editions.is_translation(self.config):
        path += "../"  # the English edition has them
    self.body.append(f'<a class="reference download internal" download="" '
                     f'href="{path}{FOLDER}/{node["file"]}">')


def _depart(self, node):
    self.body.append("</a>")


def _skip(self, node):
    pass


def _write(app, exception):
    if exception or app.builder.format != "html" or (
            editions.is_translation(app.config)):
        return
    book = pages.Book(Path(app.srcdir).resolve().parent)
    folder = Path(app.outdir) / FOLDER
    folder.mkdir(exist_ok=True)
    for name in book.recipe_names():
        if "cpu" in book.devices(name):
            (folder / f"{name}.zip").write_bytes(downloads.zip_of(book, name))
            (folder / f"{name}.ipynb").write_text(
                downloads.notebook_of(book, name), encoding="utf-8")
        if kept.exists(book, name):
            kernel = kept.load(book, name)
            for text, file in kept.file_names(name).items():
                (folder / file).write_text(kernel.texts[text], encoding="utf-8")


def setup(app):
    app.add_node(file_link, html=(_visit, _depart), text=(_skip, _skip))
    app.connect("build-finished", _write)
