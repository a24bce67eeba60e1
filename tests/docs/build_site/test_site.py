"""What belongs to the site as a whole: addresses, changes, a page for none."""

import re
import subprocess
import unittest

from bs4 import BeautifulSoup
from site_case import TOY, SiteCase
from support import ROOT, build

from fusebook_docs import readme
from fusebook_docs.extension import plain_tokens

REPOSITORY = "https://example.org/someone/fusebook"


class Site(SiteCase):
    def whole(self, name):
        html = (self.out / f"{name}.html").read_text(encoding="utf-8")
        return BeautifulSoup(html, "html.parser")

    def test_no_address_is_invented(self):
        self.built()
        for name in (TOY, "index", "404"):
            page = self.whole(name)
            self.assertEqual(page.select(".page-facts, base"), [])
            self.assertNotIn("git clone http", page.get_text())
        self.assertIn("git clone <address of this repository> fusebook\ncd fusebook",
                      self.whole("index").get_text())

    def test_addresses_that_are_configured(self):
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)
        subprocess.run(["git", "add", "recipes"], cwd=self.root, check=True)
        subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@b.c",
                        "commit", "-qm", "a", "--date=2026-01-02T12:00:00Z"],
                       cwd=self.root, check=True,
                       env={"PATH": "/usr/bin:/bin",
                            "GIT_COMMITTER_DATE": "2026-01-02T12:00:00Z"})
        code, text = build(self.root, self.out,
                           "-D", f"fusebook_repository={REPOSITORY}",
                           "-D", "html_baseurl=https://example.org/book/")
        self.assertEqual(code, 0, text)
        facts = self.whole(TOY).select_one(".page-facts")
        self.assertIn("Last change: 2026-01-02", facts.get_text())
        self.assertEqual(facts.a["href"],
                         f"{REPOSITORY}/edit/main/recipes/toy_optimizer.cpp")
        self.assertIn(f"git clone {REPOSITORY}\ncd fusebook",
                      self.whole("index").get_text())
        self.assertEqual(self.whole("404").base["href"],
                         "https://example.org/book/")
        self.assertEqual(self.whole("index").select("base"), [])

    def test_both_asides_have_names(self):
        self.built()
        names = [aside.get("aria-label")
                 for aside in self.whole(TOY).select("aside")]
        self.assertEqual(names, ["All pages", "On this page"])
        self.assertEqual(self.whole("search").h1.get_text(), "Search")

    def test_what_looks_like_text_has_no_element(self):
        """Names, punctuation and spaces, in the colours of both themes."""
        self.built()
        page = self.whole(TOY)
        self.assertGreater(len(page.select("pre span.k, pre span.kt")), 3)
        for kind in plain_tokens.KINDS:
            self.assertEqual(page.select(f"pre span.{kind}"), [])
        css = (self.out / "_static/pygments.css").read_text(encoding="utf-8")
        for theme in ("", 'body[data-theme="dark"] '):
            def colour(selector, theme=theme):
                found = re.search(rf"^{re.escape(theme)}\.highlight{selector} "
                                  r"{[^}]*?\bcolor: (#\w+)[^}]*?}", css, re.M)
                return found and found[1]
            plain = colour("")
            self.assertTrue(plain)
            for kind in plain_tokens.KINDS:
                if kind != "w":  # which shows no colour
                    self.assertIn(colour(rf" \.{kind}"), (plain, None), kind)

    def test_changelog(self):
        self.built()
        wanted = [heading for heading, _
                  in readme.sections(ROOT / "CHANGELOG.md")]
        shown = [h2.get_text().removesuffix("¶")
                 for h2 in self.page("changelog").select("h2")]
        self.assertEqual(shown, wanted)
        version = re.search(r"project\(fusebook VERSION ([\d.]+)",
                            (ROOT / "CMakeLists.txt").read_text())[1]
        self.assertTrue(shown[0].startswith(version), shown[0])


if __name__ == "__main__":
    unittest.main()
