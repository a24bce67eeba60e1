"""The one exception of the book's tools, and where in a text it is."""


class BookError(Exception):
    """A message for a person: what was wrong, where, and what to do."""

    def __init__(self, message, path=None, line=None):
        self.message = message
        self.path = path
        self.line = line
        place = "" if path is None else str(path)
        if path is not None and line is not None:
            place += f":{line}"
        super().__init__(f"{place}: {message}" if place else message)


def errors_in(path, source, found):
    """The errors of (offset, message) in the text of a file."""
    for offset, message in found:
        yield BookError(message, path, source.count("\n", 0, offset) + 1)
