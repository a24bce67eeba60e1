"""What belongs to the site as a whole: where it comes from.

`.. clone::` shows the commands that lead into a clone of the repository; without a
configured address (`fusebook_repository`, which whoever publishes the book sets once)
a placeholder says so. Under every page stand its last change and,
with an address, a link to edit it.
"""

from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from .. import gallery, history
from ..translation import catalogues
from ..words import later, say
from . import editions
from . import page as pages


# What the template of a page says.
TEXTS = (later("Last change: {date}"), later("Edit this page"))


class Clone(SphinxDirective):
    def run(self):
        address = self.config.fusebook_repository
        name = address.rstrip("/").split("/")[-1] or "fusebook"
        where = address or "<" + say("address of this repository") + ">"
        text = f"git clone {where}" + (
            "" if address else f" {name}") + f"\ncd {name}"
        return [nodes.literal_block(text, text, language="sh")]


def _sources(book, docname):
    """The files of a page, the one to edit first."""
    folder, _, name = docname.rpartition("/")
    if folder == "recipes" and name in book.recipe_names():
        return [book.recipe_path(name), gallery.about_path(book, name)]
    return [book.root / "docs" / f"{docname}.rst"]


def _about(app, pagename, templatename, context, doctree):
    if doctree is None:  # an index, or the search
        return
    book = pages.book_of(app.env)
    files = [str(book.show(path).as_posix()) for path
             in _sources(book, pagename) if path.is_file()]
    changed = [app.fusebook_changes[file] for file in files
               if file in app.fusebook_changes]
    context["fusebook_site"] = app.config.html_baseurl
    context["fusebook_changed"] = max(changed, default=None)
    if editions.is_translation(app.config):  # its text is that of the catalogue
        files = [catalogues.path(book, pagename).relative_to(book.root).as_posix()]
    if app.config.fusebook_repository and files:
        context["fusebook_edit"] = app.config.fusebook_edit_link.format(
            repository=app.config.fusebook_repository.rstrip("/"),
            path=files[0])


def _look_up(app):
    app.fusebook_changes = history.last_changes(
        Path(app.srcdir).resolve().parent)


def setup(app):
    app.add_config_value("fusebook_repository", "", "env", str)
    app.add_config_value("fusebook_edit_link", "{repository}/edit/main/{path}",
                         "html", str)
    app.add_directive("clone", Clone)
    app.connect("builder-inited", _look_up)
    app.connect("html-page-context", _about)
