"""What the docstrings of the Python package say."""

import unittest

from planted import BOOK, Planted

from fusebook_docs import python_docs

OPTIM = "python/fusebook/optim.py"
RECIPE = "python/fusebook/recipe.py"


class Lies(Planted):
    def test_a_number(self):
        self.lie(python_docs, OPTIM, "with matrices is four", "with matrices is two",
                 "says 'two', but")
        self.lies(
            python_docs, RECIPE,
            ("at least nine rounds", "at least three rounds", "says 'three', but"),
            ("3 device not available", "4 device not available", "says '4', but"),
            ("the unit behind them.", "two units behind them.", "'two' is not bound"))

    def test_another_optimizer(self):
        self.lie(python_docs, OPTIM, "LAMB and LARS, which torch",
                 "LAMB and Muon, which torch",
                 "names AdEMAMix, LAMB, Muon, but the optimizers that torch does not have",
                 place='"""The optimizers of torch.optim')
        self.lie(python_docs, OPTIM, "but for Adafactor's", "but for Adagrad's",
                 "names Adagrad, but the optimizers with more than one launch")
        self.lie(python_docs, "python/fusebook/__init__.py", "LAMB and LARS, each",
                 "LAMB and Lion, each", "names AdEMAMix, LAMB, Lion")
        self.lie(python_docs, OPTIM, '"""torch.optim.Adamax', '"""torch.optim.AdamW',
                 "the docstring of Adamax does not begin with its name")

    def test_launches(self):
        self.lie(python_docs, OPTIM, "torch.optim.Adafactor. Means",
                 "torch.optim.Adafactor, in one launch. Means",
                 "a step of Adafactor is more than one launch")
        self.lie(python_docs, OPTIM, "torch.optim.ASGD, in one launch",
                 "torch.optim.ASGD, in a launch of each list",
                 "a step of ASGD is one launch")

    def test_a_paper(self):
        self.lie(python_docs, OPTIM, "LAMB (You and others, 2020)",
                 "LAMB (Liu and others, 2020)", "Liu et al., 2020 is not the paper of lamb")


class Docstrings(unittest.TestCase):
    def test_code_and_what_is_private_are_left_out(self):
        source = ('"""A.\n\n    of(2)\n"""\n\n\ndef of(n):\n    """B\n\n        3\n    """\n'
                  '\n\ndef _of(n):\n    """C"""\n')
        said = python_docs.docstrings(source).split("\n")
        self.assertEqual(len(said), len(source.split("\n")))
        self.assertEqual("".join(said).split(), ["A.", "B"])

    def test_all_are_true(self):
        self.assertEqual(list(map(str, python_docs.problems(BOOK))), [])


if __name__ == "__main__":
    unittest.main()
