"""Catalogues: their files, and every mistake that the check has to find in one."""

import unittest

from support import ROOT, BookCase

from fusebook_docs import words
from fusebook_docs.book import Book
from fusebook_docs.errors import BookError
from fusebook_docs.translation import (catalogues, checks, entries, meaning, numerals,
                                       po, spoken, terms, typography)

GOOD = """\
msgid ""
msgstr ""
"Language: zh_CN\\n"

#: recipes/toy_optimizer.cpp
msgid "The :term:`kernel` ran :value:`five <launches: #>` times, see ``step``."
msgstr ":term:`内核 <kernel>`运行了 :value:`5 <launches: #>` 次，见 ``step``。"

#: docs/index.rst
msgid "`The original <https://example.org/>`_ by :doc:`credits`."
msgstr "`原文 <https://example.org/>`_见:doc:`credits`。"
"""
TABLE = """\
[[term]]
en = "kernel"
zh = "内核"
not = ["核函数"]
"""


class CatalogueCase(BookCase):
    """A toy book with a catalogue of one page."""

    def setUp(self):
        super().setUp()
        self.path = catalogues.path(self.book, "index")
        self.path.parent.mkdir(parents=True)
        self.path.write_text(GOOD, encoding="utf-8")
        (self.root / "docs" / "terms.toml").write_text(TABLE, encoding="utf-8")

    def replace(self, old, new):
        text = GOOD if self.path.read_text(encoding="utf-8") == GOOD else (
            self.path.read_text(encoding="utf-8"))
        self.assertIn(old, text)
        self.path.write_text(text.replace(old, new), encoding="utf-8")

    def found(self):
        code, out = self.command("translations")
        self.assertEqual(code, 1, out)
        return out


class Mistakes(CatalogueCase):
    """Each is planted alone, and named with file and line."""

    def planted(self, old, new, *told, line=6):
        self.replace(old, new)
        out = self.found()
        self.assertIn(f"LC_MESSAGES/index.po:{line}: ", out)
        for word in told:
            self.assertIn(word, out)
        for found in out.strip().split("\n"):  # and nothing else is wrong
            self.assertIn(f"LC_MESSAGES/index.po:{line}: ", found)

    def test_none(self):
        code, out = self.command("translations")
        self.assertEqual((code, out), (0, "2 messages in 1 catalogues, all "
                                          "translated\n"))

    def test_untranslated(self):
        self.planted('msgstr "`原文 <https://example.org/>`_见:doc:`credits`。"',
                     'msgstr ""', "not translated", "by :doc:", line=10)

    def test_fuzzy(self):
        self.planted("#: docs/index.rst\n",
                     '#: docs/index.rst\n#, fuzzy\n#| msgid "An older text"\n',
                     "changed since it was translated", "An older text", line=12)

    def test_term_called_something_else(self):
        self.planted("内核 <kernel>", "核函数 <kernel>", "says '核函数'", "'内核'")

    def test_term_left_out(self):
        self.planted(":term:`内核 <kernel>`", ":term:`它 <kernel>`",
                     "has no '内核' for 'kernel'")

    def test_bound_number_of_something_else(self):
        self.planted("5 <launches: #>", "5 <calls: #>", "the number")

    def test_bound_number_made_plain(self):
        self.planted(":value:`5 <launches: #>`", "5",
                     "lacks the number ':value:`launches: #`'")

    def test_number_that_the_original_does_not_say(self):
        self.planted("运行了 :value:`5 <launches: #>` 次",
                     "运行了 :value:`5 <launches: #>` 次，共三步",
                     "says '三', which the original does not say")

    def test_code(self):
        self.planted("``step``。", "``steps``。", "the code 'step")

    def test_link(self):
        self.planted("`原文 <https://example.org/>`", "`原文 <https://example.com/>`",
                     "the link 'https://example", line=10)

    def test_reference(self):
        self.planted("见:doc:`credits`", "见:doc:`glossary`", "the reference ':doc:",
                     line=10)

    def test_place_for_a_value(self):
        self.replace("`The original", "{count} `The original")
        self.assertIn("lacks the place '{count}'", self.found())

    def test_message_twice(self):
        self.path.write_text(GOOD + GOOD.split("\n\n", 1)[1], encoding="utf-8")
        self.assertIn("stands here twice", self.found())

    def test_typography(self):
        for old, new, told in (
                ("运行了 :value:", "运行了:value:", "needs a blank between"),
                ("次，见", "次,见", "half-width punctuation"),
                ("次，见", "次， 见", "blank beside full-width"),
                ("运行了 ", "运 行了 ", "blank between Chinese characters"),
                ("次，见", '次，\\"见', "straight quotes"),
                ("次，见", "次，ＡＢ见", "full-width letters"),
                ("次，见", "次（见)", "half-width punctuation")):
            with self.subTest(told):
                self.path.write_text(GOOD, encoding="utf-8")
                self.replace(old, new)
                self.assertIn(told, self.found())

    def test_own_words_that_no_catalogue_has(self):
        folder = self.root / "docs" / "fusebook_docs"
        folder.mkdir()
        (folder / "x.py").write_text('say("Something new")\n')
        catalogues.path(self.book, "fusebook").write_text(
            'msgid "x"\nmsgstr "x"\n', encoding="utf-8")
        self.assertIn("docs/fusebook_docs/x.py: not in", self.found())

    def test_not_a_catalogue(self):
        self.planted('msgstr "`原文', 'msgstr `原文', "not a line of a catalogue",
                     line=11)


class Terms(CatalogueCase):
    def test_glossary_has_no_term_that_the_table_lacks(self):
        (self.root / "docs" / "glossary.rst").write_text(
            "Words\n=====\n\n.. glossary::\n   :sorted:\n\n   kernel\n      A.\n\n"
            "   guard\n      B.\n")
        catalogues.path(self.book, "glossary").write_text(
            'msgid "kernel"\nmsgstr "内核"\n', encoding="utf-8")
        self.assertIn("docs/glossary.rst:10: 'guard' is in the glossary", self.found())

    def test_twice_and_unknown_keys(self):
        path = self.root / "docs" / "terms.toml"
        path.write_text(TABLE + TABLE, encoding="utf-8")
        self.assertIn("'kernel' is here twice", self.found())
        path.write_text(TABLE + "colour = 1\n", encoding="utf-8")
        self.assertIn("docs/terms.toml:2: a term needs", self.found())

    def test_code_and_names_of_works_are_no_terms(self):
        table = terms.read(self.book)
        for text in ("``kernel``", "`A kernel <https://x.org>`_", ":api:`kernel`",
                     "{kernel}", "kernel-like"):
            self.assertEqual(list(terms.wrong(table, text, "它")), [], text)
        self.assertEqual(len(list(terms.wrong(table, "Kernels", "它"))), 1)


class Numerals(unittest.TestCase):
    def test_the_same_in_both(self):
        for original, translation in (
                ("Both take a twelfth.", "两者都取十二分之一。"),
                ("the fifth of twenty-four", "二十四个中的第五个"),
                ("ten thousand launches", "一万次启动"),
                ("In hexadecimal, at once.", "用十六进制，一次写出。"),
                ("A value is ``3``.", "值是 ``3``。"),
                ("Python 3.11", "Python 3.11")):
            with self.subTest(translation):
                self.assertEqual([*numerals.wrong(original, translation)], [])

    def test_another_number(self):
        for original, translation, what in (
                ("The two agree.", "三者一致。", "三"),
                ("A launch costs something.", "两次启动都有开销。", "两"),
                ("a third of the rate", "学习率的四分之一", "四"),
                ("Python 3.11", "Python 3.12", "3.12"),
                ("twenty of them", "其中二十一个", "二十一")):
            with self.subTest(translation):
                self.assertEqual(
                    [*numerals.wrong(original, translation)],
                    [f"says '{what}', which the original does not say"])


class Meaning(unittest.TestCase):
    def test_the_same_in_both(self):
        for original, translation in (
                (":term:`Across <b>` or :term:`a`.", ":term:`横向 <b>`或:term:`甲 <a>`。"),
                ("No GPU is needed.", "不需要 GPU。"),
                ("It is nothing but ``not``.", "它就是 ``not``。"),
                ("See :doc:`not here`.", "见:doc:`not here`。")):
            with self.subTest(translation):
                self.assertEqual([*meaning.wrong(original, translation)], [])

    def test_terms_that_changed_places(self):
        found = [*meaning.wrong("Across (:term:`a`), down (:term:`b`).",
                                "横向（:term:`乙 <b>`），纵向（:term:`甲 <a>`）。")]
        self.assertEqual(len(found), 1)
        self.assertIn("has its terms in another order (b, a)", found[0])

    def test_comparison_that_was_turned_round(self):
        for original, good, wrong in (
                ("It may be older.", "它可以更旧。", "它可以更新。"),
                ("A faster loop", "更快的循环", "更慢的循环"),
                ("before the launch", "在启动之前", "在启动之后")):
            self.assertEqual(list(meaning.wrong(original, good)), [])
            self.assertIn("says the opposite", "".join(meaning.wrong(original, wrong)))

    def test_another_name(self):
        for original, good, wrong, name in (
                ("Measured on a CPU.", "在 CPU 上测得。", "在 GPU 上测得。", "GPU"),
                ("If you know PyTorch", "如果你熟悉 PyTorch", "如果你熟悉 JAX", "JAX"),
                ("AdamW decays weights.", "AdamW 使权重衰减。", "Adam 使权重衰减。", "Adam"),
                ("two forked threads", "fork 出来的线程", "spawn 出来的线程", "spawn")):
            self.assertEqual(list(meaning.wrong(original, good)), [])
            self.assertEqual(list(meaning.wrong(original, wrong)),
                             [f"says {name!r}, which the original does not say"])

    def test_negation_that_was_lost(self):
        self.assertEqual([*meaning.wrong("No GPU is needed.", "需要 GPU。")],
                         ["has no negation, but the original says 'No'"])


class Typography(unittest.TestCase):
    def test_markup_is_seen_through(self):
        for text in ("用 ``compile`` 编译", "*竖着*融合，**一次**启动",
                     "见:doc:`/glossary`，用 :api:`Adam` 走一步",
                     "共 :value:`7 <launches: #>` 次", "`原文 <https://x.org>`__。",
                     "`nightly` 与 `a`，`b`", "C++ 与 PTX", "（`test`）"):
            self.assertEqual(list(typography.wrong(text)), [], text)

    def test_english_is_left_alone(self):
        self.assertEqual(list(typography.wrong("PyTorch, and (C++)")), [])


class Files(unittest.TestCase):
    def test_written_as_it_was_read(self):
        messages = po.parse(GOOD, "x.po")
        text = po.text_of(messages, "zh_CN")
        self.assertEqual(po.parse(text, "y.po")[0].msgstr, messages[0].msgstr)
        self.assertEqual(po.text_of(po.parse(text, "y.po"), "zh_CN"), text)

    def test_nothing_that_changes_by_itself(self):
        text = po.text_of(po.parse(GOOD, "x.po"), "zh_CN")
        self.assertNotIn("Date", text)
        self.assertNotRegex(text, r"#: \S+:\d")
        self.assertEqual(max(len(part) for part in text.split("\n")), max(
            len(f'msgid "{each.msgid}"') for each in po.parse(GOOD, "x.po")))

    def test_escapes(self):
        for text in ('a "b"', "a\\b", "a\nb", "a\tb", 'a \\"b\\n'):
            found = po.parse(po.text_of([po.Message(text, text)], "zh_CN"), "x.po")
            self.assertEqual((found[0].msgid, found[0].msgstr), (text, text))

    def merged(self, *texts, kept=None, said=None):
        return po.merged([po.Message(text, "", ["a.rst"]) for text in texts],
                         kept or [], said or {})

    def test_update_keeps_what_is_translated(self):
        kept = [po.Message("One two three four", "一二三四", ["old.rst"]),
                po.Message("Gone for good", "没了")]
        same, = self.merged("One two three four", kept=kept)
        self.assertEqual((same.msgstr, same.places, same.fuzzy),
                         ("一二三四", ["a.rst"], False))
        changed, = self.merged("One two three five", kept=kept)
        self.assertEqual((changed.msgstr, changed.fuzzy, changed.before),
                         ("一二三四", True, "One two three four"))
        again, = self.merged("One two six five", kept=[changed])
        self.assertEqual((again.fuzzy, again.before), (True, "One two three four"))
        other, = self.merged("Something else", kept=kept)
        self.assertEqual((other.msgstr, other.fuzzy), ("", False))

    def test_update_knows_what_other_pages_say(self):
        new, code = self.merged("See also", "``step``, ``loss``",
                                said={"See also": "另请参阅"})
        self.assertEqual((new.msgstr, new.fuzzy), ("另请参阅", False))
        self.assertEqual(code.msgstr, code.msgid)

    def test_damaged(self):
        with self.assertRaisesRegex(BookError, "x.po:2: .*not a line"):
            po.parse('msgid "a"\nmsgstr "b\n', "x.po")


class Words(unittest.TestCase):
    def tearDown(self):
        words.speak({})

    def test_in_the_language_of_the_page(self):
        self.assertEqual(words.say("Exercise {number}", number=3), "Exercise 3")
        words.speak({"Exercise {number}": "练习 {number}", "{count} launches":
                     "{count} 次启动"})
        self.assertEqual(words.say("Exercise {number}", number=3), "练习 3")
        self.assertEqual(words.many("{count} launch", "{count} launches", 1),
                         "1 launch")
        self.assertEqual(words.many("{count} launch", "{count} launches", 2),
                         "2 次启动")

    def test_all_are_found_in_the_code(self):
        found = dict(spoken.strings(Book(ROOT)))
        for text in ("Exercise {number}", "{count} launches", "first steps",
                     "From {recipe}, “{title}”:"):
            self.assertIn(text, found)


class RealBook(unittest.TestCase):
    """The book's own catalogues."""

    def setUp(self):
        self.book = Book(ROOT)

    def test_nothing_is_wrong(self):
        self.assertEqual([str(each) for each in checks.problems(self.book)], [])

    def test_messages_point_into_the_recipes(self):
        for name in self.book.recipe_names():
            places = {place for each in catalogues.read(self.book, f"recipes/{name}")
                      for place in each.places}
            self.assertIn(f"recipes/{self.book.recipe_path(name).name}", places)
            self.assertTrue(all((ROOT / place).is_file() for place in places))

    def test_a_new_recipe_has_its_entries(self):
        """What is read without Sphinx is what Sphinx finds."""
        for name in self.book.recipe_names():
            known = {each.msgid for each
                     in catalogues.read(self.book, f"recipes/{name}")}
            found = [each.msgid for each in entries.messages(self.book, name)]
            self.assertGreater(len(found), 15)
            self.assertEqual([text for text in found if text not in known], [])

    def test_entries_of_a_new_recipe_ask_for_translation(self):
        name = self.book.recipe_names()[0]
        (path, text), = entries.files(self.book, name).items()
        self.assertEqual(path, catalogues.path(self.book, f"recipes/{name}"))
        known = {each.msgid: each.msgstr for each in po.parse(text, path)}
        self.assertEqual(set(known), {
            each.msgid for each in entries.messages(self.book, name)})


if __name__ == "__main__":
    unittest.main()
