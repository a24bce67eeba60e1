"""Tokens that look like the text around them need no element of their own.

Names, punctuation and spaces are two thirds of what a highlighter marks; without
those marks a page loads faster, also into what reads it aloud.
"""

import re

# Names (n, nx), punctuation and spaces: in both themes' styles, as plain text.
KINDS = ("n", "nx", "p", "w")
_TOKEN = re.compile(rf'<span class="(?:{"|".join(KINDS)})">([^<]*)</span>')


def _make_plain(app, pagename, templatename, context, doctree):
    if body := context.get("body"):
        context["body"] = _TOKEN.sub(r"\1", body)


def setup(app):
    # After code_links, which reads them.
    app.connect("html-page-context", _make_plain, priority=900)
