"""From a page to the same page in the other language, and to what is English only."""

import re
from html import escape

from ..translation import catalogues
from ..words import say
from . import editions

_NAMES = {"en": "English", catalogues.TAG: "中文"}
_HOME = "index"
_SPECIAL = ("search", "genindex")


def _about(app, pagename, templatename, context, doctree):
    context["fusebook_say"] = say
    if not app.config.fusebook_editions:
        return
    chinese = editions.is_translation(app.config)
    has_both = catalogues.is_translated(pagename) and (
        pagename in app.env.all_docs or pagename in _SPECIAL)
    own, other = "en", catalogues.TAG
    if chinese:
        own, other = other, own
    target = f"{pagename if has_both else _HOME}.html"
    here = editions.up(pagename)
    there = f"{here}../{target}" if chinese else (
        f"{here}{catalogues.FOLDER}/{target}")
    context["fusebook_switch"] = {
        "language": other, "name": _NAMES[other], "uri": there,
        "title": (say("This page in English") if chinese else
                  "这一页的中文版" if has_both else "中文版首页（这一页只有英文）")}
    if has_both:
        base = app.config.html_baseurl
        context["fusebook_alternates"] = [
            (own, base + f"{pagename}.html" if base else target.rsplit("/")[-1]),
            (other, _absolute(base, chinese, pagename) if base else there)]
    if chinese:
        context["furo_navigation_tree"] = (
            context.get("furo_navigation_tree", "") + _english(app, here))


def _absolute(base, chinese, pagename):
    root = base.removesuffix(f"{catalogues.FOLDER}/") if chinese else (
        f"{base}{catalogues.FOLDER}/")
    return f"{root}{pagename}.html"


def _english(app, here):
    """The English pages, for the side bar of another edition."""
    titles = editions.english(app).get("titles", {})
    names = [re.sub("/$", "/index", name) for name in sorted(catalogues.ENGLISH)]
    links = "".join(
        f'<li class="toctree-l1"><a class="reference internal" lang="en" '
        f'hreflang="en" href="{here}../{name}.html">{escape(titles[name])}</a></li>'
        for name in names if name in titles)
    return (f'<p class="caption"><span class="caption-text">'
            f"{say('In English')}</span></p>\n<ul>{links}</ul>\n" if links else "")


def setup(app):
    app.add_config_value("fusebook_editions", False, "html", bool)
    # After theme.py, whose side bar this goes on with.
    app.connect("html-page-context", _about, priority=900)
