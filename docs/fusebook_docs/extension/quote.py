"""The roles `:value:` and `:constant:`: numbers bound to where they come from.

What they take stands in quotes.py. A quote that is not true ends the build,
with the file and the line it stands in.
"""

from docutils import nodes
from sphinx.util.docutils import SphinxRole

from .. import quotes
from ..errors import BookError
from . import nodes as own
from . import page as pages

_WITHIN = f"{pages.KEY}.exercise"


class QuoteRole(SphinxRole):
    """`self.name` is the role's name."""

    def run(self):
        book = pages.book_of(self.env)
        path, line = self._place()
        try:
            home = home_of(self.env, line)
            quote = quotes.quoted(book, self.name, self.text, home)
        except BookError as error:
            pages.warn(f":{self.name}: {error}", path, line)
            return [nodes.problematic(self.rawtext, self.rawtext)], []
        note(self.env, quote)
        if quote.kind is None:
            return [nodes.Text(quote.text)], []
        return [own.varies("", quote.text, kind=quote.kind)], []

    def _place(self):
        """The file, and the line of the role itself within its paragraph."""
        path, line = self.get_source_info()
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
