"""The one exception of the book's tools."""


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
