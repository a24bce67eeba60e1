"""One recipe page: the recipe, its samples, and what belongs together."""

from dataclasses import dataclass, field
from pathlib import Path

from sphinx.util import logging

from .. import checking, literate, samples
from ..book import SIMULATED, Book, capture_command
from ..errors import BookError
from ..words import later, say

KEY = "fusebook_page"
_LABELS = {"cpu": "CPU", "cuda": "GPU", SIMULATED: later("simulated GPU")}
_logger = logging.getLogger(__name__)


@dataclass
class Page:
    """What the directives of a recipe page share while it is read."""

    book: Book
    name: str
    path: Path
    recipe: literate.Recipe
    samples: dict[str, samples.Sample]
    exercises: list[str] = field(default_factory=list)
    beside: object = None  # code by hand, for the next kernel that is shown


def current(env):
    """The page that is being read; directives need one."""
    page = env.temp_data.get(KEY)
    if page is None:
        raise BookError("this directive works only on a recipe page")
    return page


def label(device):
    """What a page calls the device of a sample: "CPU", "H200", "RTX 4090"."""
    return say(_LABELS.get(device, device.upper().replace("_", " ")))


def is_gpu(device):
    """Whether a device of samples is a real GPU."""
    return device not in ("cpu", SIMULATED)


def warn(message, path, line=None):
    place = f"{path}:{line}" if line else str(path)
    _logger.warning("%s", message, location=place, type="fusebook")


def book_of(env):
    return Book(Path(env.srcdir).resolve().parent)


def open_page(env, name):
    """Reads a recipe and its samples; problems become warnings."""
    book = book_of(env)
    path = book.recipe_path(name).resolve()
    recipe = literate.read(path)
    page = Page(book, name, path, recipe, {})
    page.samples = open_samples(env, page, recipe)
    env.temp_data[KEY] = page
    return page


def open_samples(env, page, source, exercise=None, line=None):
    """The samples of a recipe or of an exercise by device, CPU first."""
    book, found = page.book, {}
    devices = book.devices(page.name, exercise)
    _remember(env, book, page.name, exercise, devices)
    for device in ["cpu", *(d for d in devices if d != "cpu")]:
        try:
            sample = samples.load(book, device, page.name, exercise)
        except BookError as error:
            warn(error, page.path, line or 1)
            continue
        found[device] = sample
        if device == "cpu":
            _check_steps(page, source, sample, line)
    for problem in checking.disagreements(book, found, source, exercise):
        warn(problem.message, problem.path, line or problem.line)
    return found


def _remember(env, book, name, exercise, devices):
    for device in devices:
        used = [] if device == "cpu" else book.gpu_code()
        for path in (*book.sample_paths(device, name, exercise), *used):
            env.note_dependency(str(path))
    known = _known(env).setdefault(env.docname, {})
    known[name, exercise] = devices


def _check_steps(page, source, sample, line):
    lines = {part.title: part.line for part in source.steps}
    for difference in checking.titles("the recipe", source.step_titles,
                                      "its sample", sample.titles):
        warn(f"{difference}; run: {capture_command(page.name, 'cpu')}",
             page.path, line or lines.get(difference.step, 1))


def _known(env):
    if not hasattr(env, "fusebook_devices"):
        env.fusebook_devices = {}
    return env.fusebook_devices


def outdated(app, env, added, changed, removed):
    """Pages for which a sample came or went since they were read."""
    book = book_of(env)
    return [docname for docname, known in _known(env).items()
            if docname in env.found_docs
            and any(book.devices(name, exercise) != devices
                    for (name, exercise), devices in known.items())]


def purge(app, env, docname):
    _known(env).pop(docname, None)


def merge(app, env, docnames, other):
    known = _known(other)
    _known(env).update({d: known[d] for d in docnames if d in known})
