"""The API reference of a toy book: what its page shows, what is an error."""

import os
import unittest
from unittest import mock

from site_case import BuiltOnce, SiteCase

REFERENCE = "reference/index"


class Reference(BuiltOnce):
    """What the page of a toy reference shows."""

    def described(self, name):
        return self.page(REFERENCE).find(id=f"api-{name}").parent

    def test_every_name_has_a_place_that_people_can_write(self):
        ids = [at["id"] for at in self.page(REFERENCE).select("dt[id^=api-]")]
        self.assertEqual(ids, [
            "api-Adam", "api-Adam-Adam", "api-Adam-step", "api-Adam-paint",
            "api-compile", "api-Paint", "api-Paint-red", "api-Paint-blue"])

    def test_signatures_are_what_people_write(self):
        text = " ".join(self.page(REFERENCE).get_text().split())
        self.assertIn("void step()", text)
        self.assertIn("int compile(F function, Paint paint = Paint::red)", text)
        self.assertIn("int compile(int number)", text)
        for word in ("source_location", "fuse::", "inline", "Public Functions",
                     "inside", "delete"):
            self.assertNotIn(word, text)

    def test_constraints_are_kept(self):
        text = " ".join(self.described("Adam-Adam").get_text().split())
        self.assertIn("Takes part only where sizeof(Options) > 1 holds.", text)

    def test_code_in_comments_is_code(self):
        block = self.described("Adam").select_one("div.highlight-cpp")
        self.assertNotEqual(block.parent.name, "p")
        self.assertIn("Adam opt(model.parameters());", block.get_text())

    def test_types_lead_to_their_own_place(self):
        links = self.page(REFERENCE).select("#api-Adam-paint a.reference")
        self.assertEqual([link.get_text() for link in links], ["Paint"])

    def test_examples_and_recipes_that_use_a_name(self):
        users = self.described("Adam").select("p.api-users a")
        self.assertEqual([(user.get_text(), user["href"]) for user in users],
                         [("stepping", "#example-stepping"),
                          ("A toy optimizer", "../recipes/toy_optimizer.html")])
        self.assertIn("Adam opt(", self.page(REFERENCE).find(
            id="example-stepping").get_text())
        self.assertEqual(self.described("Paint").select("p.api-users"), [])

    def test_names_in_prose_and_in_code_lead_here(self):
        prose = self.page(REFERENCE).select("p a code.api-name")
        self.assertEqual([name.parent["href"] for name in prose],
                         ["#api-compile", "#api-Adam-step"])
        code = self.page().select("div.recipe-code a.api-link")
        self.assertEqual({(a.get_text(), a["href"]) for a in code}, {
            ("Adam", "../reference/index.html#api-Adam"),
            ("compile", "../reference/index.html#api-compile"),
            ("step", "../reference/index.html#api-Adam-step")})

    def test_an_example_and_what_it_printed(self):
        code = self.page(REFERENCE).select("div.recipe-code")[-1]
        self.assertIn("opt.step();", code.get_text())
        panel = code.find_next_sibling()
        self.assertEqual(panel.pre.get_text(), "done")


class Errors(SiteCase):
    """Each of these ends the build, and names file and line."""

    @property
    def header(self):
        return self.root / "common" / "fusebook.h"

    @property
    def reference(self):
        return self.root / "docs" / "reference" / "index.rst"

    def line_in(self, path, text):
        lines = path.read_text().split("\n")
        return next(n for n, line in enumerate(lines, 1) if text in line)

    def test_name_without_a_comment(self):
        self.edit(self.header, "  /// How it is painted.\n", "")
        line = self.line_in(self.header, "Paint paint() const")
        self.broken(f"common/fusebook.h:{line}: ",
                    "Adam::paint is public and has no comment")

    def test_value_without_a_comment(self):
        self.edit(self.header, "  ///< like fire", "")
        self.broken("Paint::red is public and has no comment")

    def test_name_that_no_page_shows(self):
        self.edit(self.header, "}  // namespace",
                  "/// Lost.\nint lost();\n\n}  // namespace")
        line = self.line_in(self.header, "int lost()")
        self.broken(f"common/fusebook.h:{line}: ", "lost comes with fusebook.h",
                    "engine_room.txt")

    def test_page_of_a_name_that_is_gone(self):
        self.edit(self.reference, ".. api:: Paint", ".. api:: Pain")
        line = self.line_in(self.reference, ":: Pain")
        self.broken(f"docs/reference/index.rst:{line}: ",
                    "no header declares Pain")

    def test_engine_room_without_such_a_thing(self):
        path = self.reference.with_name("engine_room.txt")
        self.edit(path, "Adam::inside", "Adam::outside")
        self.broken(f"engine_room.txt:{self.line_in(path, 'outside')}: ",
                    "Adam::outside keeps nothing away", "Adam::inside is public")

    def test_engine_room_with_the_same_thing_twice(self):
        path = self.reference.with_name("engine_room.txt")
        path.write_text(path.read_text() + "Adam::insid*\n")
        self.broken(f"engine_room.txt:{self.line_in(path, 'insid*')}: ",
                    "Adam::insid* keeps nothing away from pages that another line")

    def test_name_in_prose_that_is_not_there(self):
        self.edit(self.reference, ":api:`compile`", ":api:`complie`")
        self.broken("docs/reference/index.rst:4: ", "explains complie")

    def test_comment_that_doxygen_does_not_understand(self):
        self.edit(self.header, "/// Compiles a function.",
                  "/// Compiles a function.\n/// \\param functoin which")
        self.broken("doxygen: common/fusebook.h:", "functoin")

    def test_example_that_was_edited(self):
        path = self.root / "docs" / "examples" / "toys.cpp"
        self.edit(path, "opt.step();", "opt.step(); opt.step();")
        self.broken("docs/reference/index.rst:", "has changed since its output")

    def test_no_doxygen(self):
        with mock.patch.dict(os.environ, PATH="/nowhere"):
            self.broken("doxygen is not installed: apt-get install doxygen")


if __name__ == "__main__":
    unittest.main()
