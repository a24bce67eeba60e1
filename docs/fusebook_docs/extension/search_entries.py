"""What the search knows of the glossary and the API, kept from build to build.

Sphinx stores what it has read before it writes, and only writing tells the search
of index entries: those of pages that did not change would be lost in the next build.
"""

import pickle
from pathlib import Path

from sphinx.application import ENV_PICKLE_FILENAME


def _store(app, exception):
    if exception is not None or app.builder.format != "html":
        return
    path = Path(app.doctreedir, ENV_PICKLE_FILENAME)
    fresh = path.with_suffix(".fresh")
    with fresh.open("wb") as file:
        pickle.dump(app.env, file, pickle.HIGHEST_PROTOCOL)
    fresh.replace(path)


def setup(app):
    app.connect("build-finished", _store)
