"""The reference as a whole: names, which are public, and what is amiss."""

from dataclasses import dataclass

from ..errors import BookError
from . import names


@dataclass
class Reference:
    names: list  # every one that headers declare
    shown: dict  # names that pages show -> where
    engine: names.EngineRoom

    @classmethod
    def read(cls, book, folder):
        path = book.root / "docs" / "reference" / "engine_room.txt"
        return cls(names.read(folder), names.shown(book),
                   names.EngineRoom(path, book.show(path)))

    def of(self, name):
        """The declarations of a name that pages may show."""
        return [each for each in self.names if each.name == name]

    def is_public(self, name):
        """Whether readers meet it: shown by itself or with its class."""
        if name.name in self.shown:
            return True
        owner = next((n for n in self._owners(name.name) if n in self.shown),
                     None)
        if owner is None or name.special or (
                name.protected and not self.shown[owner].protected):
            return False
        return not self.engine.holds(name)

    def public(self):
        return [name for name in self.names if self.is_public(name)]

    @staticmethod
    def _owners(name):
        while "::" in name:
            name = name.rsplit("::", 1)[0]
            yield name

    def problems(self, book):
        """What keeps the reference from being whole, with its places."""
        declared = {name.name for name in self.names}
        for name, at in self.shown.items():
            if name not in declared:
                yield BookError(f"no header declares {name}", at.page, at.line)
        yield from self._undocumented()
        yield from self._unassigned(book)
        for pattern, line in self.engine.unused():
            yield BookError(f"{pattern} keeps nothing away from pages that another "
                            "line does not: take it out", self.engine.show, line)

    def _undocumented(self):
        """Overloads share a comment: one of them must have it."""
        public = self.public()
        explained = {name.name for name in public if name.documented}
        for name in public:
            if name.name not in explained:
                explained.add(name.name)
                yield BookError(f"{name.name} is public and has no comment",
                                name.file, name.line)
            for value in name.element.findall("enumvalue"):
                if not names.is_documented(value):
                    yield BookError(
                        f"{name.name}::{value.findtext('name')} is public and "
                        "has no comment", name.file, name.line)

    def _unassigned(self, book):
        reachable = names.headers(book)
        for name in self.names:
            if name.is_member or name.file not in reachable:
                continue
            if not (name.name in self.shown or self.engine.holds(name)):
                yield BookError(
                    f"{name.name} comes with fusebook.h: explain it in "
                    f"docs/reference/, or list it in {self.engine.show}",
                    name.file, name.line)
