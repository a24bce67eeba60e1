"""Names in C++ code lead to the reference."""

import html
import re

from ..api import links
from . import api, editions

_BLOCK = re.compile(r'(<div class="[^"]*\bhighlight-cpp\b[^"]*">.*?</pre>)',
                    re.DOTALL)
_PIECE = re.compile(r'<span class="(\w+)">([^<]*)</span>|(<[^>]*>)|([^<]+)')
_CODE = ("n", "nf", "nc", "nn", "k", "kt", "o", "p", "kr", "nb", "err", "ow",
         "kc", "mi", "mf", "mh", "nl")


def _link(app, pagename, templatename, context, doctree):
    body = context.get("body")
    if not body or "highlight-cpp" not in body:
        return
    index, places = api.index_of(app)
    blocks = [_pieces(block) for block in _BLOCK.findall(body)]
    own = set()
    for pieces in blocks:
        own |= links.declared([word for word, _ in _tokens(pieces)])
    parts = _BLOCK.split(body)
    for number, pieces in enumerate(blocks):
        parts[2 * number + 1] = _linked(app, pagename, pieces, (index, places),
                                       own)
    context["body"] = "".join(parts)


def _pieces(block):
    return list(_PIECE.finditer(block))


def _tokens(pieces):
    """Words and signs of a block, and the piece each stands in."""
    for number, piece in enumerate(pieces):
        if piece[1] in _CODE:
            for word in links.TOKEN.findall(html.unescape(piece[2])):
                yield word, number
        elif piece[1] in ("s", "sc", "cpf", "c1", "cm"):
            yield '"', number


def _linked(app, pagename, pieces, known, own):
    index, places = known
    tokens = list(_tokens(pieces))
    names = links.resolve([word for word, _ in tokens], index, own)
    targets = {tokens[at][1]: name for at, name in names.items()
               if pieces[tokens[at][1]][2] == tokens[at][0]}
    return "".join(
        _anchor(app, pagename, piece, places.get(targets[number]))
        if number in targets else piece[0]
        for number, piece in enumerate(pieces))


def _anchor(app, pagename, piece, place):
    if place is None:
        return piece[0]
    uri = editions.uri(app, pagename, place[0])
    return f'<a class="api-link" href="{uri}#{place[1]}">{piece[0]}</a>'


def setup(app):
    app.connect("html-page-context", _link)
