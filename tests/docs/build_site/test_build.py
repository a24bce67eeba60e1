"""Builds a toy book with Sphinx: what is on the pages, what is an error."""

import filecmp
import json
import os
import re
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

from site_case import TOY, BuiltOnce, SiteCase
from support import build, build_anew, make_sources, plain_record, store_gpu, toy_record

from fusebook_docs import checking, downloads, samples, values
from fusebook_docs.book import Book
from fusebook_docs.extension import nodes
from fusebook_docs.extension.page import label

BACKGROUND = "background/scalars_and_guards"


class Page(BuiltOnce):
    def test_headings_are_the_titles(self):
        headings = [h.get_text().removesuffix("¶")
                    for h in self.page().find_all(["h1", "h2"])]
        self.assertEqual(headings, [
            "A toy optimizer", "Model setup", "Compile *and* run: “both”",
            "A quiet step", "Conclusion", "See also", "Change it",
            "The whole program"])

    def test_output_follows_its_code(self):
        blocks = self.page("recipes/plain_recipe").select("div.recipe-code")
        self.assertEqual(len(blocks), 3)
        panel = blocks[1].find_next_sibling()
        self.assertIn("recipe-output", panel["class"])
        self.assertEqual(panel.find_next_sibling(), blocks[2])
        self.assertIn("int main", blocks[2].get_text())

    def test_text_is_what_was_printed(self):
        sample = samples.load(self.book, "cpu", "toy_optimizer")
        shown = [block.get_text() for block in self.page().select(
            ".sd-tab-content:first-of-type pre.output-text")]
        expected = [samples.filled(step.text, sample.values).rstrip("\n")
                    for step in sample.steps if step.text]
        self.assertEqual(shown[:len(expected)], expected)

    def test_varying_values_are_marked(self):
        block = self.page().find("pre", string=None,
                                 class_="output-text").find_next(
                                     class_="varies")
        self.assertEqual(block.get_text(), "747.2 us")
        self.assertIn("varies from run to run", block["title"])

    def test_every_kind_of_value_says_why_it_varies(self):
        self.assertEqual(set(nodes.VARIES), set(values._FIELDS))

    def test_tabs_and_stale_samples(self):
        tabs = self.page().select(".sd-tab-set.devices")
        self.assertEqual(len(tabs), 2)  # of steps; the answer has none
        labels = [label.get_text().strip() for label in tabs[0].select("label")]
        self.assertEqual(labels, ["CPU", "GPU"])
        lines = [p.get_text() for p in tabs[0].select(".provenance")]
        self.assertEqual(lines[0], "Toy CPU 9, 2 threads · g++ 12.2.0 · "
                                   "2026-11-21")
        self.assertIn("captured before the last change", lines[1])

    def test_numbers_in_prose(self):
        step = self.page().find(id="a-quiet-step")
        text = " ".join(step.p.get_text().split())
        self.assertIn("After five calls we had five launches, and a step took "
                      "747.2 us.", text)
        self.assertEqual([v.get_text() for v in step.p.select(".varies")],
                         ["747.2 us"])

    def test_names_of_devices(self):
        for device, shown in (("cpu", "CPU"), ("h200", "H200"),
                              ("rtx_4090", "RTX 4090"),
                              ("cuda_sim", "simulated GPU")):
            self.assertEqual(label(device), shown)

    def test_a_page_without_a_gpu_says_so(self):
        quiet = self.page("recipes/plain_recipe").select(".recipe-quiet")
        self.assertEqual(len(quiet), 1)
        self.assertIn("not been run on a GPU", quiet[0].get_text())
        self.assertEqual(self.page().select(".recipe-quiet"), [])

    def test_a_gpu_has_a_tab_where_it_captured_the_output(self):
        """And nowhere else: an empty tab hides what is there."""
        plain = self.page("recipes/plain_recipe")
        self.assertEqual(len(plain.select(".recipe-output")), 1)
        self.assertEqual(plain.select(".devices"), [])
        for tabs in self.page().select(".devices"):
            self.assertEqual(len(tabs.select("label")),
                             len(tabs.select(".recipe-output")))

    def test_excerpt(self):
        article = self.page(BACKGROUND)
        blocks = article.select("div.recipe-code")
        self.assertEqual(blocks[0].get_text().rstrip(),
                         "auto fused_step = compile([&] { opt.step(); });\n"
                         "for (int i = 0; i < 5; ++i) {\n"
                         "  fused_step();")
        shown = article.select_one(
            ".sd-tab-content:first-of-type pre.output-text")
        self.assertIn("launches: ", shown.get_text())
        origins = article.select("p.recipe-origin")
        self.assertEqual(origins[0].get_text(),
                         "From toy_optimizer, “Compile *and* run: \"both\"”:")
        self.assertEqual(origins[0].a["href"], "../recipes/toy_optimizer.html")
        whole = self.page("recipes/plain_recipe").select("div.recipe-code")
        self.assertEqual(blocks[1].get_text(), whole[1].get_text())
        self.assertEqual(len(article.select("div.recipe-output")), 2)  # tabs

    def test_whole_program(self):
        pre = self.page().select_one("details.whole-program pre")
        self.assertEqual(pre.get_text(), self.recipe.read_text())
        for link in self.page().select("a.download[href$=cpp]"):
            target = (self.out / "recipes" / link["href"]).resolve()
            self.assertEqual(target.read_bytes(), self.recipe.read_bytes())

    def test_downloads(self):
        wanted = {"zip": downloads.zip_of(self.book, "toy_optimizer"),
                  "ipynb": downloads.notebook_of(self.book, "toy_optimizer")
                  .encode()}
        for suffix, content in wanted.items():
            links = self.page().select(f"a.download[href$={suffix}]")
            self.assertEqual(len(links), 2)  # above and below
            for link in links:
                self.assertEqual(link.get_text(), f"toy_optimizer.{suffix}")
                target = (self.out / "recipes" / link["href"]).resolve()
                self.assertEqual(target.read_bytes(), content)

    def test_exercise(self):
        answer = self.page().select_one(".exercise details.answer")
        self.assertIsNone(answer.get("open"))
        text = answer.get_text()
        self.assertIn("+  Adam opt(model.parameters(), {.amsgrad", text)
        self.assertIn("There are five of them.", text)
        self.assertIn("launches: 5, arrays: 5", text)
        self.assertNotIn("parameters: 10", text)
        self.assertIn("Every other section prints the same text.", text)

    def test_gallery(self):
        titles = [p.get_text() for p in
                  self.page("recipes").select(".recipe-card-title")]
        self.assertEqual(titles, ["A plain recipe", "A toy optimizer"])

    def test_a_card_has_a_picture_of_its_result(self):
        cards = self.page("recipes").select(".recipe-card")
        pictures = [card.select("svg.thumbnail") for card in cards]
        self.assertEqual([len(each) for each in pictures], [0, 1])
        self.assertEqual(pictures[1][0]["aria-label"],
                         "eager: 747.2 us; launches: 5")

    def test_what_a_card_says(self):
        lines = [p.get_text() for p in
                 self.page("recipes").select(".recipe-card .recipe-meta")]
        self.assertEqual(lines, [
            "first steps · 5 minutes · captured on CPU",
            "some C++ · 5 minutes · captured on CPU, GPU · builds on "
            "A plain recipe"])

    def test_what_stands_around_the_program(self):
        learn = self.page().select_one(".recipe-learn")
        self.assertEqual(learn.li.get_text(strip=True), "How to play.")
        label, text = learn.find_all("p")[-2:]
        self.assertEqual(label.get_text(), "What you need")
        self.assertTrue(text.get_text().startswith("A C++20 compiler, which"), text)
        self.assertEqual([code.get_text() for code in text.find_all("code")],
                         ["./fusebook doctor", "./fusebook run"])
        conclusion = self.page().find(id="conclusion")
        self.assertEqual(conclusion.p.get_text(), "Playing with Adam is fun.")
        self.assertEqual(self.page("recipes/plain_recipe").select(
            ".recipe-learn"), [])

    def test_next_recipe(self):
        first = self.page("recipes/plain_recipe")
        links = [p.a["href"] for p in first.find_all("p")
                 if p.get_text().startswith("Next recipe:")]
        self.assertEqual(links, ["toy_optimizer.html"])
        self.assertNotIn("Next recipe", self.page().get_text())

    def test_nothing_of_this_machine(self):
        for path in self.out.rglob("*"):
            if path.is_file() and ".doctrees" not in path.parts:
                self.assertNotIn(str(self.root).encode(), path.read_bytes(),
                                 path)


class Errors(SiteCase):
    """Each of these ends the build, and names file and line or step."""

    def test_wrong_markup_in_prose(self):
        self.edit(self.recipe, "A stack of", "A :nothing:`stack` of")
        self.broken(f"{TOY}.cpp:{self.line(':nothing:')}: ")

    def test_thumbnail_that_quotes_what_was_not_printed(self):
        self.edit(self.root / "docs" / "gallery.toml", "launches: #", "calls: #")
        self.broken("docs/gallery.toml: thumbnail of toy_optimizer",
                    "'calls: #' does not appear")

    def test_gallery_of_a_recipe_that_is_not_there(self):
        self.edit(self.root / "docs" / "gallery.toml", '"toy_optimizer"',
                  '"joy_optimizer"')
        self.broken("unknown recipe joy_optimizer", "gallery.toml")

    def test_about_without_a_conclusion(self):
        path = self.root / "docs" / "about" / "toy_optimizer.rst"
        self.edit(path, "Conclusion", "Consequence")
        self.broken("docs/about/toy_optimizer.rst:1: ",
                    "missing heading 'Conclusion'")

    def test_wrong_name_in_a_conclusion(self):
        path = self.root / "docs" / "about" / "toy_optimizer.rst"
        self.edit(path, ":api:`Adam`", ":api:`Eve`")
        self.broken("docs/about/toy_optimizer.rst:6: ", "explains Eve")

    def test_unknown_term(self):
        self.edit(self.recipe, ":term:`kernel`", ":term:`colonel`")
        self.broken(f"{TOY}.cpp:{self.line('colonel')}: ", "colonel")

    def test_sample_that_was_edited(self):
        path = self.book.sample_paths("cpu", "toy_optimizer")[1]
        self.edit(path, "Toy CPU 9", "Toy CPU 10")
        line = path.read_text().split("\n").index(next(
            x for x in path.read_text().split("\n") if '"digest"' in x)) + 1
        self.broken(f"docs/samples/cpu/toy_optimizer.json:{line}: was edited")

    def test_code_that_is_newer_than_its_output(self):
        self.edit(self.recipe, "Generator gen(0)", "Generator gen(1)")
        self.broken(f"{TOY}.cpp:1: ", "has changed since its output was")

    def test_gpu_that_contradicts_the_cpu(self):
        record = toy_record("cuda")
        record["steps"][2]["text"] = record["steps"][2]["text"].replace(
            "launches: 5", "launches: 1")
        store_gpu(self.book, record=record)
        self.broken("docs/samples/cuda/toy_optimizer.txt:1: ", "launches: 1")

    def test_answer_without_words(self):
        self.book.answer_path("toy_optimizer", "amsgrad").unlink()
        self.broken("amsgrad.rst: missing answer")

    def test_number_in_an_answer(self):
        path = self.book.answer_path("toy_optimizer", "amsgrad")
        self.edit(path, "five", "six")
        self.broken("amsgrad.rst:1: ", "says 'six', but it is 5")

    def test_number_that_is_not_what_was_printed(self):
        self.edit(self.recipe, "five <launches", "six <launches")
        self.broken(f"{TOY}.cpp:{self.line('six <launches')}: ",
                    "says 'six', but it is 5")

    def test_value_that_there_is_not(self):
        self.edit(self.recipe, "took :value:`eager_us`",
                  "took\n  // :value:`egaer_us`")
        self.broken(f"{TOY}.cpp:{self.line('egaer_us')}: ",
                    "no value 'egaer_us'", "eager_us")

    def test_number_that_the_code_has_not(self):
        self.edit(self.recipe, "i < 5; ++i", "i < 4 + 1; ++i")
        self.broken(f"{TOY}.cpp:{self.line('five <i')}: ",
                    "says 'five', but it is 4")

    def test_number_on_another_page(self):
        source = self.root / "docs" / f"{BACKGROUND}.rst"
        text = source.read_text()
        source.write_text(f"{text}\nIt had :value:`six <launches: # @ "
                          "toy_optimizer>` launches.\n")
        self.broken(f"{BACKGROUND}.rst:{len(text.splitlines()) + 2}: ",
                    "says 'six', but it is 5")

    def test_grammar(self):
        self.edit(self.recipe, 'step("A quiet step")', "step(name)")
        self.broken(f"{TOY}.cpp:", "string literal")

    def test_step_without_output(self):
        self.edit(self.recipe, 'step("Model setup")', 'step("Models")')
        self.broken(f"{TOY}.cpp:{self.line('Models')}: ", "step 'Models'",
                    "step 'Model setup'", "./fusebook capture toy_optimizer")

    def test_output_without_step(self):
        record = toy_record()
        record["steps"].append({"title": "More", "text": "x\n"})
        samples.store(self.book, samples.from_record(
            record, "toy", source_sha256="0"))
        self.broken("step 'More'", "toy_optimizer")

    def test_no_sample(self):
        self.book.sample_paths("cpu", "toy_optimizer")[0].unlink()
        self.broken(f"{TOY}.cpp", "./fusebook capture toy_optimizer")

    def test_damaged_sample(self):
        self.book.sample_paths("cpu", "toy_optimizer")[1].write_text("{")
        self.broken("docs/samples/cpu/toy_optimizer.json:1", "damaged")

    def test_patch_that_does_not_fit(self):
        self.edit(self.recipe, "Adam opt(model", "Adam o(model")
        self.broken("amsgrad.patch:3", "no longer applies",
                    f"{TOY}.cpp:{self.line('exercise::')}: ")

    def test_exercise_without_patch(self):
        self.book.patch_path("toy_optimizer", "amsgrad").unlink()
        self.broken("docs/exercises/toy_optimizer/amsgrad.patch",
                    "unknown exercise")

    def test_exercise_without_sample(self):
        for path in self.book.sample_paths("cpu", "toy_optimizer", "amsgrad"):
            path.unlink()
        self.broken("toy_optimizer.amsgrad.json", "missing sample")

    def test_excerpt_of_what_is_not_there(self):
        source = self.root / "docs" / f"{BACKGROUND}.rst"
        for old, new, word in (
                ("step: Compile *and*", "step: Compile or", "has no step"),
                ("from: auto fused", "from: auto confused", "(from)"),
                ("to: fused_step();", "to: Adam opt", "(to)"),
                (":: plain_recipe", ":: no_recipe", "unknown recipe 'no_recipe'")):
            with self.subTest(word):
                self.edit(source, old, new)
                self.broken(f"{BACKGROUND}.rst:", word)
                self.edit(source, new, old)

    def stale(self):
        """Which outputs of the GPU say that they are old, in page order."""
        self.built()
        panels = self.page().select('.recipe-output[aria-label$="GPU"]')
        return [bool(panel.select(".stale")) for panel in panels]

    def test_what_became_of_a_gpu_sample(self):
        """Two steps and an answer; the page is read anew by itself."""
        store_gpu(self.book)
        store_gpu(self.book, exercise="amsgrad")
        self.assertEqual(self.stale(), [False, False, False])
        store_gpu(self.book, "22cc", exercise="amsgrad")
        self.assertEqual(self.stale(), [False, False, True])
        path = self.root / "common" / "by_hand.cu"
        path.write_text("int b;\n")
        store_gpu(self.book)
        path.write_text("int c;\n")
        self.assertEqual(self.stale(), [True, True, True])

    def test_old_gpu_sample_is_no_error(self):
        record = toy_record("cuda")
        record["steps"][1]["title"] = "An older title"
        samples.store(self.book, samples.from_record(
            record, "toy", source_sha256="0"))
        self.built()
        self.assertIn("newer than the sample", self.page().get_text())


def search_index(out):
    text = (out / "searchindex.js").read_text(encoding="utf-8")
    return json.loads(text[text.index("{"):text.rindex("}") + 1])


class Rebuild(SiteCase):
    """A page is read again when, and only when, something of it changed."""

    def setUp(self):
        super().setUp()
        self.built()

    def changed(self):
        """Pages written since `mark`."""
        self.built()
        return {f"recipes/{path.stem}"
                for path in (self.out / "recipes").glob("*.html")
                if path.stat().st_mtime_ns > self.before}

    def mark(self):
        pages = (self.out / "recipes").glob("*.html")
        self.before = max(path.stat().st_mtime_ns for path in pages)

    def later(self, path):
        """Makes a change of `path` visible on file systems with coarse time."""
        stat = path.stat()
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))

    def capture(self, exercise=None):
        """The sample becomes that of the code of today."""
        sample = samples.load(self.book, "cpu", "toy_optimizer", exercise)
        source = checking.source_of(self.book, "toy_optimizer", exercise)
        samples.store(self.book, replace(
            sample, source_sha256=source.fingerprint))

    def measure(self, exercise=None):
        """Stores a sample with another timing; its file."""
        sample = samples.load(self.book, "cpu", "toy_optimizer", exercise)
        value = replace(sample.values["eager_us"], value=748.3,
                        shown="748.3 us")
        values = {**sample.values, "eager_us": value}
        return samples.store(self.book, replace(sample, values=values))[1]

    def test_the_search_knows_the_pages_that_did_not_change(self):
        before = search_index(self.out)
        self.assertGreater(len(before["indexentries"]), 10)
        self.edit(self.recipe, "A stack of layers", "A zebra stack of layers")
        self.later(self.recipe)
        self.built()
        after = search_index(self.out)
        self.assertIn("zebra", after["terms"])
        for part in ("indexentries", "titleterms", "alltitles", "titles"):
            self.assertEqual(after[part], before[part], part)

    def test_nothing_changed(self):
        self.mark()
        self.assertEqual(self.changed(), set())

    def test_sample_changed(self):
        self.mark()
        self.later(self.measure())
        self.assertIn(TOY, self.changed())
        self.assertIn("748.3", self.page().get_text())

    def test_exercise_sample_changed(self):
        self.mark()
        self.later(self.measure("amsgrad"))
        self.assertIn(TOY, self.changed())

    def test_patch_changed(self):
        self.mark()
        path = self.book.patch_path("toy_optimizer", "amsgrad")
        self.edit(path, "+  Adam opt(model.parameters(), {.amsgrad = true});",
                  "+  Adam opt(model.parameters(), {.amsgrad = 1 > 0});")
        self.capture("amsgrad")
        self.later(path)
        self.assertIn(TOY, self.changed())

    def test_sample_of_another_device_comes_and_goes(self):
        self.mark()
        record = plain_record()
        record["device"] = "cuda"
        sample = samples.from_record(record, "toy", source_sha256="0")
        paths = samples.store(self.book, sample)
        self.assertIn("recipes/plain_recipe", self.changed())
        self.assertEqual(len(self.page("recipes/plain_recipe").select(
            ".sd-tab-set.devices")), 1)
        self.mark()
        for path in paths:
            path.unlink()
        self.assertIn("recipes/plain_recipe", self.changed())

    def test_recipe_changed(self):
        self.mark()
        self.edit(self.recipe, "A stack of layers", "A pile of layers")
        self.later(self.recipe)
        self.assertIn(TOY, self.changed())
        self.assertIn("A pile of layers", self.page().get_text())

    def test_recipe_of_an_excerpt_changed(self):
        self.edit(self.recipe, "++i", "i++")
        self.capture()
        self.capture("amsgrad")
        self.later(self.recipe)
        self.built()
        self.assertIn("i++", self.page(BACKGROUND).get_text())
        self.later(self.measure())
        self.built()
        self.assertIn("748.3", self.page(BACKGROUND).get_text())


class Reproducible(SiteCase):
    def files(self, folder):
        return sorted(str(path.relative_to(folder))
                      for path in folder.rglob("*") if path.is_file()
                      and ".doctrees" not in path.parts)

    def test_byte_for_byte(self):
        self.built()
        with tempfile.TemporaryDirectory(prefix="other-place-") as name:
            other = Path(name)
            make_sources(other)
            code, text = build_anew(other, other / "out")
            self.assertEqual(code, 0, text)
            names = self.files(self.out)
            self.assertEqual(names, self.files(other / "out"))
            _, differ, failed = filecmp.cmpfiles(self.out, other / "out",
                                                 names, shallow=False)
            self.assertEqual((differ, failed), ([], []))


class Translations(SiteCase):
    def test_messages_point_into_the_recipe(self):
        code, text = build(self.root, self.out, builder="gettext")
        self.assertEqual(code, 0, text)
        catalogue = (self.out / f"{TOY}.pot").read_text(encoding="utf-8")
        lines = self.recipe.read_text().split("\n")
        entry = re.search(r"#: (\S+?):(\d+)\nmsgid \"A stack of layers",
                          catalogue)
        self.assertIsNotNone(entry, catalogue)
        self.assertTrue(entry[1].endswith("recipes/toy_optimizer.cpp"))
        self.assertIn("A stack of layers", lines[int(entry[2]) - 1])


if __name__ == "__main__":
    unittest.main()
