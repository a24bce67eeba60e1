"""How Sphinx builds the book.

    python -m sphinx -W --keep-going -b html docs OUT

The build runs no recipe: pages are made from the recipes and from the
captured output in `samples/`.
"""

import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from fusebook_docs.translation import catalogues  # noqa: E402

project = "Fusebook"
author = "the Fusebook authors"
copyright = author
# `-t zh` builds the Chinese edition: fusebook_docs/translation/site.py.
language = "zh_CN" if tags.has("zh") else "en"  # noqa: F821
_cmake = Path(__file__).resolve().parents[1] / "CMakeLists.txt"
release = re.search(r"project\(fusebook VERSION ([\d.]+)",
                    _cmake.read_text(encoding="utf-8"))[1]

# Where the repository and the site are, for links. Without them, as in a build
# on one's own machine, there are no such links.
_hub = "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}"
fusebook_repository = os.environ.get("FUSEBOOK_REPOSITORY") or (
    _hub.format(**os.environ) if "GITHUB_REPOSITORY" in os.environ else "")
html_baseurl = os.environ.get("FUSEBOOK_SITE_URL", "")
if html_baseurl and language != "en":
    html_baseurl = f"{html_baseurl.rstrip('/')}/{catalogues.FOLDER}/"

extensions = ["sphinx_design", "sphinx_copybutton", "fusebook_docs.extension"]
exclude_patterns = ["_build", "_templates", "about", "conf.py", "background/result.rst",
                    "examples", "exercises", "fusebook_docs", "kernels", "locale",
                    "measurements", "samples"]
gettext_compact = False  # a catalogue for each page
if language != "en":
    exclude_patterns += [f"{name}**" if name.endswith("/") else f"{name}.rst"
                         for name in catalogues.ENGLISH]
    suppress_warnings = ["toc.excluded"]  # their links are in the side bar
    html_search_scorer = str(Path(__file__).resolve().parent / "_static"
                             / "chinese_scorer.js")
nitpicky = True
# Of C++: the standard library, template parameters, and what is inside a class.
nitpick_ignore_regex = [("cpp:identifier", ".*")]

pygments_dark_style = "github-dark"

templates_path = ["_templates"]
html_theme = "furo"
html_title = "Fusebook"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["fusebook.css"]
html_js_files = ["fusebook.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
html_last_updated_fmt = None
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#9a3412",
        "color-brand-content": "#9a3412",
        "color-brand-visited": "#7c2d5e",
        "color-fuse": "#c2410c",
        "color-code-panel": "#f5f5f4",
        "color-scroll-cue": "#0003",
        "color-panel": "#fbf6ef",
        "color-panel-border": "#e7d8c5",
        "color-quiet": "#5f5a55",
    },
    "dark_css_variables": {
        "color-brand-primary": "#fdba74",
        "color-brand-content": "#fdba74",
        "color-brand-visited": "#e9b3d4",
        "color-fuse": "#fb923c",
        "color-code-panel": "#1a1c20",
        "color-scroll-cue": "#fff4",
        "color-panel": "#1d1916",
        "color-panel-border": "#463829",
        "color-quiet": "#b5aca3",
    },
}

copybutton_selector = "div.highlight pre:not(.kernel-lines)"
copybutton_exclude = ".linenos, .gp, .go"
