"""What compilers make of a recipe's kernel: what is counted from it, and its
texts in C++, CUDA, x86 assembly, PTX and SASS, in tabs. Nothing is compiled here."""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from .. import gallery, kernel_text, samples
from ..errors import BookError
from ..machine import explorer, kept, making, occupancy, promises
from ..words import later, say
from . import downloads, kernel_view
from . import nodes as own
from . import page as pages
from .editions import said
from .tables import table

TITLE = "From C++ to machine code"
_TABS = {"cpp": "C++", "cuda": "CUDA", "x86": later("x86 assembly"), "ptx": "PTX",
         "sass": "SASS"}
_LEXERS = {"cpp": "cpp", "cuda": "cuda", "x86": "nasm", "ptx": "ptx",
           "sass": "gas"}
_THREADS = 256  # of a block, as the text says: __launch_bounds__(256)


def lines(page):
    """The section of a recipe's page; none where no kernel was captured."""
    if not kept.exists(page.book, page.name):
        return []
    classes = "machine-texts kernel-above" if _is_above(page) else "machine-texts"
    found = [TITLE, "-" * len(TITLE), "", ".. recipe-machine-code::", "",
             ".. tab-set::", "   :sync-group: language",
             f"   :class: {classes}", ""]
    for name, label in _TABS.items():
        found += [f"   .. tab-item:: {say(label)}", f"      :sync: {name}", "",
                  f"      .. recipe-machine-text:: {name}", ""]
    return found


def _is_above(page):
    """Whether a step of the page shows the kernel's C++ already."""
    sample = page.samples.get("cpu")
    return sample is not None and any(kernel_text.split(samples.filled(
        step.text, sample.values)) for step in sample.steps)


def pointer(env, page):
    """What stands under a kernel that a step printed, as nodes."""
    if not kept.exists(page.book, page.name):
        return []
    title = nodes.reference("", said(env, TITLE), internal=True,
                            refid=nodes.make_id(TITLE))
    words = own.sentence("In CUDA, x86 assembly, PTX and SASS: {section}.", section=title)
    return [nodes.paragraph("", "", *words, classes=["recipe-meta"])]


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
        fold = own.fold(
            summary=say("Registers and occupancy, by GPU architecture"),
                        classes=[])
        fold += [_gpus(kernel), nodes.paragraph(
            "", say(_ABOUT_GPUS, most=promises.REGISTERS))]
        return [*_opening(page, kernel, link), _counts(kernel),
                *_read_twice(kernel), *_jumped_over(kernel), fold, _on_paper(page)]


def _on_paper(page):
    """Where the texts are that are not printed."""
    names = kept.file_names(page.name).values()
    files = [node for name in names
             for node in (nodes.Text(", "), downloads.written(name))][1:]
    where = (later("On paper the kernel stands above, once. All its texts are files "
                   "beside this page: {files}.") if _is_above(page) else
             later("On paper the kernel is in C++ alone. All its texts are files beside "
                   "this page: {files}."))
    return nodes.paragraph("", "", *own.sentence(where, files=files),
                           classes=["on-paper"])


_ABOUT_GPUS = later(
    "A GPU consists of multiprocessors. Threads run on them in warps, groups that "
    "take each step together, and each multiprocessor holds many warps at a time. "
    "Occupancy is how many warps of this kernel fit on one, of those that it can "
    "hold. A kernel that only waits for memory needs enough of them "
    "to keep memory busy, not all of them. Spilled bytes are registers that had to "
    "go to memory. A test checks that there are none on any architecture that "
    "NVRTC knows, and that no kernel needs more than {most} "
    "registers per thread.")


def _opening(page, kernel, link):
    entry = next(e for e in gallery.entries(page.book) if e.name == page.name)
    which = (say("This is the kernel with {operation}",
                 operation=entry.kernel_with) if entry.kernel_with else
             say("Of the kernels with one loop that are generated for this program, this "
                 "is the one that moves most bytes for an element"))
    there = nodes.reference("", say("open the kernel in Compiler Explorer"),
                            refuri=link)
    words = own.sentence(
        "You may skip this section; nothing else builds on it. {which}, and what "
        "compilers make of it: {compiler} for x86 processors with AVX2 (your own "
        "run compiles for your processor), and {nvrtc} for GPUs, without one. You can "
        "{open_it}, as it is compiled here, and change it.",
        which=which, compiler=kernel.compiler, nvrtc=kernel.nvrtc, open_it=there)
    return [nodes.paragraph("", "", *words)]


def _counts(kernel):
    element = kernel.element()
    loops = (kernel.x86_loop(), kernel.ptx_loop(), kernel.sass_loop())
    rows = [(say("elements in a round of the loop"),
             *(f"{loop.elements(element):g}" for loop in loops)),
            *((words, *(_accesses(loop, kind) for loop in loops))
              for kind, words in (("load", say("loads in a round")),
                                  ("store", say("stores in a round")))),
            *((words, *(f"{loop.bytes(kind) / loop.elements(element):g}"
                        for loop in loops))
              for kind, words in (("load", say("bytes loaded per element")),
                                  ("store", say("bytes stored per element")))),
            (say("calls, and accesses to the stack"),
             *(f"{loop.calls + loop.on_stack or say('none')}" for loop in loops))]
    return table((say("counted"), say("x86 assembly"), "PTX", "SASS"), rows)


def _read_twice(kernel):
    loop = kernel.x86_loop()
    if len(loop.of("load")) == loop.places("load"):
        return []
    text = say("The x86 loop has more loads than lists: what it needs again it reads "
               "again rather than keep it in a register, and then it comes from the "
               "cache.")
    return [nodes.paragraph("", text)]


def _jumped_over(kernel):
    count = kernel.sass_loop().jumped_over
    if count == 0:
        return []
    text = say("The table leaves out {count} calls in the SASS, to the compiler's own "
               "quotients and roots for infinities, zeros and numbers at the ends of "
               "the range. Ordinary numbers jump over them.",
               count=count)
    return [nodes.paragraph("", text)]


def _accesses(loop, kind):
    width, = loop.widths(kind)
    count, lists = len(loop.of(kind)), loop.places(kind)
    words = {"load": later("{count} of {width} bytes, from {lists} lists"),
             "store": later("{count} of {width} bytes, to {lists} lists")}[kind]
    return say(words, count=count, width=width, lists=lists)


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
                     say("{some} of {most} warps", some=some, most=most)))
    return table((say("compute capability"), say("registers per thread"),
                  say("spilled bytes"), say("occupancy")), rows)


class MachineText(SphinxDirective):
    """What matters of one text, and a link to all of it."""

    required_arguments = 1

    def run(self):
        page, kernel = _kernel(self)
        name = self.arguments[0]
        try:
            folded, shown, about = _PARTS[name](kernel)
        except BookError as error:
            raise self.error(f"the kernel of {page.name}: {error}") from None
        words = own.sentence(
            "{about} All of it: {file}, {count} lines.", about=about,
            file=downloads.written(kept.file_names(page.name)[name]),
            count=kernel.texts[name].count("\n"))
        found = [nodes.paragraph("", "", *words)]
        if folded:
            fold = own.fold(summary=say(kernel_view.ABOVE, count=len(folded)),
                            classes=[])
            fold += self._block(folded, name)
            found.append(fold)
        return [*found, self._block(shown, name)]

    def _block(self, part, name):
        text = "\n".join(part)
        block = nodes.literal_block(text, text, language=_LEXERS[name],
                                    force=True, classes=["machine-code"])
        self.set_source_info(block)
        return block


_STAGES = "  // Once per launch."  # begins what a body computes


def _generated(kernel, name):
    """What is not the same in every kernel: types, and functions."""
    every = kernel.lines(name)
    start = max(i for i, line in enumerate(every) if line == "namespace fuse {")
    if _STAGES not in every:
        raise BookError(f"no line {_STAGES.strip()!r} is in the kept {name}.txt: make "
                        "it again with ./fusebook capture kernels")
    stages = every.index(_STAGES)
    return every[start:stages], every[stages:-1]


def _host(kernel):
    return *_generated(kernel, "cpp"), say(
        "What is generated; the loop around it is in the text that every kernel "
        "begins with.")


def _cuda(kernel):
    return *_generated(kernel, "cuda"), say(
        "The same functions, and what loads and stores four elements at once.")


def _x86(kernel):
    loop = kernel.x86_loop()
    return [], kernel.lines("x86")[loop.first:loop.end], say(
        "The loop in which a step spends its time, by {compiler}. Another compiler "
        "may order it differently.", compiler=kernel.compiler)


def _ptx(kernel):
    loop = kernel.ptx_loop()
    shown = [line.replace("\t", "  ", 1).replace(" \t", " ")
             for line in kernel.lines("ptx")[loop.first:loop.end]]
    return [], shown, say(
        "The same loop, by {compiler}. PTX is what a driver compiles for its GPU.",
        compiler=kernel.nvrtc)


def _sass(kernel):
    loop = kernel.sass_loop()
    return [], kernel.lines("sass")[loop.first:loop.end], say(
        "The same loop once more, as a GPU of compute capability {capability} executes it: by "
        "{compiler}, read by {reader}.", capability=making.ARCHITECTURE / 10, compiler=kernel.nvrtc,
        reader=kernel.nvdisasm)


_PARTS = {"cpp": _host, "cuda": _cuda, "x86": _x86, "ptx": _ptx, "sass": _sass}


def setup(app):
    app.add_directive("recipe-machine-code", MachineCode)
    app.add_directive("recipe-machine-text", MachineText)
