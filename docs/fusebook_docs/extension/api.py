"""`.. api:: NAME`: a name of the library, as its header declares and explains it.

Doxygen reads the headers once a build, Breathe makes nodes of its XML; all
overloads of a function stand together, a class with its members. `:protected:`
shows what classes derived from it may use. Under it stand examples and recipes that
use the name. ``:api:`NAME` `` leads there from anywhere.

A public name without a comment, one that no page shows, and every warning of
Doxygen end the build, with file and line.
"""

from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective, SphinxRole

from .. import ops
from ..api import doxygen, links, tidy
from ..api.reference import Reference
from ..errors import BookError
from . import api_users, editions
from . import page as pages

_OVERLOADED = "function"
_WITH_MEMBERS = ("class", "struct")


class api_reference(nodes.Inline, nodes.TextElement):
    """Stands where the link to a name will be."""


class Api(SphinxDirective):
    required_arguments = 1
    option_spec = {"protected": directives.flag}

    def run(self):
        name = self.arguments[0]
        found = self.env.app.fusebook_reference.of(name)
        if not found:
            raise self.error(f"no header declares {name}")
        box = nodes.container(classes=["api"])
        lines = StringList(self._lines(found), self.get_source_info()[0])
        self.state.nested_parse(lines, 0, box)
        _neaten(box)
        _place(box, _known(self.env).setdefault(self.env.docname, {}))
        description = next(box.findall(addnodes.desc_content), None)
        if description is not None:
            description += api_users.used_in(name=name)
        for each in found:
            path = pages.book_of(self.env).root / each.file
            self.env.note_dependency(str(path))
        return [box]

    def _lines(self, found):
        """One directive of Breathe's for each declaration."""
        lines = []
        for each in found:
            arguments = _parameters(each.element) if len(found) > 1 else ""
            lines.append(f".. doxygen{each.kind}:: fuse::{each.name}{arguments}")
            if each.kind in _WITH_MEMBERS:
                lines.append("   :members:")
                if "protected" in self.options:
                    lines.append("   :protected-members:")
            lines.append("")
        return lines


def _parameters(element):
    """What tells an overload from the others."""
    text = element.findtext("argsstring")
    return tidy.without_place(text[:text.rindex(")") + 1])


def _neaten(box):
    """Names stand without the namespace that all of them are in."""
    for node in list(box.findall(addnodes.desc_addname)):
        if node.astext() == "fuse::":
            node.parent.remove(node)
    for rubric in list(box.findall(nodes.rubric)):
        rubric.parent.remove(rubric)
    for block in list(box.findall(nodes.literal_block)):
        block["language"] = "cpp"
        _hoist(block)
    for text in list(box.findall(nodes.Text)):
        if "fuse::" in text and _in_signature(text):
            text.parent.replace(text, nodes.Text(text.replace("fuse::", "")))


def _hoist(block):
    """Breathe puts blocks into paragraphs, where HTML has none."""
    paragraph = block.parent
    if not isinstance(paragraph, nodes.paragraph):
        return
    at = paragraph.index(block)
    rest = nodes.paragraph("", "", *paragraph[at + 1:])
    del paragraph[at:]
    around = paragraph.parent
    place = around.index(paragraph) + 1
    around.insert(place, block)
    if rest.astext().strip():
        around.insert(place + 1, rest)


def _in_signature(node):
    while node is not None and not isinstance(node, addnodes.desc_content):
        if isinstance(node, addnodes.desc_signature):
            return True
        node = node.parent
    return False


def _place(box, places):
    """Gives each name an anchor that people can write: api-Tensor-sum."""
    for signature in box.findall(addnodes.desc_signature):
        name = _name_of(signature)
        if name is not None and name not in places:
            places[name] = f"api-{name.replace('::', '-')}"
            signature["ids"].insert(0, places[name])


def _name_of(signature):
    """`Tensor::sum`; the lines before the last one are the template's."""
    parts, node = [], signature
    while node is not None:
        if isinstance(node, addnodes.desc):
            node = node[0]
        if isinstance(node, addnodes.desc_signature):
            line = list(node.findall(addnodes.desc_signature_line))[-1]
            parts.insert(0, next(line.findall(addnodes.desc_name)).astext())
            node = node.parent
        node = node.parent
    return "::".join(parts)


class ApiRole(SphinxRole):
    def run(self):
        node = api_reference("", self.text, name=self.text.rstrip("()"))
        self.set_source_info(node)
        return [node], []


def index_of(app):
    """What code links are made from, and where each name is explained."""
    found = getattr(app, "fusebook_index", None)
    if found is None:
        places = {name: (page, anchor)
                  for page, names in _known(app.env).items()
                  for name, anchor in names.items()}
        places.update(editions.english(app).get("api", {}))
        book = pages.book_of(app.env)
        rows = ops.read(book, ()) if book.operations.is_file() else ()
        places.update({f"op-{op.name}": ("ops", f"op-{op.name}")
                       for op in rows})
        names = [name for name in places if not name.startswith("op-")]
        found = links.Index(names, [op.name for op in rows]), places
        app.fusebook_index = found
    return found


def _fill(app, doctree, docname):
    index, places = index_of(app)
    for node in list(doctree.findall(api_reference)):
        node.replace_self(_link_to(app, docname, places, node))
    api_users.fill(app, doctree, docname, index, places)


def _link_to(app, docname, places, node):
    text = nodes.literal("", node.astext(), classes=["api-name"])
    place = places.get(node["name"])
    if place is None:
        pages.warn(f"no page of the reference explains {node['name']}",
                   node.source, node.line)
        return text
    uri = editions.uri(app, docname, place[0])
    return nodes.reference("", "", text, internal=True,
                           refuri=f"{uri}#{place[1]}")


def _known(env):
    """Pages -> names -> anchors."""
    if not hasattr(env, "fusebook_api"):
        env.fusebook_api = {}
    return env.fusebook_api


def _purge(app, env, docname):
    _known(env).pop(docname, None)
    app.fusebook_index = None
    api_users.purge(app, env, docname)


def _merge(app, env, docnames, other):
    known = _known(other)
    _known(env).update({d: known[d] for d in docnames if d in known})
    api_users.merge(env, docnames, other)


def _folder(app):
    """Where Breathe finds the XML."""
    return Path(app.doctreedir) / "doxygen" / "xml"


def _configure(app, config):
    """Early, or every page would seem to have been read with other settings."""
    config.breathe_projects = {"fusebook": str(_folder(app))}
    config.breathe_default_project = "fusebook"


def _prepare(app):
    """Before anything is read: the XML, and what is amiss in it."""
    if editions.is_translation(app.config):
        return  # the reference is English
    book = pages.book_of(app.env)
    folder = _folder(app)
    fresh = folder.with_name("fresh")
    try:
        doxygen.run(book, fresh)
        reference = Reference.read(book, fresh)
        tidy.tidy(fresh, reference)
        tidy.replace(folder, fresh)
    except BookError as error:
        pages.warn(error.message, error.path or "docs/reference", error.line)
        reference = Reference([], {}, None)
    else:
        for problem in reference.problems(book):
            pages.warn(problem.message, problem.path, problem.line)
    app.fusebook_reference = reference


def setup(app):
    app.setup_extension("breathe")
    app.add_node(api_users.used_in)
    app.add_node(api_reference)
    app.add_directive("api", Api)
    app.add_role("api", ApiRole())
    app.connect("config-inited", _configure)
    app.connect("builder-inited", _prepare, priority=400)
    app.connect("doctree-resolved", _fill)
    app.connect("env-purge-doc", _purge)
    app.connect("env-merge-info", _merge)
