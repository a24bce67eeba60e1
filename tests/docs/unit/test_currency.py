"""currency.py: when a sample is older than what it shows."""

import unittest

from support import BookCase, store_gpu

from fusebook_docs import checking, currency, samples

RECIPE = "toy_optimizer"


class Currency(BookCase):
    def setUp(self):
        super().setUp()
        self.capture()
        self.code = self.root / "common" / "optim" / "by_hand.cu"
        self.code.parent.mkdir(parents=True)
        self.code.write_text("int a;  // one\n")

    def is_stale(self, device="cuda"):
        found = {name: samples.load(self.book, name, RECIPE)
                 for name in self.book.devices(RECIPE)}
        return currency.is_stale(self.book, found[device],
                                 checking.source_of(self.book, RECIPE),
                                 found.get("cpu"))

    def stored(self, *kernels, **fields):
        store_gpu(self.book, *kernels, **fields)
        return self.is_stale()

    def test_of_today(self):
        self.assertFalse(self.stored())
        self.assertFalse(self.is_stale("cpu"))
        # A GPU may have kernels that no CPU runs.
        self.assertFalse(self.stored("00aa", "11bb", "22cc"))

    def test_other_kernels(self):
        self.assertTrue(self.stored("00aa"))
        self.assertTrue(self.stored("00aa", "22cc"))
        self.assertFalse(self.is_stale("cpu"))

    def test_no_sample_of_the_cpu_to_compare_with(self):
        store_gpu(self.book)
        for path in self.book.sample_paths("cpu", RECIPE):
            path.unlink()
        self.assertTrue(self.is_stale())

    def test_another_recipe(self):
        self.assertTrue(self.stored(source_sha256="0"))
        store_gpu(self.book)
        path = self.book.recipe_path(RECIPE)
        text = path.read_text()
        path.write_text(f"// A comment.\n{text}")
        self.assertFalse(self.is_stale())
        path.write_text(text.replace("i < 5", "i < 6"))
        self.assertTrue(self.is_stale())
        self.assertTrue(self.is_stale("cpu"))

    def test_code_for_gpus_that_changed(self):
        """Its comments are no code; a CPU does not run it."""
        store_gpu(self.book)
        self.code.write_text("int a;  // two\n\n")
        self.assertFalse(self.is_stale())
        self.code.write_text("int b;  // one\n")
        self.assertTrue(self.is_stale())
        self.assertFalse(self.is_stale("cpu"))

    def test_code_for_gpus_that_came_or_moved(self):
        for name in ("kernels/prelude/half.h", "kernels/prelude/gpu_loops.h",
                     "kernels/more.cu", "common/more.cu"):
            store_gpu(self.book)
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("int a;\n")
            self.assertTrue(self.is_stale(), name)
        store_gpu(self.book)
        (self.root / "kernels" / "backend.h").write_text("int a;\n")
        self.assertFalse(self.is_stale())
        self.code.rename(self.code.with_name("other.cu"))
        self.assertTrue(self.is_stale())

    def test_a_sample_that_does_not_say_of_what_code(self):
        self.assertTrue(self.stored(gpu_code_sha256=None))

    def test_the_real_book_has_code_for_gpus(self):
        names = {path.name for path in type(self.book).here().gpu_code()}
        self.assertLessEqual({"half.h", "gpu_loops.h", "adam_by_hand.cu"},
                             names)


if __name__ == "__main__":
    unittest.main()
