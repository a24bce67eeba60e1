"""What README.md shows is what was captured."""

import shutil

from support import BookCase

from fusebook_docs import front
from fusebook_docs.book import Book
from fusebook_docs.errors import BookError


class Front(BookCase):
    def test_the_real_one(self):
        self.assertEqual(front.stale(Book.here()), [])

    def copy(self):
        """The real samples and examples under a README of our own."""
        real = Book.here()
        for name in ("docs/samples", "docs/examples", "recipes"):
            path = self.root / name
            if path.exists():
                shutil.rmtree(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(real.root / name)
        text = (real.root / front.README).read_text()
        (self.root / front.README).write_text(text)
        return text

    def test_an_edited_part_is_noticed_and_mended(self):
        text = self.copy()
        front.write(self.book)
        path = self.root / front.README
        self.assertEqual(path.read_text(), text)
        path.write_text(text.replace("launches: 3", "launches: 4"))
        self.assertEqual([str(p) for p in front.stale(self.book)],
                         [front.README])
        front.write(self.book)
        self.assertEqual(path.read_text(), text)
        (self.root / front.PICTURE).write_text("<svg/>")
        self.assertEqual([str(p) for p in front.stale(self.book)],
                         [str(front.PICTURE)])

    def test_a_part_that_is_missing_or_unknown(self):
        text = self.copy()
        path = self.root / front.README
        path.write_text(text.replace("made: output", "made: outputs"))
        with self.assertRaisesRegex(BookError, "unknown part 'outputs'"):
            front.text(self.book)
        path.write_text("# Toys\n")
        with self.assertRaisesRegex(BookError, "missing part output, program"):
            front.text(self.book)
