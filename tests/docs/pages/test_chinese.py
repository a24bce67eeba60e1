"""The Chinese edition in the browser: search, and the way to the other language."""

import os
import unittest
from pathlib import Path
from urllib.parse import quote

from pages import test_pages

from fusebook_docs.book import Book
from support import ROOT

RECIPES = "recipes/"
FIRST = f"{RECIPES}compiling_optimizer.html"
SECOND = f"{RECIPES}compiling_optimizer_lr_scheduler.html"
# What a reader types, and a page that must be among the first five found.
QUERIES = (
    ("编译优化器", FIRST), ("学习率", SECOND), ("内核", "glossary.html"),
    ("启动", "glossary.html"), ("水平融合", "glossary.html"),
    ("垂直融合", FIRST), ("守卫", "background/scalars_and_guards.html"),
    ("重新编译", SECOND), ("调度器", SECOND), ("图中断", "glossary.html"),
    ("梯度", "glossary.html"), ("即刻执行", FIRST),
    ("解释器", "background/how_it_works.html"), ("预热", FIRST),
    ("检查点", f"{RECIPES}training_with_a_schedule.html"),
    ("权重衰减", "background/maths.html"), ("偏差修正", FIRST),
    ("基准测试", "background/benchmarks.html"), ("带宽上限", "glossary.html"),
    ("内核缓存", "glossary.html"), ("逐元素", "glossary.html"),
    ("手写内核", f"{RECIPES}one_kernel_by_hand.html"),
    ("重放一步", f"{RECIPES}replaying_a_step.html"),
    ("麦克风", f"{RECIPES}training_with_a_schedule.html"),
    ("退出码", "background/devices_and_variables.html"),
    ("安装", "background/use_it.html"), ("步", "glossary.html"),
    # English words on Chinese pages.
    ("AdamW", "background/maths.html"), ("foreach_map", f"{RECIPES}foreach_map.html"),
    ("Lion", f"{RECIPES}write_your_own_optimizer.html"),
    ("blocked_autorange", "background/from_pytorch.html"), ("公式 Nesterov", "background/maths.html"))
# Of recipes, these are the first that must be found.
FIRST_RECIPES = {"编译优化器": FIRST, "学习率": SECOND}

_ENGLISH_NAMES = """() => {
  const names = [];
  for (const kind of ["title", "aria-label", "alt", "placeholder", "data-tooltip"])
    for (const part of document.querySelectorAll(`body [${kind}]:not([lang])`))
      names.push(part.getAttribute(kind));
  for (const part of document.querySelectorAll(
      "symbol title, .toc-title, .output-label, .recipe-label, .exercise-label"))
    names.push(part.textContent);
  // Names of programs, and units, are the same in both.
  const same = /LibTorch|NumPy|PyTorch|Fusebook|\\b(?:us|ms)\\b/g;
  return names.filter(name => !/[\u3400-\u9fff]/.test(name) &&
                              /[A-Za-z]/.test(name.replace(same, "")));
}"""


def setUpModule():
    test_pages.setUpModule()


class Chinese(test_pages.Site, unittest.TestCase):
    """The pages under zh/; what holds for every page, the other suite looks at."""

    VARY = "带点线的值会变化"

    @classmethod
    def setUpClass(cls):
        cls.open(Book(ROOT), Path(os.environ["FUSEBOOK_SITE"]))
        cls.names = [name for name in cls.names if name.startswith("zh/")]
        cls.base += "zh/"
        cls.names = [name.removeprefix("zh/") for name in cls.names]
        cls.recipes = test_pages.some(cls.recipes)

    def found(self, words):
        page = self.visit_again(f"search.html?q={quote(words)}")
        page.wait_for_function(
            "document.querySelector('.search-summary')?.textContent.length > 0")
        links = page.locator("#search-results ul.search li > a")
        links.first.wait_for()
        hrefs = links.evaluate_all("all => all.map(a => a.getAttribute('href'))")
        page.close()
        return [href.partition("#")[0].partition("?")[0] for href in hrefs]

    def test_search(self):
        self.assertGreaterEqual(len(QUERIES), 30)
        for words, wanted in QUERIES:
            with self.subTest(words):
                found = list(dict.fromkeys(self.found(words)))
                self.assertIn(wanted, found[:5])
                if words in FIRST_RECIPES:
                    self.assertEqual(FIRST_RECIPES[words], next(
                        page for page in found if page.startswith(RECIPES)))

    def test_the_search_says_what_it_does(self):
        for words, said in (("内核", r"找到 \d+ 个页面。"), ("qxqxqx", "没有找到.*")):
            page = self.visit(f"search.html?q={quote(words)}")
            page.wait_for_function(
                "document.querySelector('.search-summary')?.textContent.length > 0")
            self.assertRegex(page.locator(".search-summary").text_content(),
                             f"^{said}$")
            self.assertEqual(page.locator("#search-results h2").text_content(),
                             "搜索结果")
            page.context.close()

    def test_search_finds_adam(self):
        self.assertTrue(any(page.startswith(RECIPES) for page in self.found("Adam")))

    def test_the_switch_stays_at_the_place(self):
        for viewport, bar in (("desk", "sidebar"), ("phone", "header")):
            link = f"a.language-{bar}"
            page = self.visit(FIRST, viewport)
            page.locator("#the-ladder").evaluate(
                "e => e.scrollIntoView({behavior: 'instant'})")
            page.locator(link).click()
            page.wait_for_url(f"{self.base.removesuffix('zh/')}{FIRST}#*")
            self.assertEqual(page.evaluate("document.documentElement.lang"), "en")
            self.place(page)
            page.locator(link).click()
            page.wait_for_url(f"{self.base}{FIRST}#*")
            self.assertEqual(page.evaluate("document.documentElement.lang"), "zh-CN")
            self.place(page)
            page.context.close()

    def place(self, page):
        self.assertTrue(page.url.endswith("#the-ladder"), page.url)
        page.wait_for_function("Math.abs(document.getElementById('the-ladder')"
                               ".getBoundingClientRect().top) < 250")

    def test_chinese_has_a_font(self):
        """One that has the characters; a box has the width of any other box."""
        page = self.visit("index.html")
        wide = page.evaluate("""() => {
          const draw = text => {
            const canvas = document.createElement("canvas");
            const pen = canvas.getContext("2d");
            pen.font = getComputedStyle(document.body).font;
            pen.fillText(text, 0, 20);
            return canvas.toDataURL();
          };
          return new Set([...'融合优化器'].map(draw)).size;
        }""")
        self.assertEqual(wide, 5)

    def test_every_word_of_ours_is_chinese(self):
        """No label is left in English; code, names and numbers are."""
        page = self.visit(FIRST)
        for place in ("summary", ".output-label", ".exercise-label", "th", "h1",
                      "h2", ".recipe-label"):
            for text in page.locator(f"article {place}").all_text_contents():
                self.assertRegex(text, r"[\u3400-\u9fff]|^[^a-z]*$|^PTX|\.cpp", place)

    def test_every_name_of_a_part_is_chinese(self):
        """Also what only a pointer, or somebody's ears, come upon."""
        for name in self.names:
            with self.visits(name, "desk") as page:
                self.assertEqual(page.evaluate(_ENGLISH_NAMES), [])

    def test_a_term_has_its_other_name(self):
        page = self.visit("glossary.html")
        names = dict(page.locator("dt").evaluate_all(
            "all => all.map(term => [term.firstChild.textContent.trim(),"
            " term.querySelector('.other-language')?.textContent])"))
        self.assertEqual(names["守卫"], "guard")
        self.assertIsNone(names["Adam"])


# It looks at every page of the site anyway.
Chinese.test_everybody_can_read_it = None

if __name__ == "__main__":
    unittest.main()
