"""The Sphinx extension: recipes become pages.

`recipes/*.cpp` and `recipes/*.py` are sources like any `.rst`: a parser turns their
prose, code and captured output into a document in memory. The build runs no recipe
and writes no page as text.
"""

import zlib
from pathlib import Path

from ..book import SUFFIXES
from . import (api, api_example, bars, both_names, chinese_search, code_links,
               code_words, compound_files, downloads, drawing, editions, equations,
               excerpt, exercise, final_losses, gallery, graph_picture, kernel_view,
               ladder, machine_code, measured, nodes, op_table, page, picture,
               plain_tokens, plot, quote, rank_plots, readme, recipe, search_entries,
               site, step_bytes, switch, theme, translated)

_PARTS = (editions, translated, chinese_search, nodes, drawing, downloads, recipe,
          excerpt, exercise, final_losses, step_bytes, gallery, op_table, picture, plot,
          ladder, quote, api, compound_files, api_example, code_links, code_words,
          graph_picture, kernel_view, machine_code, measured, rank_plots, readme, site,
          equations, bars, both_names, theme, switch, plain_tokens, search_entries)


def setup(app):
    for part in _PARTS:
        part.setup(app)
    for suffix in SUFFIXES:
        app.add_source_suffix(suffix, "recipe")
    app.add_source_parser(recipe.RecipeParser)
    app.connect("env-get-outdated", page.outdated)
    app.connect("env-purge-doc", page.purge)
    app.connect("env-merge-info", page.merge)
    return {
        "version": "1",
        "env_version": _fingerprint(),
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }


def _fingerprint():
    """A number that changes with these tools, so that no old page stays."""
    folder = Path(__file__).resolve().parents[1]
    text = b"".join(path.read_bytes() for path in sorted(folder.rglob("*.py")))
    return zlib.crc32(text)
