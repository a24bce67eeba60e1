"""How the text of a translation is read.

Chinese has no blanks around words, so markup may begin and end anywhere in it.
"""

import copy
import re

from sphinx.parsers import RSTParser

# Of the page that is read: translations and the places of their messages; and the
# place of the one that is read now.
PLACES, _NOW = "fusebook_places", "fusebook_translated"
_SOURCE = re.compile(r"(.*):(\d+|None):<translated>", re.DOTALL)


def place(env, source):
    """(file, line) of the message that a translation stands for, or None where a text
    is none."""
    match = _SOURCE.fullmatch(str(source or ""))
    if match is None:
        return None
    line = int(match[2]) if match[2] != "None" else 1
    return env.temp_data.get(_NOW) or (match[1], line)


class TranslatedParser(RSTParser):
    def parse(self, inputstring, document):
        env = document.settings.env
        if place(env, document["source"]):
            env.temp_data[_NOW] = env.temp_data.get(PLACES, {}).get(inputstring)
            document.settings = copy.copy(document.settings)
            document.settings.character_level_inline_markup = True
        super().parse(inputstring, document)


def setup(app):
    app.add_source_parser(TranslatedParser, override=True)
