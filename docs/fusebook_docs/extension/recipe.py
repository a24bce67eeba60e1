"""Turns a recipe into the lines of a page, each with its place in the file.

The page is reStructuredText that exists in memory only. Prose goes in as it
is; code, output and the whole program go in as directives of this module that
look up what they show.
"""

from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from docutils.utils import column_width
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from .. import currency, gallery, samples
from .. import downloads as zipped
from ..errors import BookError
from ..words import later, many, say
from . import downloads, kernel_view, machine_code, translated
from . import nodes as own
from . import page as pages
from .editions import said_title

_MARKUP = "\\*`|_"


class RecipeParser(translated.TranslatedParser):
    """Reads the file of a recipe as a page."""

    supported = ("recipe",)

    def parse(self, inputstring, document):
        env = document.settings.env
        if translated.place(env, document["source"]):  # one message of a page
            super().parse(inputstring, document)
            return
        try:
            page = pages.open_page(env, Path(env.docname).name)
            lines = _Writer(page).lines()
        except BookError as error:
            pages.warn(error.message, error.path or document["source"],
                       error.line)
            super().parse("Not a page\n==========\n", document)
            return
        document["source"] = str(page.path)
        super().parse(lines, document)


class _Writer:
    """Collects the lines of a page."""

    def __init__(self, page):
        self.page = page
        self.about = gallery.about(page.book, page.name)
        self.out = StringList()

    def lines(self):
        recipe = self.page.recipe
        for index, part in enumerate(recipe.parts):
            if index == len(recipe.parts) - 1:
                self._conclusion()
            if index == 0:
                self._opening(part)
            elif part.is_step:
                self._heading(part)
                self._prose(part.prose)
            else:
                self._prose(part.prose)
            if part.code:
                self._add(part.code[0].number, f".. recipe-code:: {index}", "")
            if part.is_step or index == 0:
                self._outputs(part)
            if part.tail:
                self._add(part.tail[0].number, f".. recipe-code:: {index}",
                          "   :tail:", "")
        self._closing()
        return self.out

    def _add(self, number, *texts):
        for text in texts:
            self.out.append(text, str(self.page.path), number - 1)

    def _prose(self, lines):
        for line in lines:
            self._add(line.number, line.text)
        self._add(lines[-1].number, "")

    def _from_about(self, lines, indent=""):
        path = gallery.about_path(self.page.book, self.page.name)
        for line in lines:
            self.out.append(f"{indent}{line.text}".rstrip(), str(path),
                            line.number - 1)
        self.out.append("", str(path), lines[-1].number)

    def _learn(self, line):
        if self.about is None:
            return
        self._add(line, ".. container:: recipe-learn", "",
                  "   .. rst-class:: recipe-label", "",
                  "   What you will learn", "")
        self._from_about(self.about.learn, "   ")
        self._add(line, "   .. recipe-needs::", "")

    def _conclusion(self):
        """Before the exercises: what to remember, and where to go on."""
        if self.about is not None:
            self._from_about(self.about.conclusion)
            self._from_about(self.about.see_also)
        after = _next(self.page)
        if after:
            self._add(self.page.recipe.parts[-1].line,
                      f"**Next recipe:** :doc:`/recipes/{after}`", "")

    def _opening(self, part):
        self._prose(part.prose[:2])
        self._add(part.line, ".. recipe-status::", "")
        self._learn(part.line)
        if part.prose[2:]:
            self._prose(part.prose[2:])

    def _heading(self, part):
        title = "".join(f"\\{c}" if c in _MARKUP else c for c in part.title)
        self._add(part.line, title, "-" * max(column_width(title), 4), "")

    def _outputs(self, part):
        texts = output_lines(self.page.samples, part.title or "")
        self._add(part.code[-1].number if part.code else part.line, *texts, "")

    def _closing(self):
        last = self.page.recipe.source.count("\n")
        self._add(last, *machine_code.lines(self.page))
        self._add(last, "The whole program", "-----------------", "",
                  ".. recipe-program::", "")


def _next(page):
    """The recipe that follows this one in the gallery, if both are listed."""
    names = [entry.name for entry in gallery.entries(page.book)
             if entry.level is not None]
    if page.name not in names[:-1]:
        return None
    return names[names.index(page.name) + 1]


def output_lines(by_device, title, exercise=None):
    """Directives that show a step's output, in a tab for every device that
    captured it."""
    cpu = by_device.get("cpu")
    return in_tabs({device: _output_lines(device, title, exercise)
                    for device, sample in by_device.items()
                    if _prints(sample, cpu, title)})


def in_tabs(tabs):
    """Lines by device: as they are for one of them, else each in its tab."""
    if len(tabs) < 2:
        return [line for lines in tabs.values() for line in lines]
    lines = [".. tab-set::", "   :sync-group: device", "   :class: devices", ""]
    for device, content in tabs.items():
        lines += [f"   .. tab-item:: {pages.label(device)}",
                  f"      :sync: {device}", ""]
        lines += [f"      {line}" for line in content]
    return lines


def _prints(sample, cpu, title):
    """Whether there is output, or a gap to tell where the CPU has some."""
    text = sample.text_of(title)
    if text is None:
        return cpu is not None and bool(cpu.text_of(title))
    return bool(text)


def _output_lines(device, title, exercise):
    lines = [f".. recipe-output:: {device}"]
    if title:
        lines.append(f"   :step: {title}")
    if exercise:
        lines.append(f"   :exercise: {exercise}")
    return [*lines, ""]


class RecipeCode(SphinxDirective):
    """The code of one part of the recipe, by the part's number."""

    required_arguments = 1
    option_spec = {"tail": directives.flag}

    def run(self):
        recipe = pages.current(self.env).recipe
        part = recipe.parts[int(self.arguments[0])]
        code = part.tail if "tail" in self.options else part.code
        text = "\n".join(line.text for line in code)
        block = nodes.literal_block(text, text, language=recipe.language.LEXER,
                                    classes=["recipe-code"])
        self.set_source_info(block)
        return [block]


class RecipeOutput(SphinxDirective):
    """What a step printed on one device."""

    required_arguments = 1
    option_spec = {"step": directives.unchanged,
                   "exercise": directives.unchanged}

    def run(self):
        page, device = pages.current(self.env), self.arguments[0]
        title = self.options.get("step", "")
        exercise = self.options.get("exercise")
        found, source = page.samples, page.recipe
        if exercise:
            found, source = self.env.temp_data[f"{pages.KEY}.{exercise}"]
        sample = found[device]
        panel = own.output(label=self._label(page, title, pages.label(device)))
        stale = currency.is_stale(page.book, sample, source, found.get("cpu"))
        try:
            panel += _panel(self.env, page, sample, title, stale)
        except BookError as error:
            raise self.error(str(error)) from None
        self.set_source_info(panel)
        return [panel]


    def _label(self, page, title, device):
        if not title:
            return say("Output, {device}", device=device)
        return say("Output of {step}, {device}", device=device,
                   step=said_title(self.env, page, title))


def _panel(env, page, sample, title, stale):
    text = sample.text_of(title)
    label = nodes.paragraph("", say("Output on {device}",
                                    device=pages.label(sample.device)),
                            classes=["output-label"])
    if text is None:
        text = say("(this step is newer than the sample)") + "\n"
    text = text.removesuffix("\n")
    blocks = kernel_view.view(env, page, sample,
                              samples.filled(text, sample.values))
    line = nodes.paragraph("", provenance(sample), classes=["provenance"])
    if stale:
        line += nodes.Text(" · ")
        line += nodes.inline("", say("captured before the last change"),
                             classes=["stale"])
    if samples.names_in(text):
        line += nodes.Text(" · ")
        line += nodes.inline("", say("dotted values vary"), classes=["legend"])
    if blocks and sample.exercise is None:
        blocks += machine_code.pointer(env, page)
    return [label, *(blocks or [_printed(text, sample)]), line]


def _printed(text, sample):
    block = own.output_text("", "", xml_space="preserve")
    for piece in samples.pieces(text):
        if isinstance(piece, str):
            block += nodes.Text(piece)
        else:
            block += _varying(sample.values[piece[0]])
    return block


def _varying(value):
    """A marked value; blanks that line it up stay unmarked."""
    text = value.shown.strip(" ")
    before, _, after = value.shown.partition(text)
    parts = (nodes.Text(before), own.varies("", text, kind=value.kind),
             nodes.Text(after))
    return [part for part in parts if part.astext()]


def provenance(sample):
    """Where and when a sample was captured, in one line."""
    facts = sample.provenance
    where = facts["device"]
    threads = facts.get("threads") if sample.device == "cpu" else None
    if threads:
        where = many("{device}, {count} thread", "{device}, {count} threads",
                     threads, device=where)
    extra = [facts[name] for name in ("architecture", "driver")
             if facts.get(name)]
    return " · ".join([where, *extra, facts["compiler"], facts["date"]])


class RecipeStatus(SphinxDirective):
    """Under the title: the file, how to run it, where it was captured."""

    def run(self):
        page = pages.current(self.env)
        command = gallery.run_command(page.book, page.name)
        line = nodes.paragraph("", "", *own.sentence(
            "This page is a program. Run it yourself with {command}. {downloads} What "
            "prints and times in the code ({print}, {measured}, {exact}, {ratio} and "
            "the like) belongs to the recipes, not to the library that they show.",
            command=nodes.literal(command, command),
            downloads=downloads.links(self.env, page),
            **{name: nodes.literal(name, name)
               for name in ("print", "measured", "exact", "ratio")}),
            classes=["recipe-meta"])
        found = [line]
        facts = entry_line(self.env, page.book, page.name)
        if facts is not None:
            found.append(facts)
        if page.samples and not any(map(pages.is_gpu, page.samples)):
            text = say("This recipe has not been run on a GPU yet, so every output "
                       "below is from a CPU.")
            found.append(nodes.paragraph("", text, classes=["recipe-quiet"]))
        return found


class RecipeNeeds(SphinxDirective):
    """What the recipe needs to run, beside what a reader will learn."""

    def run(self):
        label = nodes.paragraph("", say("What you need"), classes=["recipe-label"])
        needs = _NEEDS[zipped.needed(pages.current(self.env).path)]
        return [label, nodes.paragraph("", "", *own.sentence(
            needs, **{command: nodes.literal("", f"./fusebook {command}")
                      for command in ("run", "doctor")}))]


_NEEDS = {
    "": later("A C++20 compiler, which compiles the kernels, too, when the program "
              "runs. {doctor} lists what else is missing, and {run} installs it if "
              "you agree. A GPU is used if there is one; none is needed."),
    "MPI": later("A C++20 compiler, which compiles the kernels, too, when the program "
                 "runs, and MPI. {doctor} lists what else is missing, and {run} "
                 "installs it if you agree. No GPU is needed."),
    "LibTorch": later("A C++20 compiler, which compiles the kernels, too, when the "
                      "program runs, and LibTorch, without which {run} leaves this "
                      "recipe out. No GPU is needed."),
    "Python": later("Python with NumPy, and a C++20 compiler, which compiles the "
                    "package and the kernels. {doctor} lists what is missing, and "
                    "{run} installs it if you agree. No GPU is needed."),
}


class RecipeProgram(SphinxDirective):
    """The whole program, folded."""

    def run(self):
        page = pages.current(self.env)
        source = page.recipe.source
        count = len(source.splitlines())
        fold = own.fold(summary=say("{file}, {count} lines",
                                    file=page.path.name, count=count),
                        classes=["whole-program"])
        fold += nodes.literal_block(source, source,
                                    language=page.recipe.language.LEXER)
        line = nodes.paragraph()
        line += downloads.links(self.env, page)
        return [fold, line]


def entry_line(env, book, name):
    """Level, minutes, what it builds on and who has captured it."""
    for path in (gallery.path(book), gallery.about_path(book, name)):
        if path.is_file():  # else the page would be read anew every time
            env.note_dependency(str(path))
    entry = next(e for e in gallery.entries(book) if e.name == name)
    if entry.level is None:
        return None
    devices = ", ".join(pages.label(device) for device in book.devices(name))
    env.note_dependency(str(book.recipe_path(name)))
    facts = say("{level} · {count} minutes · captured on {devices}",
                count=gallery.minutes(book, name), level=say(entry.level),
                devices=devices)
    line = nodes.paragraph("", facts, classes=["recipe-meta"])
    if entry.builds_on:
        line += own.sentence(" · builds on {recipes}", recipes=[
            node for number, other in enumerate(entry.builds_on)
            for node in (*[nodes.Text(say(", "))][:number], _link_to(env, other))])
    return line


def _link_to(env, recipe):
    return addnodes.pending_xref(
        "", nodes.inline("", recipe), refdomain="std", reftype="doc",
        reftarget=f"/recipes/{recipe}", refdoc=env.docname, refexplicit=False,
        refwarn=True)


def setup(app):
    app.add_directive("recipe-status", RecipeStatus)
    app.add_directive("recipe-needs", RecipeNeeds)
    app.add_directive("recipe-code", RecipeCode)
    app.add_directive("recipe-output", RecipeOutput)
    app.add_directive("recipe-program", RecipeProgram)
