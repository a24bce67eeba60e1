"""Under a name of the reference: examples and recipes that use it."""

from docutils import nodes

from .. import exampled
from . import page as pages

_MOST = 3  # examples


class used_in(nodes.General, nodes.Element):
    """Stands where the examples and recipes that use a name will be."""


def anchor(example):
    return f"example-{example.replace('_', '-')}"


def note_example(env, name):
    """An example that the page shows."""
    _shown(env).setdefault(env.docname, []).append(name)


def fill(app, doctree, docname, index, places):
    waiting = list(doctree.findall(used_in))
    if not waiting:
        return
    users = _users(app, index)
    others = exampled.others(pages.book_of(app.env))
    for node in waiting:
        sentences = [*_sentences(app, docname, users.get(node["name"], ())),
                     *_with_another(app, docname, places, others.get(node["name"]))]
        line = nodes.paragraph("", classes=["api-users"])
        for sentence in sentences:
            line += sentence
        if sentences:
            node.replace_self(line)
        else:
            node.parent.remove(node)


def _users(app, index):
    """Names -> (what uses it, the page and anchor)."""
    if getattr(app, "fusebook_users", None) is None:
        book, found = pages.book_of(app.env), {}
        pages_of = {name: page for page, names in sorted(_shown(app.env).items())
                    for name in names if page.startswith("reference/")}
        for user, names in exampled.names_in(book, index).items():
            stem = user.removesuffix(".cpp")
            where = (pages_of.get(user) or f"recipes/{stem}",
                     anchor(user) if user in pages_of else None)
            for name in names:
                found.setdefault(name, []).append((stem, *where))
        app.fusebook_users = found
    return app.fusebook_users


def _sentences(app, docname, users):
    examples = [user for user in users if user[2]]
    # Those of the same page first.
    examples.sort(key=lambda user: user[1] != docname)
    recipes = [user for user in users if not user[2] and user[1] in app.env.titles]
    if examples:
        yield nodes.inline("", "", nodes.Text("Example: "), *_joined(
            _link(app, docname, page, stem.replace("_", " "), place)
            for stem, page, place in examples[:_MOST]), nodes.Text(". "))
    if recipes:
        yield nodes.inline("", "", nodes.Text("Used in "), *_joined(
            _link(app, docname, page, app.env.titles[page].astext())
            for _, page, _ in recipes), nodes.Text("."))


def _with_another(app, docname, places, other):
    if other in places:
        page, place = places[other]
        yield nodes.inline("", "", nodes.Text("In the examples of "),
                           _link(app, docname, page, other, place), nodes.Text("."))


def _joined(links):
    found = [part for link in links for part in (nodes.Text(", "), link)]
    return found[1:]


def _link(app, docname, page, words, place=None):
    uri = app.builder.get_relative_uri(docname, page)
    return nodes.reference("", words, internal=True,
                           refuri=f"{uri}#{place}" if place else uri)


def _shown(env):
    """Pages -> the examples that they show."""
    if not hasattr(env, "fusebook_examples"):
        env.fusebook_examples = {}
    return env.fusebook_examples


def purge(app, env, docname):
    _shown(env).pop(docname, None)
    app.fusebook_users = None


def merge(env, docnames, other):
    shown = _shown(other)
    _shown(env).update({d: shown[d] for d in docnames if d in shown})
