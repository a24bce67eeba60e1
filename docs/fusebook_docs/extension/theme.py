"""What the theme says on the pages of another language.

Sphinx asks catalogues for it, and has none with all of these words; the search asks
for them in the browser. A few stand in the theme's own templates, where page.html
replaces them.
"""

import json

from ..words import later, say

# What templates and Sphinx ask for.
_ASKED = (later("Skip to content"), later("Back to top"), later("Made with "),
          later("Next"), later("Previous"), later("Home"), later("On this page"),
          later("Link to this heading"), later("Link to this term"),
          later("Link to this code"),
          later("Please activate JavaScript to enable the search functionality."))
# What the search says.
_SEARCH = (later("Searching"), later("Search Results"),
           later("Your search did not match any documents. Please make sure that all "
                 "words are spelled correctly and that you've selected enough "
                 "categories."))
_FOUND = "Search finished, found one page matching the search query."
_FOUND_MORE = later("Search finished, found ${resultCount} pages matching the search "
                    "query.")
# Names that stand in the theme's templates as they are, by what they stand in.
_PARTS = {
    'aria-label="{}"': (later("All pages"), later("On this page"),
                        later("Toggle Light / Dark / Auto color theme"),
                        later("Toggle site navigation sidebar"),
                        later("Toggle table of contents sidebar")),
    "<title>{}</title>": (later("Contents"), later("Menu"), later("Expand"),
                          later("Light mode"), later("Dark mode"),
                          later("Auto light/dark, in light mode"),
                          later("Auto light/dark, in dark mode")),
    'alt="{}"': (later("Logo"),)}
_FOLD = 'aria-label="Toggle navigation of '


def asked():
    """{text: translation} for Sphinx and its templates."""
    return {text: say(text) for text in _ASKED}


def search_texts():
    """The script that gives the search its words."""
    messages = {text: say(text) for text in _SEARCH}
    # A list for each number that the language tells apart: one is enough here.
    messages[_FOUND] = [say(_FOUND_MORE)]
    catalogue = {"locale": "zh_Hans_CN", "messages": messages, "plural_expr": "0"}
    return f"Documentation.addTranslations({json.dumps(catalogue, indent=1)});\n"


def named(tree):
    """The side bar, whose folds the theme names in English."""
    before, after = say("Toggle navigation of {page}", page="\0").split("\0")
    first, *others = tree.split(_FOLD)
    return first + "".join(
        f'aria-label="{before}{name}{after}"{rest}' for name, _, rest
        in (other.partition('"') for other in others))


def _about(app, pagename, templatename, context, doctree):
    context["fusebook_parts"] = [
        (place.format(name), place.format(say(name)))
        for place, names in _PARTS.items() for name in names]
    context["furo_navigation_tree"] = named(context.get("furo_navigation_tree", ""))


def setup(app):
    # After the theme, which makes the side bar.
    app.connect("html-page-context", _about, priority=800)
