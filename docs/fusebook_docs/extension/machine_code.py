"""What compilers make of a recipe's kernel: what is counted from it, and its
texts in C++, CUDA, x86 assembly and PTX, in tabs. Nothing is compiled here."""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from .. import gallery
from ..errors import BookError
from ..machine import explorer, kept, occupancy, promises
from . import downloads
from . import nodes as own
from . import page as pages
from .tables import table

TITLE = "From C++ to machine code"
_TABS = {"cpp": "C++", "cuda": "CUDA", "x86": "x86 assembly", "ptx": "PTX"}
_LEXERS = {"cpp": "cpp", "cuda": "cuda", "x86": "nasm", "ptx": "ptx"}
_THREADS = 256  # of a block, as the text says: __launch_bounds__(256)


def lines(page):
    """The section of a recipe's page; none where no kernel was captured."""
    if not kept.exists(page.book, page.name):
        return []
    found = [TITLE, "-" * len(TITLE), "", ".. recipe-machine-code::", "",
             ".. tab-set::", "   :sync-group: language",
             "   :class: machine-texts", ""]
    for name, label in _TABS.items():
        found += [f"   .. tab-item:: {label}", f"      :sync: {name}", "",
                  f"      .. recipe-machine-text:: {name}", ""]
    return found


def pointer(page):
    """What stands under a kernel that a step printed, as nodes."""
    if not kept.exists(page.book, page.name):
        return []
    line = nodes.paragraph("", "In CUDA, x86 assembly and PTX: ",
                           classes=["recipe-meta"])
    line += [nodes.reference("", TITLE, internal=True,
                             refid=nodes.make_id(TITLE)), nodes.Text(".")]
    return [line]


def _kernel(directive):
    page = pages.current(directive.env)
    for path in kept.paths(page.book, page.name).values():
        directive.env.note_dependency(str(path))
    try:
        kernel = kept.load(page.book, page.name)
        for problem in promises.broken(kernel):
            raise BookError(f"the kernel of {page.name}: {problem}")
        return page, kernel
    except BookError as error:
        raise directive.error(str(error)) from None


class MachineCode(SphinxDirective):
    """What is counted, and the link to Compiler Explorer."""

    def run(self):
        page, kernel = _kernel(self)
        try:
            link = explorer.link(kernel.texts["cpp"], kernel.options)
        except BookError as error:
            raise self.error(str(error)) from None
        fold = own.fold(summary="Registers and occupancy, by GPU architecture",
                        classes=[])
        fold += [_gpus(kernel), nodes.paragraph("", _ABOUT_GPUS)]
        return [*_opening(page, kernel, link), _counts(kernel),
                *_read_twice(kernel), fold]


_ABOUT_GPUS = (
    "A GPU consists of multiprocessors. Threads run on them in warps, groups that "
    "take each step together, and each multiprocessor holds many warps at a time. "
    "Occupancy is how many warps of this kernel fit on one, of those that it can "
    "hold. A kernel that only waits for memory needs enough of them "
    "to keep memory busy, not all of them. Spilled bytes are registers that had to "
    "go to memory. A test checks that there are none on any architecture that "
    f"NVRTC knows, and that no kernel needs more than {promises.REGISTERS} "
    "registers per thread.")


def _opening(page, kernel, link):
    entry = next(e for e in gallery.entries(page.book) if e.name == page.name)
    which = (f"This is the kernel with {entry.kernel_with}"
             if entry.kernel_with else "This is the first kernel that is generated "
                                       "for this program")
    made = nodes.paragraph(
        "", "You may skip this section; nothing else builds on it. "
            f"{which}, and what compilers make of it: {kernel.compiler} for x86 "
            "processors with AVX2 (your own run compiles for your processor), and "
            f"{kernel.nvrtc} for GPUs, without one. You can ")
    made += [nodes.reference("", "open the kernel in Compiler Explorer",
                             refuri=link),
             nodes.Text(", as it is compiled here, and change it.")]
    return [made]


def _counts(kernel):
    element = kernel.element()
    loops = (kernel.x86_loop(), kernel.ptx_loop())
    rows = [("elements in a round of the loop",
             *(f"{loop.elements(element):g}" for loop in loops)),
            *((f"{kind}s in a round", *(_accesses(loop, kind) for loop in loops))
              for kind in ("load", "store")),
            *((f"bytes {word} per element",
               *(f"{loop.bytes(kind) / loop.elements(element):g}"
                 for loop in loops))
              for kind, word in (("load", "loaded"), ("store", "stored"))),
            ("calls, and accesses to the stack",
             *(f"{loop.calls + loop.on_stack or 'none'}" for loop in loops))]
    return table(("counted", "x86 assembly", "PTX"), rows)


def _read_twice(kernel):
    loop = kernel.x86_loop()
    if len(loop.of("load")) == loop.places("load"):
        return []
    text = ("The x86 loop has more loads than lists: what it needs again it reads "
            "again rather than keep it in a register, and then it comes from the "
            "cache.")
    return [nodes.paragraph("", text)]


def _accesses(loop, kind):
    width, = loop.widths(kind)
    count, lists = len(loop.of(kind)), loop.places(kind)
    where = {"load": "from", "store": "to"}[kind]
    return f"{count} of {width} bytes, {where} {lists} lists"


def _gpus(kernel):
    rows = []
    for gpu in kernel.gpus:
        if gpu.architecture not in occupancy.SHOWN:
            continue
        most = occupancy.warps(gpu.architecture)
        some = occupancy.resident(gpu.architecture, gpu.registers, _THREADS)
        rows.append((f"{gpu.architecture // 10}.{gpu.architecture % 10}",
                     str(gpu.registers),
                     str(gpu.spill_stores + gpu.spill_loads),
                     f"{some} of {most} warps"))
    return table(("compute capability", "registers per thread",
                   "spilled bytes", "occupancy"), rows)


class MachineText(SphinxDirective):
    """What matters of one text, and a link to all of it."""

    required_arguments = 1

    def run(self):
        page, kernel = _kernel(self)
        name = self.arguments[0]
        folded, shown, about = _PARTS[name](kernel)
        found = [nodes.paragraph("", about)]
        found[0] += [nodes.Text(" All of it: "),
                     downloads.written(kept.file_names(page.name)[name]),
                     nodes.Text(f", {kernel.texts[name].count(chr(10))} lines.")]
        if folded:
            fold = own.fold(summary="Above: the operations, and the types of what "
                            f"they work on ({len(folded)} lines)", classes=[])
            fold += self._block(folded, name)
            found.append(fold)
        return [*found, self._block(shown, name)]

    def _block(self, part, name):
        text = "\n".join(part)
        block = nodes.literal_block(text, text, language=_LEXERS[name],
                                    force=True, classes=["machine-code"])
        self.set_source_info(block)
        return block


def _generated(kernel, name):
    """What is not the same in every kernel: types, and functions."""
    every = kernel.lines(name)
    start = max(i for i, line in enumerate(every) if line == "namespace fuse {")
    stages = every.index("  // Once a launch.")
    return every[start:stages], every[stages:-1]


def _host(kernel):
    return *_generated(kernel, "cpp"), (
        "What is generated; the loop around it is in the text that every kernel "
        "begins with.")


def _cuda(kernel):
    return *_generated(kernel, "cuda"), (
        "The same functions, and what loads and stores four elements at once.")


def _x86(kernel):
    loop = kernel.x86_loop()
    return [], kernel.lines("x86")[loop.first:loop.end], (
        "The loop in which a step spends its time, by "
        f"{kernel.compiler}. Another compiler may order it differently.")


def _ptx(kernel):
    loop = kernel.ptx_loop()
    shown = [line.replace("\t", "  ", 1).replace(" \t", " ")
             for line in kernel.lines("ptx")[loop.first:loop.end]]
    return [], shown, (
        f"The same loop, by {kernel.nvrtc}. PTX is what a driver compiles for "
        "its GPU.")


_PARTS = {"cpp": _host, "cuda": _cuda, "x86": _x86, "ptx": _ptx}


def setup(app):
    app.add_directive("recipe-machine-code", MachineCode)
    app.add_directive("recipe-machine-text", MachineText)
