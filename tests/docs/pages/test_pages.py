"""Opens the built pages in headless Chromium, on a desk and on a phone.

The real site is the folder in FUSEBOOK_SITE. A toy book with two devices and
an awkward recipe is built and opened as well.
"""

import contextlib
import functools
import http.server
import itertools
import os
import shutil
import tempfile
import threading
import unittest
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from support import ROOT, build, make_sources

from fusebook_docs import literate, samples
from fusebook_docs.book import Book
from fusebook_docs.machine import kept

VIEWPORTS = {"desk": (1280, 800), "phone": (390, 844)}
SCHEMES = ("light", "dark")
# Each width and each scheme once; the other two pairs are looked at every night.
EVERY_NIGHT = os.environ.get("FUSEBOOK_LOOKS") == "all"
LOOKS = (tuple(itertools.product(VIEWPORTS, SCHEMES)) if EVERY_NIGHT
         else (("desk", "light"), ("phone", "dark")))
CONTRAST = "color-contrast"


def some(names):
    """Every fourth of them by day, all at night: for pages that are made alike."""
    return names if EVERY_NIGHT else names[::4]


def violations(page):
    """What axe finds by every rule that it has; by day the contrast of one is measured
    of the words that look alike."""
    page.evaluate(Axe().axe_script)
    if EVERY_NIGHT:
        return _axe(page, {})
    found = _axe(page, {"rules": {CONTRAST: {"enabled": False}}})
    page.evaluate(_HIDE_WORDS_ALIKE)
    return found + _axe(page, {"runOnly": [CONTRAST]})


def _axe(page, options):
    return page.evaluate(
        "options => axe.run(options).then(found => found.violations.map("
        "item => [item.id, item.nodes[0].html]))",
        {"resultTypes": ["violations"], **options})


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def serve(folder):
    """Serves a folder on a free port of this machine; returns the server."""
    handler = functools.partial(Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def setUpModule():
    global playwright, browser
    names = (os.environ.get("FUSEBOOK_CHROMIUM", ""), "chromium-headless-shell",
             "chromium", "chromium-browser")
    chromium = next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        raise RuntimeError("no chromium on PATH; install it with: "
                           "apt-get install chromium-headless-shell")
    playwright = sync_playwright().start()
    unittest.addModuleCleanup(playwright.stop)
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    browser = playwright.chromium.launch(executable_path=chromium,
                                         args=arguments)
    unittest.addModuleCleanup(browser.close)


class Site:
    """Tests for a built site; the subclasses say which."""

    VARY = "dotted values vary"

    @classmethod
    def open(cls, book, folder):
        server = serve(folder)
        cls.addClassCleanup(server.server_close)
        cls.addClassCleanup(server.shutdown)
        cls.book = book
        cls.base = f"http://127.0.0.1:{server.server_port}/"
        cls.names = sorted(
            str(path.relative_to(folder)) for path in folder.rglob("*.html")
            if "_static" not in path.parts)
        cls.recipes = book.recipe_names()
        cls._shared = {}

    def setUp(self):
        self.complaints = []

    def visit(self, name, viewport="desk", scheme="light"):
        """Opens a page in a browser of its own; remembers what it complains."""
        context = self._browser(viewport, scheme)
        self.addCleanup(context.close)
        return self._open(context, name)

    def visit_again(self, name, viewport="desk", scheme="light"):
        """The same in a browser that has seen other pages: its cache knows what
        they share. For those who leave no trace; `page.close()` afterwards."""
        look = viewport, scheme
        if look not in self._shared:
            self._shared[look] = self._browser(*look)
            self.addClassCleanup(self._shared[look].close)
        return self._open(self._shared[look], name)

    def _browser(self, viewport, scheme):
        width, height = VIEWPORTS[viewport]
        return browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme,
            permissions=["clipboard-read", "clipboard-write"])

    def _open(self, context, name):
        page = context.new_page()
        page.on("console", self._hear)
        page.on("pageerror", lambda e: self.complaints.append(str(e)))
        page.on("requestfailed", lambda r: self.complaints.append(r.url))
        page.goto(self.base + name, wait_until="load")
        return page

    def _hear(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    @contextlib.contextmanager
    def visits(self, name, viewport, scheme="light"):
        """A subtest with one page, every fold of it open."""
        with self.subTest(name, viewport=viewport, scheme=scheme):
            self.complaints.clear()
            page = self.visit_again(name, viewport, scheme)
            self.unfold(page)
            yield page
            page.close()

    def unfold(self, page):
        page.evaluate("document.querySelectorAll('details')"
                      ".forEach(fold => fold.open = true)")

    def recipe_pages(self):
        return [f"recipes/{name}.html" for name in self.recipes]

    def printing_steps(self, name):
        """The steps that print on the CPU, text before the first included."""
        sample = samples.load(self.book, "cpu", name)
        return sample, [step for step in sample.steps if step.text]

    def test_recipes(self):
        """All that leaves no trace, on a page that is opened once in each width."""
        desk = (self.values_that_vary_are_marked, self.code_can_be_copied,
                self.a_kernel_is_no_long_block, self.paper_shows_a_kernel_once,
                self.paper_shows_everything)
        phone = (self.provenance_stands_under_every_output,
                 self.a_kernel_is_no_long_block,
                 self.fold_is_the_program_and_so_is_the_download)
        unfolded = {"desk": (self.output_stands_under_its_code,),
                    "phone": (self.output_stands_under_its_code,
                              self.scrolling_text_is_reachable_by_keyboard)}
        for name, (viewport, checks) in itertools.product(
                self.recipes, (("desk", desk), ("phone", phone))):
            with self.subTest(recipe=name, viewport=viewport):
                page = self.visit_again(f"recipes/{name}.html", viewport)
                self.all_of(checks, page, name)
                self.unfold(page)
                self.all_of(unfolded[viewport], page, name)
                page.close()

    def all_of(self, checks, page, name):
        for check in checks:
            with self.subTest(check.__name__):
                check(page, name)

    def test_everybody_can_read_it(self):
        """By day axe sees a page in one look, by turns, and of the recipes some; a
        Chinese page, which has the elements of the English one, is only looked at on
        a phone, and without axe."""
        chinese = {name for name in self.names if name.startswith("zh/")}
        turns = dict(zip([name for name in self.names
                          if name not in chinese | self.alike()],
                         itertools.cycle(LOOKS), strict=False))
        for name, look in itertools.product(self.names, LOOKS):
            if name in chinese and look[0] != "phone" and not EVERY_NIGHT:
                continue
            with self.visits(name, *look) as page:
                self.assertEqual(self.complaints, [])
                self.assert_it_fits(page)
                if look[0] == "phone":
                    page.set_viewport_size({"width": 360, "height": 800})
                    self.assert_it_fits(page)
                    self.assert_options_stay_in_one_piece(page, name)
                if EVERY_NIGHT or turns.get(name) == look:
                    self.assertEqual(violations(page), [])

    def alike(self):
        """Pages whose elements others have, too."""
        return set()

    def assert_it_fits(self, page):
        """Nothing scrolls sideways, and nothing sticks out."""
        wide, room = page.evaluate("[document.scrollingElement.scrollWidth,"
                                   " document.scrollingElement.clientWidth]")
        self.assertLessEqual(wide, room)
        self.assertEqual(page.evaluate(_SPILLS), [])

    def assert_options_stay_in_one_piece(self, page, name):
        pieces = page.locator("code.option .pre").evaluate_all(
            "all => all.map(e => [e.getClientRects().length, e.textContent])")
        self.assertEqual([text for count, text in pieces if count > 1], [])
        if name.endswith("background/devices_and_variables.html"):
            self.assertGreater(len(pieces), 10)

    def scrolling_text_is_reachable_by_keyboard(self, page, _):
        page.wait_for_timeout(100)
        wide = page.locator("pre").evaluate_all(
            "all => all.filter(p => p.scrollWidth > p.clientWidth)"
            ".map(p => p.tabIndex)")
        self.assertGreater(len(wide), 0)
        self.assertEqual(set(wide), {0})

    def output_stands_under_its_code(self, page, name):
        sample, steps = self.printing_steps(name)
        blocks = page.evaluate(_OUTPUTS)
        self.assertEqual(len(blocks), len(steps))
        for block, step in zip(blocks, steps, strict=True):
            text = samples.filled(step.text, sample.values)
            self.assertEqual(block["text"].rstrip("\n"), text.rstrip("\n"))
            self.assertTrue(block["afterCode"], step.title)
            self.assertTrue(block["visible"], step.title)

    def provenance_stands_under_every_output(self, page, name):
        sample, steps = self.printing_steps(name)
        blocks = page.evaluate(_OUTPUTS)
        self.assertEqual(len(blocks), len(steps))
        for block in blocks:
            for fact in ("device", "compiler", "date"):
                self.assertIn(sample.provenance[fact], block["provenance"])

    def values_that_vary_are_marked(self, page, name):
        sample, steps = self.printing_steps(name)
        for block, step in zip(page.evaluate(_OUTPUTS), steps, strict=True):
            wanted = [sample.values[n].shown.strip(" ")
                      for n in samples.names_in(step.text)]
            self.assertEqual([v["text"] for v in block["varies"]], wanted)
            for mark in block["varies"]:
                self.assertEqual(mark["style"], "dotted")
                self.assertTrue(mark["title"])
            self.assertEqual(self.VARY in block["provenance"], bool(wanted))

    def fold_is_the_program_and_so_is_the_download(self, page, name):
        source = self.book.recipe_path(name)
        program = page.locator("details.whole-program pre")
        self.assertFalse(program.is_visible())
        page.locator("details.whole-program summary").click()
        self.assertTrue(program.is_visible())
        self.assertEqual(program.text_content(), source.read_text())
        with page.expect_download() as download:
            page.locator(f"a.download[href$='{source.suffix}']").last.click()
        self.assertEqual(download.value.suggested_filename, source.name)
        self.assertEqual(Path(download.value.path()).read_bytes(),
                         source.read_bytes())

    def code_can_be_copied(self, page, name):
        recipe = literate.read(self.book.recipe_path(name))
        part = recipe.steps[0]
        before = recipe.parts[:recipe.parts.index(part)]
        count = sum(bool(p.code) + bool(p.tail) for p in before)
        block = page.locator("div.recipe-code").nth(count)
        block.hover()
        block.locator("button.copybtn").click()
        page.locator("button.copybtn.success").first.wait_for()
        copied = page.evaluate("navigator.clipboard.readText()")
        self.assertEqual(copied.rstrip("\n"),
                         "\n".join(line.text for line in part.code))

    def paper_shows_everything(self, page, _):
        with self.on_paper(page):
            self.assertEqual(page.evaluate(_HIDDEN_ON_PAPER), [])
            for part in (".skip-to-content", ".back-to-top"):
                self.assertFalse(page.locator(part).is_visible())
        self.assertEqual(page.locator("article details[open]").count(), 0)

    def paper_shows_a_kernel_once(self, page, _):
        note, texts = page.locator("p.on-paper"), page.locator(".machine-texts pre")
        self.assertFalse(any(each.is_visible() for each in note.all()))
        on_screen = page.locator("article pre").count()
        with self.on_paper(page):
            self.assertEqual(page.locator("article pre").count(), on_screen)
            kernels = page.locator(".kernel-generated")
            self.assertEqual(page.evaluate(_MACHINE_TEXTS_ON_PAPER),
                             [] if texts.count() == 0 or kernels.count() else ["C++"])
            self.assertEqual(note.count(), 1 if texts.count() else 0)
            for each in note.all():
                self.assertTrue(each.is_visible())
                self.assertEqual(each.locator("a").count(), 5)

    @contextlib.contextmanager
    def on_paper(self, page):
        """A page while it is printed."""
        page.emulate_media(media="print")
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        try:
            yield
        finally:
            page.evaluate("window.dispatchEvent(new Event('afterprint'))")
            page.emulate_media(media="screen")

    def a_kernel_is_no_long_block(self, page, _):
        for height in page.locator(".kernel-view").evaluate_all(
                "all => all.map(view => view.clientHeight)"):
            self.assertLess(height, 900)

    def test_a_remembered_tab_that_a_page_lacks_hides_nothing(self):
        for name in self.recipe_pages():
            page = self.visit(name)
            page.evaluate("localStorage.setItem("
                          "'sphinx-design-tab-id-device', 'another_gpu')")
            page.reload()
            hidden = page.locator(".recipe-output[aria-label$=CPU]") \
                .evaluate_all("all => all.filter(panel => !panel.closest("
                              "'details') && !panel.getClientRects().length)"
                              ".length")
            self.assertEqual(hidden, 0)

    def test_search_finds_adam(self):
        page = self.visit("search.html?q=Adam")
        page.locator(".search-summary", has_text="found").wait_for()
        links = page.locator("#search-results ul.search li a").evaluate_all(
            "links => links.map(link => link.getAttribute('href'))")
        self.assertTrue(any(link.startswith("recipes/") for link in links),
                        links)
        self.assertEqual(self.complaints, [])


# Hides words that look like some before them, with all that they stand in.
_HIDE_WORDS_ALIKE = """() => {
  const looks = new Map(), shown = new Set(), seen = new Set(), alike = [];
  const has_words = e => [...e.childNodes].some(
    child => child.nodeType === Node.TEXT_NODE && child.data.trim());
  for (const e of document.body.querySelectorAll("*")) {
    const s = getComputedStyle(e);
    const look = [s.color, s.fontSize, s.fontWeight, s.backgroundColor,
                  s.backgroundImage, s.opacity, s.position, s.textShadow,
                  s.textDecorationLine, looks.get(e.parentElement)].join();
    looks.set(e, look);
    if (s.visibility === "visible") shown.add(e);
    if (!has_words(e) || !shown.has(e)) continue;
    if (seen.has(look)) alike.push(e);
    seen.add(look);
  }
  for (const e of alike) {
    e.style.visibility = "hidden";
    for (const child of e.children) {
      if (shown.has(child)) child.style.visibility = "visible";
    }
  }
}"""

# What a sheet of paper would not show, or not all of.
_HIDDEN_ON_PAPER = """() => [...document.querySelectorAll(
  "article :is(pre, p, table, figure, details)")].filter(e =>
    (!e.getClientRects().length && !e.closest(".machine-texts")) ||
    (e.localName === "pre" && e.scrollWidth > e.clientWidth + 1) ||
    (e.localName === "details" && !e.open)
  ).map(e => e.outerHTML.slice(0, 80))"""

# The tabs of a kernel's texts that are printed.
_MACHINE_TEXTS_ON_PAPER = """() => [...document.querySelectorAll(
  ".machine-texts pre")].filter(e => e.getClientRects().length).map(
    e => e.closest(".sd-tab-content").previousElementSibling.textContent.trim())"""

# Elements whose content sticks out of them, where nothing scrolls or clips it.
_SPILLS = """() => [...document.querySelectorAll(
  "article :is(pre, p, li, div, dd, figure, details, table)")].filter(
    e => e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1 &&
         getComputedStyle(e).overflowX === "visible"
  ).map(e => e.outerHTML.slice(0, 80))"""

# Every output of the page's own steps, not of exercises, on the CPU.
_OUTPUTS = """() => {
  const all = [...document.querySelectorAll("article .recipe-output")];
  const own = all.filter(panel => !panel.closest(".exercise") &&
                                  panel.ariaLabel.endsWith("CPU"));
  return own.map(panel => {
    const outer = panel.closest(".sd-tab-set") || panel;
    const above = outer.previousElementSibling;
    // A kernel is shown in parts, some of them folded.
    const parts = [...panel.querySelectorAll("pre.output-text, pre.output-kernel")];
    return {
      text: parts.map(part => part.textContent).join(""),
      afterCode: above.classList.contains("recipe-code"),
      visible: parts[0].getClientRects().length > 0,
      provenance: panel.querySelector(".provenance").textContent,
      varies: [...panel.querySelectorAll("pre .varies")].map(mark => ({
        text: mark.textContent, title: mark.title,
        style: getComputedStyle(mark).textDecorationStyle})),
    };
  });
}"""


class RealSite(Site, unittest.TestCase):
    """The book itself."""

    @classmethod
    def setUpClass(cls):
        cls.open(Book(ROOT), Path(os.environ["FUSEBOOK_SITE"]))

    def alike(self):
        return set(self.recipe_pages()) - set(some(self.recipe_pages()))

    def test_the_book_has_its_pages(self):
        self.assertGreater(len(self.recipes), 0)
        for name in ("404.html", "changelog.html",
                     "index.html", "first_five_minutes.html", "recipes.html",
                     "glossary.html", "credits.html", "ops.html",
                     *self.recipe_pages()):
            self.assertIn(name, self.names)

    def test_search_finds_first_where_it_is_explained(self):
        for words, wanted in (("learning rate", "glossary.html"),
                              ("cache", "background/how_it_works.html"),
                              ("AdamW", "background/maths.html"),
                              ("horizontal fusion", "glossary.html"),
                              ("gradient", "glossary.html")):
            with self.subTest(words):
                page = self.visit(f"search.html?q={words.replace(' ', '+')}")
                first = page.locator("#search-results ul.search li a").first
                first.wait_for()
                page.locator(".search-summary", has_text="found").wait_for()
                self.assertTrue(first.get_attribute("href").startswith(wanted),
                                first.get_attribute("href"))
                page.context.close()

    def test_what_search_quotes_keeps_words_apart(self):
        """Every word of a quote is one of its page."""
        glossary = self.visit("glossary.html")
        words = set(glossary.locator("article").inner_text()
                    .replace("#", " ").split())
        glossary.context.close()
        for query in ("dimensions", "optimizer", "smaller"):
            page = self.visit(f"search.html?q={query}")
            quote = page.locator("#search-results li", has=page.locator(
                "a[href^='glossary.html']")).first.locator("p.context")
            quote.wait_for()
            with self.subTest(query):  # the ends may be parts of words
                self.assertEqual(set(quote.inner_text().split()[1:-1]) - words,
                                 set())
            page.context.close()

    def test_a_kernel_and_its_code_are_marked_together(self):
        page = self.visit("recipes/foreach_map.html")
        view = page.locator(".kernel-view").first
        line = view.locator(".kernel-generated .kernel-line[data-at]").last
        line.hover()
        marked = view.locator(".kernel-source .lit")
        self.assertEqual(marked.get_attribute("data-at"),
                         line.get_attribute("data-at"))
        view.locator(".kernel-source a").first.focus()
        first = marked.get_attribute("data-at")
        page.keyboard.press("ArrowDown")
        self.assertNotEqual(marked.get_attribute("data-at"), first)
        page.keyboard.press("Enter")  # over to the kernel
        self.assertEqual(page.evaluate(
            "document.activeElement.closest('.kernel-pane').ariaLabel"),
            "The generated kernel")
        self.assertEqual(self.complaints, [])

    def test_machine_code_is_one_box_at_a_time(self):
        compiled = [name for name in self.recipes
                    if self.book.recipe_path(name).suffix == ".cpp"]
        looks = (itertools.product(compiled, VIEWPORTS) if EVERY_NIGHT else
                 zip(some(compiled), itertools.cycle(VIEWPORTS), strict=False))
        for name, viewport in looks:
            page = self.visit(f"recipes/{name}.html", viewport)
            tabs = page.locator(".machine-texts > label")
            self.assertEqual(tabs.count(), len(kept.TEXTS))
            panels = page.locator(".machine-texts > .sd-tab-content")
            for index in range(len(kept.TEXTS)):
                tabs.nth(index).click()
                self.assertEqual([panels.nth(i).is_visible()
                                  for i in range(len(kept.TEXTS))],
                                 [i == index for i in range(len(kept.TEXTS))])
                block = panels.nth(index).locator("pre").last
                self.assertLess(block.bounding_box()["height"], 600)
                scrolls, reachable = block.evaluate(
                    "pre => [pre.scrollHeight > pre.clientHeight + 1 ||"
                    " pre.scrollWidth > pre.clientWidth, pre.tabIndex === 0]")
                self.assertEqual(scrolls, reachable)
            self.assertEqual(self.complaints, [])
            page.context.close()

    def test_the_language_is_remembered_and_hides_nothing(self):
        page = self.visit(f"recipes/{self.recipes[0]}.html")
        page.locator(".machine-texts > label", has_text="PTX").click()
        page.goto(f"{self.base}recipes/{self.recipes[1]}.html")
        shown = page.locator(".machine-texts > .sd-tab-content:visible")
        self.assertIn("ld.global", shown.text_content())
        page.evaluate("localStorage.setItem('sphinx-design-tab-id-language',"
                      " 'rust')")
        page.evaluate("sessionStorage.clear()")
        page.reload()
        self.assertEqual(page.locator(
            ".machine-texts > .sd-tab-content:visible").count(), 1)

    def test_rows_of_large_tables_are_cards_on_a_phone(self):
        for name, kind in (("ops.html", "op-table"),
                           ("background/promises.html", "readme-table")):
            with self.subTest(name), self.visits(name, "phone") as page:
                wide, room = page.locator(f"table.{kind}").last.evaluate(
                    "table => { const box = table.parentElement;"
                    " return [box.scrollWidth, box.clientWidth]; }")
                self.assertEqual(wide, room)
                row = page.locator(f"table.{kind}").last.locator("tbody tr").first
                first, last = (row.locator("td").nth(n).bounding_box()
                               for n in (0, -1))
                self.assertGreaterEqual(last["y"], first["y"] + first["height"])


class ToySite(Site, unittest.TestCase):
    """Two toy recipes; one of them has output of two devices."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="toy-site-")
        cls.addClassCleanup(folder.cleanup)
        root = Path(folder.name)
        make_sources(root)
        code, text = build(root, root / "out")
        if code != 0:
            raise RuntimeError(text)
        cls.open(Book(root), root / "out")
        # The other pages are those of the book itself.
        cls.names = ["recipes.html", *(f"recipes/{name}.html"
                                       for name in cls.recipes)]

    def test_devices_change_together(self):
        page = self.visit("recipes/toy_optimizer.html", "phone")
        panels = page.locator(".devices .recipe-output[aria-label$=GPU]")
        self.assertEqual(panels.count(), 2)
        self.assertFalse(panels.nth(1).is_visible())
        page.locator(".devices label", has_text="GPU").first.click()
        for index in (0, 1):
            self.assertTrue(panels.nth(index).is_visible())
            self.assertIn("captured before the last change",
                          panels.nth(index).text_content())

    def test_answer_opens(self):
        page = self.visit("recipes/toy_optimizer.html", "phone")
        answer = page.locator(".exercise .recipe-output").first
        self.assertFalse(answer.is_visible())
        page.locator(".exercise summary").first.click()
        self.assertTrue(answer.is_visible())
        self.assertIn("arrays: 5", answer.text_content())


if __name__ == "__main__":
    unittest.main()
