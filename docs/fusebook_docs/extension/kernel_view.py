"""A generated kernel beside the code it comes from.

Where a step printed a kernel, the page shows the functions that its lines name,
and next to them the kernel: what it computes open, the rest folded. A line is
linked to its counterpart; with fusebook.js, pointing at one or moving to it by
keyboard marks the other. The text is the captured one, to the last character.

    .. kernel-beside:: common/bench/adam_by_hand.cu
       :mark: update
       :pairs: m: lerp; v: mul, addcmul

shows code written by hand beside the kernel that the step prints: what lies
between two comments `// [update]`. The pairs say which operations of the kernel
the line does that begins with `m =`.
"""

import html
import re

from docutils import nodes
from docutils.parsers.rst import directives
from pygments.lexers import CppLexer
from pygments.token import STANDARD_TYPES
from sphinx.util.docutils import SphinxDirective

from .. import kernel_text
from ..errors import BookError
from ..words import later, say
from . import nodes as own
from . import page as pages

ABOVE = later("Above: the operations, and the types of what they work on "
              "({count} lines)")
_FOLDED = (ABOVE,
           later("Below: how elements are loaded and stored ({count} lines)"),
           later("In between ({count} lines)"))
_DEEP = 8  # blanks


class kernel_view(nodes.General, nodes.Element):
    """`drawn` is all of it, as HTML."""


class KernelBeside(SphinxDirective):
    required_arguments = 1
    option_spec = {"mark": directives.unchanged_required,
                   "pairs": directives.unchanged_required}

    def run(self):
        page = pages.current(self.env)
        path = page.book.root / self.arguments[0]
        if len(self.options) != 2 or not path.is_file():
            raise self.error("kernel-beside needs a file of the book, :mark: and "
                             ":pairs:")
        self.env.note_dependency(str(path))
        mark = f"// [{self.options['mark']}]"
        lines = path.read_text(encoding="utf-8").split("\n")
        marks = [i for i, line in enumerate(lines) if line.strip() == mark]
        if len(marks) != 2:
            raise self.error(f"{path.name} needs exactly two lines {mark!r}")
        excerpt = kernel_text.Excerpt(str(page.book.show(path)), marks[0] + 2,
                                      tuple(lines[marks[0] + 1:marks[1]]))
        page.beside = (excerpt, self._pairs(excerpt))
        return []

    def _pairs(self, excerpt):
        """Numbers of lines, and the operations that each does."""
        found = {}
        for pair in self.options["pairs"].split(";"):
            name, _, operations = map(str.strip, pair.partition(":"))
            hits = [number for number, text in excerpt.numbered()
                    if text.lstrip().startswith(f"{name} =")]
            if len(hits) != 1:
                raise self.error(f"kernel-beside: {len(hits)} lines of "
                                 f"{excerpt.path} begin with '{name} ='")
            found[hits[0]] = [word.strip() for word in operations.split(",")]
        return found


def view(env, page, sample, text):
    """What a panel shows of a text that may hold a kernel, as nodes, or None."""
    shown = [value.shown for value in sample.values.values()
             if value.kind == "place"]
    split = kernel_text.split(text)
    if split is None:
        return None
    before, kernel, after = split
    beside, page.beside = page.beside, None
    sources = kernel_text.excerpts(page.book, kernel)
    for excerpt in sources:
        env.note_dependency(str(page.book.root / excerpt.path))
    writer = _Writer(f"kernel-{env.new_serialno('kernel')}", kernel, sources,
                     shown)
    if beside:
        writer.put_beside(*beside)
    blocks = [own.output_text(part, part, xml_space="preserve")
              for part in (f"{before}\n", after)]
    blocks.insert(1, kernel_view(drawn=writer.html()))
    return [block for block in blocks if block.astext().strip()
            or isinstance(block, kernel_view)]


class _Writer:
    """Writes one view. A line has the keys of all that it belongs to; those of
    its counterparts share one."""

    def __init__(self, name, kernel, sources, places):
        self.name, self.kernel, self.sources = name, kernel, list(sources)
        self.places = places
        self.keys = [[_key(line.path, line.number)] if line.place else []
                     for line in kernel]

    def put_beside(self, excerpt, pairs):
        self.sources.insert(0, excerpt)
        left = {operation: number for number, operations in pairs.items()
                for operation in operations}
        used = set()
        for index in self._elementwise():
            for operation in self.kernel[index].operations:
                if operation not in left:
                    raise BookError(f"kernel-beside: no line computes "
                                    f"{operation}")
                used.add(operation)
                self.keys[index].append(_key(excerpt.path, left[operation]))
        if set(left) - used:
            raise BookError("kernel-beside: the kernel has no "
                            + ", ".join(sorted(set(left) - used)))

    def _elementwise(self):
        """Lines of the last function with operations: what is done once for
        each element."""
        last = [part for part in kernel_text.parts(self.kernel)
                if not part[0]][-1]
        heads = [index for index in range(*last[1:])
                 if self.kernel[index].text.startswith("  static ")]
        return [index for index in range(heads[-1], last[2])
                if self.kernel[index].operations]

    def html(self):
        return (f'<div class="kernel-view">\n{self._sources()}\n'
                f"{self._kernel()}\n</div>\n")

    # ---- the code it comes from

    def _sources(self):
        blocks, titled = [], None
        for excerpt in self.sources:
            lines = _highlighted("\n".join(excerpt.lines))
            shown = "".join(
                self._source_line(excerpt.path, number, line, drawn)
                for (number, line), drawn in zip(excerpt.numbered(), lines))
            if excerpt.path != titled:
                titled = excerpt.path
                blocks.append(f'<p class="kernel-title">{html.escape(titled)}'
                              "</p>")
            blocks.append(f'<pre class="kernel-lines">{shown}</pre>')
        return _pane("source", say("The code it comes from"), "\n".join(blocks))

    def _source_line(self, path, number, text, drawn):
        key = _key(path, number)
        first = next((i for i, keys in enumerate(self.keys) if key in keys),
                     None)
        gutter = f'<span class="kernel-number" data-line="{number}"></span>'
        if first is not None:
            label = say("line {number}, in the kernel", number=number)
            gutter = (f'<a class="kernel-number" data-line="{number}" '
                      f'href="#{self.name}-{first}" aria-label="{label}"></a>')
        return _span(f"{self.name}-{key}", [key] if first is not None else [],
                     gutter + _code(text, drawn))

    # ---- the kernel

    def _kernel(self):
        drawn = _highlighted("\n".join(line.code for line in self.kernel))
        rows = [self._kernel_line(index, drawn[index])
                for index in range(len(self.kernel))]
        parts = kernel_text.parts(self.kernel)
        blocks = []
        for number, (folded, first, end) in enumerate(parts):
            block = ('<pre class="kernel-lines output-kernel">'
                     f'{"".join(rows[first:end])}</pre>')
            if folded:
                which = (0 if number == 0 else
                         1 if number == len(parts) - 1 else 2)
                title = say(_FOLDED[which], count=end - first)
                block = (f'<details class="fold"><summary>{title}</summary>'
                         f"{block}</details>")
            blocks.append(block)
        return _pane("generated", say("The generated kernel"), "\n".join(blocks))

    def _kernel_line(self, index, drawn):
        line = self.kernel[index]
        note = ""
        if line.note:
            place = f"{line.path}:{line.number}"
            words = html.escape(place)
            if place in self.places:
                words = (f'<span class="varies" title="{say(own.VARIES["place"])}">'
                         f"{words}</span>")
            href = f"#{self.name}-{_key(line.path, line.number)}"
            note = (f'<span class="kernel-note" style="--indent: '
                    f'{_indent(line.text)}"><span class="c1">'
                    f"{html.escape(line.note.removesuffix(place))}"
                    f'<a href="{href}">{words}</a></span></span>')
        return _span(f"{self.name}-{index}", self.keys[index],
                     _code(line.code, drawn) + note)


def _pane(kind, label, content):
    return (f'<div class="kernel-pane kernel-{kind} highlight" role="group" '
            f'aria-label="{label}" tabindex="0">\n{content}\n</div>')


def _key(path, number):
    return f"{re.sub(r'[^a-zA-Z0-9]', '-', path)}-{number}"


def _span(name, keys, content):
    at = f' data-at="{" ".join(keys)}"' if keys else ""
    return f'<span class="kernel-line" id="{name}"{at}>{content}\n</span>'


def _indent(text):
    return len(text) - len(text.lstrip())


def _code(text, drawn):
    """One that is far to the right begins further left on the page."""
    indent = _indent(text)
    aside = indent - _DEEP if indent > 2 * _DEEP else 0
    if aside:
        drawn = f'<span class="kernel-aside">{" " * aside}</span>{drawn[aside:]}'
    return (f'<span class="kernel-code" style="--indent: {indent - aside}">'
            f"{drawn}</span>")


def _highlighted(text):
    """Code as HTML, line by line, in the classes of Pygments."""
    lines = [""]
    for kind, value in CppLexer(stripnl=False, ensurenl=False).get_tokens(text):
        while kind not in STANDARD_TYPES:
            kind = kind.parent
        name = STANDARD_TYPES[kind]
        for number, piece in enumerate(value.split("\n")):
            if number:
                lines.append("")
            if piece:
                words = html.escape(piece, quote=False)
                lines[-1] += (f'<span class="{name}">{words}</span>'
                              if name and piece.strip() else words)
    return lines


def _visit(self, node):
    self.body.append(node["drawn"])
    raise nodes.SkipNode


def _skip(self, node):
    raise nodes.SkipNode


def setup(app):
    app.add_node(kernel_view, html=(_visit, None), text=(_skip, None))
    app.add_directive("kernel-beside", KernelBeside)
