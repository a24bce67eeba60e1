"""numbers.py: which numbers a text holds, and what they are worth."""

import unittest

from fusebook_docs import numbers


class Bare(unittest.TestCase):
    def found(self, text):
        return [found.text for found in numbers.bare(text)]

    def test_digits(self):
        self.assertEqual(self.found("28 bytes, 2.77x in 4,096 and 1e-08."),
                         ["28", "2.77x", "4,096", "1e-08"])
        self.assertEqual(self.found("1/12 of 2^31, 5% or -3"),
                         ["1/12", "2^31", "5%", "3"])

    def test_words_from_two_up(self):
        self.assertEqual(self.found("Eight passes and\ntwo hundred copies"),
                         ["Eight", "two hundred"])
        self.assertEqual(self.found("a thousand, twenty-one, a dozen"),
                         ["a thousand", "twenty-one", "a dozen"])

    def test_one_before_a_unit(self):
        self.assertEqual(self.found("one microsecond, half a second, one by "
                                    "one"), ["one microsecond", "half a second"])

    def test_factors(self):
        self.assertEqual(self.found("twice as fast, half the bytes, tenfold"),
                         ["twice as", "half the bytes", "tenfold"])
        self.assertEqual(self.found("dozens of lists, thousands of threads"),
                         ["dozens", "thousands"])

    def test_what_counts_nothing(self):
        for text in ("one of them", "The two meet", "the\ntwo", "float32",
                     "PyTorch 2.7", "C++20", "a 0-d tensor", "16-bit", "x86",
                     "32 bits", "zero", "another one", "twice", "a third",
                     "the other half", "unfolds", "someone", "often", "weight"):
            with self.subTest(text):
                self.assertEqual(self.found(text), [])


class Worth(unittest.TestCase):
    def test_worth(self):
        for text, value in (("28 bytes", 28), ("a thousand", 1000),
                            ("Twelve", 12), ("twenty-one", 21),
                            ("two hundred thousand", 200000),
                            ("three million", 3e6), ("-0.01", -0.01),
                            ("1e-08", 1e-8), ("4,096", 4096), ("2.77x", 2.77)):
            with self.subTest(text):
                self.assertEqual(numbers.worth(text)[0], value)
        self.assertIsNone(numbers.worth("none at all"))

    def test_rounded_to_its_own_digits(self):
        self.assertTrue(numbers.says("0.002", 0.002147))
        self.assertTrue(numbers.says("about 0.1", 0.0996))
        self.assertFalse(numbers.says("0.003", 0.002147))
        self.assertFalse(numbers.says("two", 2.4))
        self.assertFalse(numbers.says("8", 8.1))


if __name__ == "__main__":
    unittest.main()
