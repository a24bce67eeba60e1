"""The same pages in another language, from the catalogues of docs/locale.

Sphinx translates what it parsed. What our directives take as plain text (labels,
alt texts, sections of README.md) they ask `said` for; what they say themselves is
in words.py. In another language a message without a translation is a warning, with
the place it comes from.
"""

import json
import posixpath
import re
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from docutils import nodes
from sphinx import locale
from sphinx.builders.gettext import MsgOrigin
from sphinx.transforms import SphinxTransform
from sphinx.util.nodes import extract_messages

from .. import words
from ..translation import catalogues
from ..translation.site import ENGLISH
from . import page as pages
from . import theme, translated


def is_translation(config):
    return config.language == catalogues.LANGUAGE


def english(app):
    """What the English build says of its pages: {titles, labels, api}; in that build
    itself nothing."""
    if getattr(app, "fusebook_english", None) is None:
        path = app.config.fusebook_english
        app.fusebook_english = (
            json.loads(Path(path).read_text(encoding="utf-8"))
            if path and is_translation(app.config) else {})
    return app.fusebook_english


def uri(app, docname, target):
    """From one page to another, which may be an English one."""
    if target in app.env.all_docs or target not in english(app).get("titles", {}):
        return app.builder.get_relative_uri(docname, target)
    return f"{up(docname)}../{target}.html"


def up(docname):
    """From a page to the folder of its edition."""
    return "../" * docname.count("/")


def _resolve(app, env, node, contnode):
    """References to pages that are English only."""
    known = english(app)
    if not known or node["refdomain"] != "std":
        return None
    if node["reftype"] == "doc":
        name = posixpath.normpath(posixpath.join(
            "/", posixpath.dirname(node["refdoc"]), node["reftarget"]))[1:]
        title, anchor = known["titles"].get(name), ""
    else:
        name, anchor, title = known["labels"].get(node["reftarget"],
                                                  (None, None, None))
    if title is None:
        return None
    link = nodes.reference("", "", internal=True, refuri=uri(
        app, node["refdoc"], name) + (f"#{anchor}" if anchor else ""))
    link += contnode if node["refexplicit"] else nodes.inline("", title)
    return link


def _tell(app, env):
    """The English build leaves what a translation links to, as soon as it knows."""
    if app.builder.format != "html" or is_translation(app.config):
        return
    places = getattr(env, "fusebook_api", {})
    known = {
        "titles": {name: title.astext() for name, title in sorted(env.titles.items())},
        "labels": {name: [page, anchor, str(title)] for name, (page, anchor, title)
                   in sorted(env.get_domain("std").labels.items())},
        "api": {name: [page, anchor] for page, names in sorted(places.items())
                for name, anchor in names.items()}}
    path = Path(app.doctreedir) / ENGLISH
    part = path.with_suffix(".part")  # whoever waits for the file finds it whole
    part.write_text(json.dumps(known), encoding="utf-8")
    part.replace(path)


def said(env, text, path=None, line=1):
    """A plain text of a page in its language; `path` is where it stands."""
    text = " ".join(text.split())
    if not text:
        return text
    source = str(path or env.doc2path(env.docname))
    _asked(env).setdefault(env.docname, []).append((text, source, line))
    if not is_translation(env.config):
        return text
    found = _of_page(env.app, env.docname).get(text)
    if found is None:
        _miss(env, text, source, line)
    return found or text


def said_title(env, page, title):
    """The title of a recipe's step, in the language of the page."""
    if not is_translation(env.config):
        return title
    known = _of_page(env.app, f"recipes/{page.name}")
    found = known.get("".join(f"\\{c}" if c in "\\*`|_" else c for c in title), title)
    return re.sub(r"\\(.)", r"\1", found)


def _miss(env, text, source, line):
    show = pages.book_of(env).show(source)
    pages.warn(f"not translated in docs/locale: {text!r}. Update the catalogues "
               "(./fusebook docs --update-translations) and translate it", show,
               line)


def _asked(env):
    if not hasattr(env, "fusebook_asked"):
        env.fusebook_asked = {}
    return env.fusebook_asked


def _of_page(app, docname):
    """{msgid: msgstr} of one catalogue, without what is fuzzy."""
    known = app.fusebook_catalogues
    if docname not in known:
        book = pages.Book(Path(app.srcdir).resolve().parent)
        known[docname] = {}
        if catalogues.path(book, docname).is_file():
            known[docname] = {each.msgid: each.msgstr for each
                              in catalogues.read(book, docname)
                              if each.msgstr and not each.fuzzy}
    return known[docname]


class OwnTexts(SphinxTransform):
    """What a directive made of code is no message: it was said in words.py."""

    default_priority = 5  # before Sphinx gives such nodes a source

    def apply(self, **kwargs):
        for node in self.document.findall(nodes.paragraph):
            if not node.rawsource:
                node["translatable"] = False


class Untranslated(SphinxTransform):
    """Every message of a page has a translation."""

    default_priority = 15  # before the translation takes its place

    def apply(self, **kwargs):
        if not is_translation(self.config):
            return
        known = _of_page(self.app, self.env.docname)
        book = pages.book_of(self.env)
        for name in (self.env.docname, catalogues.OWN):
            path = catalogues.path(book, name)
            if path.is_file():
                self.env.note_dependency(str(path))
        places = self.env.temp_data.setdefault(translated.PLACES, {})
        for node, text in extract_messages(self.document):
            if isinstance(node, nodes.field_name) or words.is_said(text):
                continue
            if text in known:
                places[known[text]] = (node.source, node.line or 1)
            else:
                _miss(self.env, text, node.source or self.document["source"],
                      node.line or 1)


def _configure(app, config):
    """Early: Sphinx looks for compiled catalogues where this puts them."""
    app.fusebook_catalogues = {}
    words.speak({})
    if not is_translation(config):
        return
    words.speak(_of_page(app, catalogues.OWN))
    folder = Path(app.doctreedir) / "locale"
    book = pages.Book(Path(app.srcdir).resolve().parent)
    for name in catalogues.names(book):
        _compile(_of_page(app, name), folder / catalogues.LANGUAGE
                 / "LC_MESSAGES" / f"{name}.mo")
    config.locale_dirs = [str(folder)]
    said_by_theme = folder / config.language / "LC_MESSAGES" / "sphinx.mo"
    _compile(theme.asked(), said_by_theme)
    said_by_theme.with_suffix(".js").write_text(theme.search_texts(), encoding="utf-8")
    locale.init([folder], config.language)  # behind what Sphinx has found itself


def _compile(messages, path):
    catalogue = Catalog(locale=catalogues.LANGUAGE)
    for text, translation in messages.items():
        catalogue.add(text, translation)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_mo(file, catalogue)


def _extract(app, doctree, docname):
    """What was asked for goes into the template of the page's catalogue."""
    if app.builder.name != "gettext":
        return
    for text, source, line in _asked(app.env).get(docname, ()):
        app.builder.catalogs[docname].add(text, MsgOrigin(source, line))


def _purge(app, env, docname):
    _asked(env).pop(docname, None)


def _merge(app, env, docnames, other):
    asked = _asked(other)
    _asked(env).update({d: asked[d] for d in docnames if d in asked})


def setup(app):
    app.add_config_value("fusebook_english", "", "env", str)
    app.connect("missing-reference", _resolve)
    app.connect("env-updated", _tell)
    app.add_transform(OwnTexts)
    app.add_transform(Untranslated)
    app.connect("config-inited", _configure)
    app.connect("doctree-resolved", _extract)
    app.connect("env-purge-doc", _purge)
    app.connect("env-merge-info", _merge)
