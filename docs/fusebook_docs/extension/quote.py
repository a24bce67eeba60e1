"""The roles `:value:` and `:constant:`: numbers bound to where they come from.

What they take stands in quotes.py. A quote that is not true ends the build,
with the file and the line it stands in.
"""

from docutils import nodes
from sphinx.util.docutils import SphinxRole

from .. import quotes
from ..errors import BookError
from . import editions, translated
from . import nodes as own
from . import page as pages

_WITHIN = f"{pages.KEY}.exercise"
_QUOTED = f"{pages.KEY}.quoted"


class QuoteRole(SphinxRole):
    """`self.name` is the role's name."""

    def run(self):
        book = pages.book_of(self.env)
        path, line = self._place()
        try:
            home = self._home(path, line)
            quote = quotes.quoted(book, self.name, self.text, home)
        except BookError as error:
            pages.warn(f":{self.name}: {error}", path, line)
            return [nodes.problematic(self.rawtext, self.rawtext)], []
        note(self.env, quote)
        if quote.kind is None:
            return [nodes.Text(quote.text)], []
        text = quote.text
        if editions.is_translation(self.config) and text.endswith("x"):
            text = text.removesuffix("x")  # the translation has a word for it
        return [own.varies("", text, kind=quote.kind)], []

    def _home(self, path, line):
        """Where the quote is looked up. One in a translation has the home of the same
        quote in the original; it can say nothing that the original does not."""
        key = (self.name, quotes.target(self.text))
        known = self.env.temp_data.setdefault(_QUOTED, {}).setdefault(key, [])
        if not translated.place(self.env, self.get_source_info()[0]):
            home = home_of(self.env, line)
            known.append((str(path), line, home))
            return home
        if not known:
            raise BookError(f"the original does not quote {key[1]!r}")
        return min(known, key=lambda each: (each[0] != str(path),
                                            abs(each[1] - line)))[2]

    def _place(self):
        """The file, and the line of the role itself within its paragraph."""
        path, line = self.get_source_info()
        if found := translated.place(self.env, path):
            return found
        page = self.env.temp_data.get(pages.KEY)
        exercise, is_answer = self.env.temp_data.get(_WITHIN, (None, False))
        if is_answer:  # its lines are not those of the page
            path, line = page.book.answer_path(page.name, exercise), 1
        try:
            with open(path, encoding="utf-8") as file:
                lines = file.read().split("\n")
        except OSError:
            return path, line
        words = self.rawtext.split()[0]
        for number in range(line, len(lines) + 1):
            if words in lines[number - 1]:
                return path, number
        return path, line


def home_of(env, line):
    """Where a line of the page that is being read stands."""
    page = env.temp_data.get(pages.KEY)
    if page is None:
        return quotes.Home()
    exercise, is_answer = env.temp_data.get(_WITHIN, (None, False))
    step = None
    for part in page.recipe.parts:
        if part.line <= line:
            step = part.title
    return quotes.Home(page.name, None if exercise else step, exercise,
                       is_answer)


def within(env, exercise, is_answer=False):
    """Says that what is read next belongs to an exercise, or (None) to none."""
    env.temp_data[_WITHIN] = (exercise, is_answer)


def note(env, quote):
    for path in quote.files:
        env.note_dependency(str(path))


def filled(env, text, line):
    """An alt text with what its quotes show."""
    book, home = pages.book_of(env), home_of(env, line)
    for match in quotes.ROLE.finditer(text):
        note(env, quotes.quoted(book, match[1], match[2], home))
    return quotes.filled(book, text, home)


def setup(app):
    for name in quotes.ROLES:
        app.add_role(name, QuoteRole())
