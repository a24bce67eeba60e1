"""The toy book in Chinese: every message is "译" and its English."""

import filecmp
import json
import re
import tempfile
import unittest
from pathlib import Path

from bs4 import BeautifulSoup
from site_case import TOY, BuiltOnce
from support import ROOT, make_sources

from fusebook_docs import words
from fusebook_docs.book import Book
from fusebook_docs.extension import chinese_search, theme
from fusebook_docs.translation import catalogues, po, site, updating


def translate(root):
    """Catalogues for a toy book, all translated."""
    book = Book(root)
    known = {each.msgid: each.msgstr
             for each in catalogues.read(Book(ROOT), catalogues.OWN)}
    catalogues.folder(book).mkdir(parents=True)
    for _ in updating.update(book):
        pass
    (root / "docs" / "terms.toml").symlink_to(ROOT / "docs" / "terms.toml")
    for name in catalogues.names(book):
        messages = catalogues.read(book, name)
        for each in messages:
            each.msgstr = f"译 {each.msgid}"
        catalogues.path(book, name).write_text(po.text_of(messages, "zh_CN"))
    own = [po.Message(text, translation) for text, translation in known.items()]
    catalogues.path(book, catalogues.OWN).write_text(po.text_of(own, "zh_CN"))


class Chinese(BuiltOnce):
    options = None

    @classmethod
    def prepare(cls, root):
        translate(root)

    def setUp(self):
        super().setUp()
        self.kept = {path: path.read_bytes() for path
                     in catalogues.folder(self.book).rglob("*.po")}
        self.addCleanup(self.restore)

    def restore(self):
        for path, content in self.kept.items():
            path.write_bytes(content)

    def edit(self, name, old, new):
        super().edit(catalogues.path(self.book, name), old, new)

    def site(self, root=None, out="out"):
        """Builds both editions: exit code, and what they said."""
        root = root or self.root
        with tempfile.TemporaryFile("w+") as log:
            code = site.build(Book(root), root / out, root / f"{out}-trees", ["-q"],
                              log)
            log.seek(0)
            return code, log.read()

    def whole(self, name):
        html = (self.out / f"{name}.html").read_text(encoding="utf-8")
        return BeautifulSoup(html, "html.parser")

    def test_both_editions(self):
        code, text = self.site()
        self.assertEqual(code, 0, text)
        page, english = self.whole(f"zh/{TOY}"), self.whole(TOY)
        self.assertEqual(page.html["lang"], "zh-CN")
        self.assertEqual(english.html["lang"], "en")
        self.assertTrue(page.title.get_text().startswith("译 A toy optimizer"))
        self.assertEqual([link["href"] for link in page.select("a.language")],
                         ["../../recipes/toy_optimizer.html"] * 2)
        self.assertEqual([link["href"] for link in english.select("a.language")],
                         ["../zh/recipes/toy_optimizer.html"] * 2)
        for each in (page, english):
            self.assertEqual([link["hreflang"] for link in each.select(
                "link[rel=alternate][hreflang]")],
                ["zh-CN", "en"] if each is page else ["en", "zh-CN"])
        self.places(page, english)
        self.own_words(page)
        for name in (TOY, "index", "search"):
            self.names_of_parts(self.whole(f"zh/{name}"))
        self.numbers(page)
        self.english_pages(page)
        self.search()

    def places(self, page, english):
        """The switch stays at the place: both have the same names of places."""
        names = [[each["id"] for each in whole.article.select("section[id]")]
                 for whole in (page, english)]
        self.assertEqual(*names)
        self.assertGreater(len(names[0]), 3)

    def own_words(self, page):
        self.assertIn("练习 1", page.select_one(".exercise-label").get_text())
        self.assertEqual(page.select_one("details.answer summary").get_text(), "答案")
        self.assertIn("“译 Model setup”的输出，CPU", [
            panel["aria-label"] for panel in page.select(".recipe-output")])
        self.assertEqual([aside["aria-label"] for aside in page.select("aside")],
                         ["全部页面", "本页内容"])

    def names_of_parts(self, page):
        """What only a pointer, or somebody's ears, come upon is Chinese as well."""
        names = [each[kind] for kind in ("title", "aria-label", "alt", "placeholder")
                 for each in page.select(f"[{kind}]")]
        names += [each.get_text() for each in page.select(
            "symbol title, .toc-title, .output-label, noscript p")]
        self.assertGreater(len(names), 10)
        self.assertEqual([name for name in names
                          if not re.search("[\u3400-\u9fff]", name)], [])

    def numbers(self, page):
        text = page.article.get_text()
        self.assertIn("译 This one prints nothing", text)
        self.assertIn("five calls we had five launches", text)
        self.assertIn("a step took 747.2 us", text)

    def english_pages(self, page):
        """The reference is not there a second time; links lead to the first."""
        self.assertFalse((self.out / "zh" / "reference").exists())
        self.assertFalse((self.out / "zh" / "ops.html").exists())
        links = [link["href"] for link in page.select("a.api-link")]
        self.assertTrue(links)
        self.assertTrue(all(link.startswith("../../reference/") for link in links),
                        links)
        aside = [link["href"] for link in page.select(".sidebar-tree a[hreflang=en]")]
        self.assertIn("../../reference/index.html", aside)
        self.assertIn("../../ops.html", aside)
        for link in page.select("a[download]"):
            self.assertTrue((self.out / "zh" / "recipes" / link["href"]).is_file(),
                            link["href"])
        reference = self.whole("reference/index")
        self.assertEqual(reference.select_one("a.language")["href"],
                         "../zh/index.html")
        self.assertEqual(reference.select("link[hreflang]"), [])

    def search(self):
        text = (self.out / "zh" / "searchindex.js").read_text(encoding="utf-8")
        index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
        self.assertIn("译", index["titleterms"])
        self.assertIn("运行", index["terms"])
        self.assertIn("launch", index["terms"])
        self.assertIn("splitQuery", (
            self.out / "zh" / "_static" / "language_data.js").read_text())
        said = (self.out / "zh" / "_static" / "translations.js").read_text()
        said = json.loads(said[said.index("{"):said.rindex("}") + 1])["messages"]
        self.assertEqual(said["Search finished, found one page matching the search "
                              "query."], ["找到 ${resultCount} 个页面。"])

    def red(self, *told):
        code, text = self.site()
        self.assertNotEqual(code, 0, text)
        for word in told:
            self.assertIn(word, text)

    def test_message_without_a_translation(self):
        self.edit(TOY, 'msgstr "译 Model setup"', 'msgstr ""')
        self.red("recipes/toy_optimizer.cpp:", "not translated in docs/locale: "
                                               "'Model setup'")

    def test_message_that_has_changed(self):
        self.edit(TOY, '\nmsgid "Model setup"', '\n#, fuzzy\nmsgid "Model setup"')
        self.red("not translated in docs/locale: 'Model setup'")

    def test_bound_number(self):
        self.edit(TOY, "译 This one prints nothing, so nothing stands under its code. "
                       "After :constant:`five",
                  "译 This one prints nothing, so nothing stands under its code. "
                  "After :constant:`4")
        self.red("toy_optimizer.cpp:", "says '4', but it is 5")

    def test_quote_that_the_original_has_not(self):
        self.edit(TOY, "译 This one prints nothing", "译 :value:`ratio` 次")
        self.red("the original does not quote 'ratio'")

    def test_byte_for_byte(self):
        with tempfile.TemporaryDirectory(prefix="other-place-") as name:
            other = Path(name)
            make_sources(other)
            translate(other)
            for root in (self.root, other):
                code, text = self.site(root, "fresh")
                self.assertEqual(code, 0, text)
            first, second = self.root / "fresh", other / "fresh"
            names = sorted(
                path.relative_to(first).as_posix() for path
                in (first / "zh").rglob("*") if path.is_file())
            self.assertGreater(len(names), 20)
            _, differ, failed = filecmp.cmpfiles(first, second, names, shallow=False)
            self.assertEqual((differ, failed), ([], []))


class Folds(unittest.TestCase):
    TREE = ('<input aria-label="Toggle navigation of A &amp; B" id="1"/>'
            '<a title="C">C</a><input aria-label="Toggle navigation of D"/>')

    def test_their_names(self):
        self.assertEqual(theme.named(self.TREE), self.TREE)
        self.addCleanup(words.speak, {})
        words.speak({"Toggle navigation of {page}": "收起“{page}”"})
        self.assertEqual(theme.named(self.TREE), (
            '<input aria-label="收起“A &amp; B”" id="1"/>'
            '<a title="C">C</a><input aria-label="收起“D”"/>'))


class Split(unittest.TestCase):
    def test_pairs_of_characters_and_whole_words(self):
        for text, wanted in (
                ("优化器", ["优化", "化器", "优", "化", "器"]),
                ("用 Adam 走步", ["用", "Adam", "走步", "走", "步"]),
                ("foreach_map的GPU", ["foreach_map", "的", "GPU"]),
                ("学习，步", ["学习", "学", "习", "步"]), ("", [])):
            self.assertEqual(chinese_search.split(text), wanted)


if __name__ == "__main__":
    unittest.main()
