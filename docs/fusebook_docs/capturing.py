"""Keeps what a run printed as the output of its page."""

from dataclasses import replace

from . import samples
from .errors import BookError


def keep(book, run, *, fresh=False):
    """Writes a sample if there is a reason to; says what was done."""
    key = (run.device, run.recipe, run.exercise)
    page = None if fresh else _kept(book, key)
    if page is None or _steady(page) != _steady(run):
        return _written(book, run)
    moved = _with_places_of(page, run)
    if moved != page:
        _written(book, moved)
        return "only source lines changed; timings kept"
    return "only timings changed; left as it is"


def placed(run, folder=None, driver=None):
    """A run as the sample of a device, with the driver it used."""
    facts = {**run.provenance, **({"driver": driver} if driver else {})}
    return replace(run, device=folder or run.device, provenance=facts)


def _kept(book, key):
    """The sample there is; None also when it is damaged."""
    try:
        return samples.load(book, *key)
    except BookError:
        return None


def _written(book, sample):
    paths = samples.store(book, sample)
    return "captured in " + " and ".join(str(book.show(p)) for p in paths)


def _steady(sample):
    """What must not differ between two captures of one program."""
    values = {name: (value.kind, value.unit, value.low, value.high)
              for name, value in sample.values.items()}
    return (sample.steps, sample.source_sha256, sample.kernels,
            sample.gpu_code_sha256, values)


def _with_places_of(page, run):
    """The page's sample with the places of a run, or the page itself."""
    values = {name: run.values[name] if value.kind == "place" else value
              for name, value in page.values.items()}
    return replace(page, values=values)
