"""A toy recipe with a kernel, and what its page shows of it."""

import unittest
from dataclasses import replace

from site_case import TOY, BuiltOnce, SiteCase, words_of, words_of_rows
from support import ROOT

from fusebook_docs.book import Book
from fusebook_docs.machine import explorer, kept

REAL = "compiling_optimizer"
SECTION = "#from-c-to-machine-code"


def toy_kernel():
    return replace(kept.load(Book(ROOT), REAL), recipe="toy_optimizer")


class Page(BuiltOnce):
    kernel = toy_kernel()

    @classmethod
    def prepare(cls, root):
        kept.store(Book(root), cls.kernel)

    def section(self):
        return self.page().select_one(SECTION)

    def test_five_texts_in_tabs(self):
        section = self.section()
        self.assertEqual([label.get_text(strip=True) for label in section.select(
            ".machine-texts > label")], ["C++", "CUDA", "x86 assembly", "PTX",
                                 "SASS"])
        panels = section.select(".machine-texts > .sd-tab-content")
        for name, panel in zip(kept.TEXTS, panels, strict=True):
            text = panel.select("pre")[-1].get_text()
            for line in filter(str.strip, text.split("\n")):
                self.assertIn(line.split(), [part.split() for part in
                                             self.kernel.lines(name)])
            self.assertTrue(panel.select("pre span"), name)  # highlighted
        for panel, word in zip(panels, ("lerp<float>(", "load_pack<pack>(",
                                        "vsqrtps", "st.global.v4.f32",
                                        "STG.E.128"),
                               strict=True):
            self.assertIn(word, panel.select("pre")[-1].get_text())
        self.assertIn("FUSE_FN T lerp(T a", panels[0].details.get_text())

    def test_the_whole_texts_are_downloads(self):
        links = [link["href"].rpartition("/")[2]
                 for link in self.section().select("a.download")]
        names = [f"toy_optimizer.kernel.{suffix}"
                 for suffix in ("cpp", "cu", "s", "ptx", "sass")]
        # Once for paper, and once in its own tab.
        self.assertEqual(links, names * 2)
        for name, text in zip(names, kept.TEXTS, strict=True):
            self.assertEqual((self.out / "_downloads" / name).read_text(),
                             self.kernel.texts[text])

    def test_what_was_counted(self):
        section = self.section()
        rows = words_of_rows(section.select("table")[0])
        self.assertIn(["stores in a round", "3 of 32 bytes, to 3 lists",
                       *["3 of 16 bytes, to 3 lists"] * 2], rows)
        self.assertIn(["bytes stored per element", "12", "12", "12"], rows)
        self.assertIn("leaves out 12 calls in the SASS, to the compiler",
                      section.get_text(" ", strip=True))
        gpus = words_of(section.select("table")[1], " ", strip=True)
        used = next(gpu.registers for gpu in self.kernel.gpus
                    if gpu.architecture == 90)
        self.assertIn(f"9.0 {used} 0 40 of 64 warps", gpus)

    def test_the_link_is_the_kernel(self):
        link = self.section().find("a", string=lambda text: text and
                                   "Compiler Explorer" in text)
        self.assertEqual(explorer.opened(link["href"])[:2],
                         (self.kernel.texts["cpp"], list(self.kernel.options)))

    def test_a_recipe_without_one_has_no_section(self):
        self.assertIsNotNone(self.page(TOY).select_one(SECTION))
        self.assertIsNone(self.page("recipes/plain_recipe").select_one(SECTION))


class Wrong(SiteCase):
    def start(self, root):
        super().start(root)
        self.kernel = toy_kernel()
        kept.store(self.book, self.kernel)

    def test_one_that_was_edited_ends_the_build(self):
        self.edit(kept.paths(self.book, "toy_optimizer")["x86"], "vsqrtps",
                  "vmulps")
        self.broken("docs/kernels/toy_optimizer/made.json",
                    "edited after it was captured")

    def test_one_that_spills_is_not_shown(self):
        gpu = replace(self.kernel.gpus[0], spill_loads=8)
        kept.store(self.book, replace(self.kernel, gpus=(gpu,)))
        self.broken("spills registers on sm_75")


if __name__ == "__main__":
    unittest.main()
