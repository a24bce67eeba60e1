"""The Python package with tensors that are lent through DLPack: by the table of
their type, as torch does, or in capsules.

    python exchange_test.py [BUILD]
"""

import gc
import unittest

import support  # noqa: F401  first: it finds the package

import fusebook
import numpy as np
from lender import LENT, Capsules, Tensor


class Table(unittest.TestCase):
    def tearDown(self):
        gc.collect()
        self.assertEqual(len(LENT), 0)

    def test_gradients_are_asked_where_they_are_and_not_borrowed(self):
        params = [Tensor([1.0, 2.0]), Tensor([[3.0]])]
        sgd = fusebook.SGD(params, lr=0.5)
        self.assertEqual(len(LENT), 2)
        for step in range(4):
            for each in params:
                each.grad = Tensor(np.full(each.array.shape, 1.0))
            grads = [each.grad for each in params]
            sgd.step()
            self.assertEqual([each.asked for each in grads], [1, 1])
            self.assertEqual(len(LENT), 2)
            self.assertEqual(list(params[0].array),
                             [0.5 - 0.5 * step, 1.5 - 0.5 * step])
        self.assertEqual(params[1].array[0, 0], 1)
        self.assertEqual(sgd.counters.launches, 4)
        self.assertEqual(sgd.counters.compilations, 1)

    def test_parameters_that_move(self):
        p = Tensor([4.0, 4.0])
        p.grad = Tensor([1.0, 1.0])
        adam = fusebook.SGD([p], lr=1.0, momentum=0.5)
        adam.step()
        old, p.array = p.array, p.array.copy()
        adam.step()
        self.assertEqual([list(old), list(p.array)], [[3, 3], [1.5, 1.5]])
        p.array = np.repeat(p.array, 2)[::2]  # and in strides
        adam.step()
        self.assertEqual(list(p.array), [-0.25, -0.25])
        self.assertEqual(len(LENT), 1)  # the old memory is given back
        asked = p.asked
        adam.step()
        self.assertEqual(p.asked, asked + 1)  # it is where it was

    def test_gradients_of_other_kinds_are_borrowed_for_a_step(self):
        p = Tensor([[1.0, 2.0], [3.0, 4.0]])
        sgd = fusebook.SGD([p], lr=1.0)
        slanted = Tensor([[0.0, 0.0]])
        slanted.array = np.array([[1.0, 2.0], [3.0, 4.0]]).T
        for grad in (slanted, Tensor([[1, 3], [2, 4]], np.float32)):
            before = p.array.copy()
            sgd.step([grad])
            self.assertTrue((before - p.array == [[1, 3], [2, 4]]).all())
            self.assertEqual(len(LENT), 1)

    def test_what_cannot_be_stepped_changes_nothing(self):
        p, q = Tensor([1.0, 1.0]), Tensor([2.0])
        adam = fusebook.Adam([p, q], lr=0.5)
        q.grad = Tensor([1.0])

        def gradient(change):
            p.grad = Tensor([1.0, 1.0])
            change(p.grad)

        def parameter(change):
            p.grad = None
            change(p)

        def freed(tensor):
            tensor.has_memory = False

        def elsewhere(tensor):
            tensor.device = 8

        def resized(tensor):
            tensor.array = np.ones(3)

        def retyped(tensor):
            tensor.array = np.ones(2, np.int64)

        for change, what, text in (
                (freed, gradient, "gradient of parameter 0 has no memory"),
                (elsewhere, gradient, "gradient of parameter 0.*device type 8"),
                (resized, gradient, "gradient of parameter 0 has shape .3."),
                (retyped, gradient, "gradient of parameter 0.*int64"),
                (resized, parameter, "parameter 0 had the shape .2. and now"),
                (retyped, parameter, "parameter 0 was float64.*another dtype"),
                (elsewhere, parameter, "parameter 0 was float64.*another device"),
                (freed, parameter, "parameter 0")):
            array, before = p.array, p.array.copy()
            what(change)
            with self.assertRaisesRegex(fusebook.Error, text) as caught:
                adam.step()
            self.assertNotIn("\n", str(caught.exception))
            p.array, p.device, p.has_memory = array, 1, True
            self.assertTrue((p.array == before).all(), text)
            self.assertEqual(q.array[0], 2)
            self.assertEqual(adam.state_dict()["state"], {})
            self.assertEqual(len(LENT), 2)
        p.grad = Tensor([1.0, 1.0])
        adam.step()
        self.assertEqual(adam.state_dict()["state"][0]["step"], 1)
        self.assertAlmostEqual(p.array[1], 0.5)

    def test_parameters_that_are_refused_are_given_back(self):
        elsewhere = Tensor([1.0])
        elsewhere.device = 8
        for bad in (elsewhere, Tensor([1], np.int32), Tensor([1], np.complex64)):
            with self.assertRaises(fusebook.Error):
                fusebook.Adam([Tensor([1.0]), bad])
            gc.collect()
            self.assertEqual(len(LENT), 0)

    def test_maps(self):
        a = [Tensor([1.0, 2.0]), Tensor([3.0])]
        self.assertEqual(fusebook.foreach_map(lambda p: p + 1, a)[0][1], 3)
        fusebook.foreach_map_(lambda p: -p, a)
        self.assertEqual(a[1].array[0], -3)
        self.assertEqual(len(LENT), 0)


class Leaks(unittest.TestCase):
    def test_every_capsule_is_given_back(self):
        for versioned in (True, False):
            capsules = Capsules()

            def array(values, dtype=np.float64, own=capsules, new=versioned):
                return own.array(values, dtype, versioned=new)

            p = array([1.0, 1.0])
            adam = fusebook.Adam([p], lr=0.5)
            for _ in range(50):
                adam.step([array([1.0, 1.0])])
            for bad in (array([1, 1], np.int64), array([1.0])):
                with self.assertRaises(fusebook.Error):
                    adam.step([bad])
            with self.assertRaises(fusebook.Error):
                fusebook.Adam([array([1.0]), array([1], np.int8)])
            fusebook.foreach_map(lambda p: p + 1, [array([1.0])])
            with self.assertRaises(KeyError):
                fusebook.foreach_map(lambda p: {}['x'], [array([1.0])])
            gc.collect()
            # The parameter is lent, once, as long as the optimizer lives.
            self.assertEqual(capsules.given, 57)
            self.assertEqual(capsules.returned, 56)
            del adam
            gc.collect()
            self.assertEqual(capsules.returned, 57)

    def test_what_was_shown_and_nobody_took(self):
        x = np.zeros(4)
        opt = fusebook.SGD([x], lr=1.0, momentum=0.5)
        opt.step([np.ones(4)])
        array = opt._stepper.states(0)["momentum_buffer"]
        for options in ({}, {"max_version": (1, 0)}, {"copy": True}):
            kept = array.__dlpack__(**options)
            self.assertIn("dltensor", repr(kept))
            del kept
        self.assertEqual(list(np.from_dlpack(array)), [1] * 4)


if __name__ == "__main__":
    unittest.main()
