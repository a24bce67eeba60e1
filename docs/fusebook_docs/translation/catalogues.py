"""Where the catalogues are, and what they have to hold.

`docs/locale/zh_CN/LC_MESSAGES/` has one for every page that is translated, with
the page's name, and `fusebook.po` for what the tools themselves write into
pages.
"""

from pathlib import Path

from . import po, spoken

LANGUAGE = "zh_CN"
TAG = "zh-CN"  # as HTML calls it
FOLDER = "zh"  # of the site
OWN = "fusebook"
# What stays English, and has no page in another edition.
ENGLISH = ("changelog", "credits", "ops", "reference/")


def folder(book):
    return book.root / "docs" / "locale" / LANGUAGE / "LC_MESSAGES"


def path(book, name):
    return folder(book) / f"{name}.po"


def is_translated(docname):
    """Whether a page has one in the other language."""
    return not docname.startswith(ENGLISH)


def names(book):
    """Every catalogue that there is."""
    here = folder(book)
    return sorted(str(file.relative_to(here).with_suffix("").as_posix())
                  for file in here.rglob("*.po"))


def read(book, name):
    file = path(book, name)
    return po.read(file, book.show(file))


def own_words(book):
    """(text, file) of what the tools themselves say."""
    return spoken.strings(book)


def wanted(book, templates):
    """{catalogue: its messages}, from the `.pot` files that Sphinx wrote."""
    found = {OWN: [po.Message(text, "", [place])
                   for text, place in own_words(book)]}
    for file in sorted(templates.rglob("*.pot")):
        name = file.relative_to(templates).with_suffix("").as_posix()
        if name != "sphinx" and is_translated(name):
            found[name] = [_placed(book, templates, message)
                           for message in po.read(file)]
    return found


def _placed(book, templates, message):
    """Places from the root of the book, each file once."""
    places = {}
    for place in message.places:
        source = Path(templates, place.rpartition(":")[0])
        places[book.show(source).as_posix()] = None
    return po.Message(message.msgid, "", list(places))


def update(book, templates):
    """{path: text} of every catalogue, with the translations that there are."""
    kept = {name: read(book, name) for name in names(book)}
    said = {each.msgid: each.msgstr for messages in kept.values()
            for each in messages if each.msgstr and not each.fuzzy}
    return {path(book, name): po.text_of(
        po.merged(messages, kept.get(name, []), said), LANGUAGE)
        for name, messages in wanted(book, templates).items()}
