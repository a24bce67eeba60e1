"""What the tools themselves say on pages, in the language of the page.

    say("Exercise {number}", number=3)
    many("{count} launch", "{count} launches", 7)

The English text is the name of a message in the catalogue `fusebook.po`; values
are put into its translation. Whoever builds pages says `speak(...)` first;
without that it is English.
"""

_said = {}


def speak(translations):
    """{English: translation} from now on."""
    _said.clear()
    _said.update(translations)


def plain(text):
    """The translation, its places for values left as they are."""
    return _said.get(text) or text


def say(text, /, **values):
    found = plain(text)
    return found.format(**values) if values else found


def many(one, more, count, /, **values):
    """Two messages: for one, and for any other number."""
    return say(one if count == 1 else more, count=count, **values)


def is_said(text):
    """Whether a text is a translation of ours already."""
    return text in _said.values()


def later(text):
    """Names a message that is said elsewhere."""
    return text
