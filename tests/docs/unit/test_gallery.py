"""The order of the recipes, and what their pages say around the programs."""

import dataclasses
import shutil

from support import FIXTURES, ROOT, BookCase

from fusebook_docs import gallery
from fusebook_docs.book import Book
from fusebook_docs.errors import BookError


class Gallery(BookCase):
    def setUp(self):
        super().setUp()
        shutil.copy(FIXTURES / "gallery.toml", self.root / "docs")
        shutil.copytree(FIXTURES / "about", self.root / "docs" / "about")

    def edit(self, old, new):
        path = gallery.path(self.book)
        path.write_text(path.read_text().replace(old, new))

    def refused(self, old, new, message):
        self.edit(old, new)
        with self.assertRaisesRegex(BookError, message):
            gallery.entries(self.book)

    def test_order(self):
        entries = gallery.entries(self.book)
        self.assertEqual([entry.name for entry in entries],
                         ["plain_recipe", "toy_optimizer"])
        self.assertEqual(entries[1].builds_on, ("plain_recipe",))

    def test_minutes_follow_from_the_page(self):
        self.assertEqual(gallery.minutes(self.book, "toy_optimizer"), 5)
        path = self.book.recipe_path("toy_optimizer")
        path.write_text(path.read_text().replace(
            "// A stack of layers.", "// " + "A stack of layers. " * 130))
        self.assertEqual(gallery.minutes(self.book, "toy_optimizer"), 10)

    def test_a_recipe_that_is_not_listed_comes_last(self):
        text = gallery.path(self.book).read_text()
        gallery.path(self.book).write_text("[[recipe]]" +
                                           text.split("[[recipe]]")[2]
                                           .replace("plain_", "toy_")
                                           .replace("toy_recipe",
                                                    "toy_optimizer")
                                           .replace("builds_on", "# "))
        entries = gallery.entries(self.book)
        self.assertEqual([entry.name for entry in entries],
                         ["toy_optimizer", "plain_recipe"])
        self.assertIsNone(entries[1].level)

    def test_what_makes_no_sense(self):
        self.refused("some C++", "hard", "level must be one of: first steps, ")

    def test_key(self):
        self.refused("builds_on = ", "build_on = ",
                     r"gallery.toml:6: toy_optimizer: unknown key: build_on")

    def test_twice(self):
        self.refused('name = "plain_recipe"', 'name = "toy_optimizer"',
                     "listed twice")

    def test_builds_on_what_comes_later(self):
        self.refused('"first steps"\n',
                     '"first steps"\nbuilds_on = ["toy_optimizer"]\n',
                     r"gallery.toml:4: plain_recipe builds on toy_optimizer, "
                     "which must come before")

    def test_easier_than_what_it_builds_on(self):
        self.edit('level = "first steps"', 'level = "inside a kernel"')
        with self.assertRaisesRegex(
                BookError, r"gallery.toml:\d+: toy_optimizer is 'some C\+\+', but builds "
                           "on plain_recipe, which is 'inside a kernel'"):
            gallery.entries(self.book)

    def test_curves_of_a_step_without_a_table(self):
        book = Book(ROOT)
        entry, = (each for each in gallery.entries(book)
                  if each.name == "write_your_own_optimizer")
        for step, why in (("In one launch", "it printed no table"), ("Nowhere", "no table")):
            found = " | ".join(map(str, gallery.not_drawn(
                book, dataclasses.replace(entry, curves=step))))
            self.assertRegex(found, rf"docs/gallery.toml:\d+: .* shows the curves of "
                             rf"'{step}', but .*{why}")

    def test_a_kernel_without_the_operation(self):
        book = Book(ROOT)
        entry, = (each for each in gallery.entries(book)
                  if each.name == "write_your_own_optimizer")
        found, = map(str, gallery.kernel_of_another(
            book, dataclasses.replace(entry, kernel_with="sqrt")))
        self.assertRegex(found, r"docs/gallery.toml:\d+: the kernel that is kept of "
                         "write_your_own_optimizer has no 'sqrt'")
        self.assertEqual(list(gallery.kernel_of_another(book, entry)), [])

    def test_ranks(self):
        self.assertIsNone(gallery.ranks(self.book, "toy_optimizer"))
        self.assertEqual(gallery.run_command(self.book, "toy_optimizer"),
                         "./fusebook run toy_optimizer")
        self.edit('name = "toy_optimizer"\n', 'name = "toy_optimizer"\nranks = 3\n')
        self.assertEqual(gallery.ranks(self.book, "toy_optimizer"), 3)
        self.assertEqual(gallery.run_command(self.book, "toy_optimizer"),
                         "./fusebook run toy_optimizer --ranks 3")
        self.refused("ranks = 3", "ranks = 0",
                     "toy_optimizer: ranks must be a number of processes")

    def test_a_recipe_that_needs_ranks_is_started_on_them(self):
        self.edit('name = "toy_optimizer"\n', 'name = "toy_optimizer"\nranks = 3\n')
        launch = self.root / "tests" / "launch.sh"
        launch.parent.mkdir(exist_ok=True)
        launch.write_text(f'echo "$1 $2" >"{self.root}/started"\nshift 2\n'
                          'exec "$@"\n')
        self.capture()
        self.assertEqual((self.root / "started").read_text(), "ranks 3\n")

    def test_damaged(self):
        self.refused("[[recipe]]", "[[recipe", "not a list of recipes")

    def test_about(self):
        about = gallery.about(self.book, "toy_optimizer")
        self.assertEqual(about.learn[0].text, "- How to play.")
        self.assertEqual(about.conclusion[0].number, 3)
        self.assertEqual(about.see_also[0].text, "See also")
        self.assertIsNone(gallery.about(self.book, "plain_recipe"))

    def test_what_a_recipe_lacks(self):
        def found(name):
            return " | ".join(map(str, gallery.problems(self.book, name)))

        self.assertEqual(found("toy_optimizer"), "")
        self.assertEqual(found("plain_recipe"),
                         "docs/about/plain_recipe.rst: missing; write what a "
                         "reader will learn, a Conclusion and See also")

    def test_a_recipe_that_is_not_listed(self):
        gallery.path(self.book).unlink()
        code, out = self.command("limits", "--recipe", "plain_recipe")
        self.assertEqual(code, 1)
        self.assertIn("docs/gallery.toml: plain_recipe is not listed; add its "
                      "[[recipe]]", out)
        self.assertIn("docs/about/plain_recipe.rst: missing", out)

    def test_every_recipe_of_the_book_is_listed_and_introduced(self):
        book = Book(ROOT)
        for entry in gallery.entries(book):
            with self.subTest(entry.name):
                self.assertIsNotNone(entry.level)
                self.assertIsNotNone(gallery.about(book, entry.name))
