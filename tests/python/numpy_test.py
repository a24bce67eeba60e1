"""The Python package with NumPy arrays.

    python numpy_test.py [BUILD]
"""

import ast
import copy
import gc
import math
import pathlib
import pickle
import unittest
import weakref

from support import expected_of, printed_by  # first: it finds the package

import fusebook
import numpy as np
from fusebook import _core, ops


def adam_by_hand(param, grads, lr=0.1, betas=(0.9, 0.999), eps=1e-8):
    """The numbers of one element after each of the gradients."""
    mean = square = 0.0
    values = []
    for step, grad in enumerate(grads, 1):
        mean = betas[0] * mean + (1 - betas[0]) * grad
        square = betas[1] * square + (1 - betas[1]) * grad * grad
        root = math.sqrt(square) / math.sqrt(1 - betas[1]**step) + eps
        param -= lr / (1 - betas[0]**step) * mean / root
        values.append(param)
    return values


class Steps(unittest.TestCase):
    def test_adam_in_place_with_new_gradients(self):
        params = [np.array([1.0, -2.0]), np.full((2, 3), 0.5)]
        places = [each.__array_interface__["data"] for each in params]
        adam = fusebook.Adam(params, lr=0.1)
        grads = [0.5, -1.0, 0.25, 2.0, 0.125, -0.5, 1.0, 1.5]
        for step, grad in enumerate(grads):
            adam.step([np.full_like(each, grad) for each in params])
            for param, start in ((params[0][0], 1.0), (params[0][1], -2.0),
                                 (params[1][1, 2], 0.5)):
                self.assertAlmostEqual(param, adam_by_hand(start, grads)[step],
                                       delta=1e-15)
        self.assertEqual([each.__array_interface__["data"] for each in params],
                         places)
        self.assertEqual(adam.counters.launches, len(grads))
        self.assertEqual(adam.counters.compilations, 1)
        self.assertEqual(adam.recompile_reports, [])
        self.assertIn("1 launch", adam.report())
        self.assertNotIn(".h", adam.report())

    def test_the_rate_may_move(self):
        x = np.zeros(3)
        sgd = fusebook.SGD([x], lr=1.0)
        for lr in (1.0, 0.5, 0.25, 2.0):
            sgd.param_groups[0]["lr"] = lr
            sgd.step([np.ones(3)])
        self.assertEqual(list(x), [-3.75] * 3)
        self.assertEqual(sgd.counters.recompiles, 0)

    def test_why_it_was_compiled_again(self):
        x = np.zeros(3)
        sgd = fusebook.SGD([x], lr=1.0)
        for weight_decay in (0, 0.5):
            sgd.param_groups[0]["weight_decay"] = weight_decay
            sgd.step([np.ones(3)])
        self.assertEqual(list(x), [-1.5] * 3)
        self.assertEqual(sgd.counters.recompiles, 1)
        reason, = sgd.recompile_reports
        self.assertIn('param_groups[0]["weight_decay"] was 0 and is 0.5', reason)
        self.assertNotIn(".h", reason)

    def test_groups(self):
        a, b, c = np.zeros(2), np.zeros(2), np.zeros(2)
        sgd = fusebook.SGD([{"params": [a], "lr": 2.0}, {"params": b}], lr=1.0)
        sgd.step([np.ones(2), None])
        sgd.add_param_group({"params": [c], "lr": 4.0})
        sgd.step([np.ones(2)] * 3)
        self.assertEqual([a[0], b[0], c[0]], [-4, -1, -4])

    def test_strides_dtypes_and_empty_arrays(self):
        for dtype in (np.float32, np.float64, np.float16):
            whole = np.zeros((4, 6), dtype)
            part = whole[1:3, ::2]
            none = np.zeros(0, dtype)
            sgd = fusebook.SGD([part, none], lr=0.5)
            # Another order, another dtype, an array that may only be read.
            for grad in (np.ones((3, 2), dtype).T, np.ones((2, 3)),
                         np.broadcast_to(dtype(1), (2, 3))):
                sgd.step([grad, none])
            expected = np.zeros((4, 6), dtype)
            expected[1:3, ::2] = -1.5
            self.assertTrue(np.array_equal(whole, expected), dtype)

    def test_all_optimizers_step(self):
        for name in ("ASGD", "AdEMAMix", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW",
                     "Adamax", "LAMB", "LARS", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"):
            x = np.ones(5)
            opt = getattr(fusebook, name)([x])
            for _ in range(3):
                opt.step([np.ones(5)])
            self.assertTrue((x < 1).all(), name)
            self.assertEqual(opt.counters.launches, 3, name)
            self.assertIsInstance(opt, fusebook.Optimizer)

    def test_lamb_and_lars_scale_each_tensor_by_its_norm(self):
        start, grad = np.array([3.0, 4.0]), np.array([0.5, -2.0])
        # In the first step the averages are the gradient itself.
        towards = grad / (np.abs(grad) + 1e-6) + 0.1 * start
        lamb = start - 0.2 * 5 / np.linalg.norm(towards) * towards
        ratio = 0.01 * 5 / (np.linalg.norm(grad) + 0.1 * 5)
        buffer = ratio * (grad + 0.1 * start)
        first = start - 0.2 * buffer
        ratio = 0.01 * np.linalg.norm(first) / (
            np.linalg.norm(grad) + 0.1 * np.linalg.norm(first))
        second = first - 0.2 * (0.5 * buffer + ratio * (grad + 0.1 * first))
        for opt, steps, expected in (
                (lambda x: fusebook.LAMB([x, np.ones(7)], lr=0.2, weight_decay=0.1),
                 1, lamb),
                (lambda x: fusebook.LARS(
                    [x, np.ones(7)], lr=0.2, momentum=0.5, weight_decay=0.1,
                    trust_coefficient=0.01, eps=0.0), 2, second)):
            x = start.copy()
            own = opt(x)
            for _ in range(steps):
                own.step([grad, np.ones(7)])
            self.assertLess(np.abs(x - expected).max(), 1e-14)
            self.assertEqual(own.counters.launches, steps)

    def test_ademamix_adds_a_slow_average_that_grows_into_place(self):
        betas, grads = (0.5, 0.75, 0.875), (0.5, -2.0, 1.0, 0.25)
        for options in ({}, {"t_alpha": 3, "t_beta3": 3}):
            x = np.array([3.0])
            own = fusebook.AdEMAMix([x], 0.1, betas, 2.0, weight_decay=0.25,
                                    eps=1e-3, **options)
            expected, fast, slow, square = 3.0, 0.0, 0.0, 0.0
            for t, grad in enumerate(grads, 1):
                own.step([np.array([grad])])
                share = min(t / 3, 1) if options else 1
                # Steps until half is forgotten, in a straight line.
                half = [np.log(0.5) / np.log(beta) for beta in (betas[0], betas[2])]
                slow_beta = 0.5 ** (1 / ((1 - share) * half[0] + share * half[1]))
                fast = betas[0] * fast + (1 - betas[0]) * grad
                slow = slow_beta * slow + (1 - slow_beta) * grad
                square = betas[1] * square + (1 - betas[1]) * grad**2
                mean = fast / (1 - betas[0]**t) + 2.0 * share * slow
                root = np.sqrt(square / (1 - betas[1]**t))
                expected -= 0.1 * (mean / (root + 1e-3) + 0.25 * expected)
                self.assertLess(abs(x[0] - expected), 1e-13)
            self.assertEqual(own.counters.launches, len(grads))
        with self.assertRaisesRegex(fusebook.Error, "not three numbers"):
            fusebook.AdEMAMix([np.ones(1)], betas=(0.9, 0.999))

    def test_adafactor_averages_rows_and_columns(self):
        start = np.array([[3.0, 4.0, 1.0], [0.5, -1.0, 2.0]])
        grad = np.array([[0.5, -2.0, 1.0], [0.25, 1.0, -1.5]])
        # In the first step the averages are the means themselves.
        rows = (grad**2).mean(1, keepdims=True)
        columns = (grad**2).mean(0, keepdims=True)
        update = grad / np.sqrt(rows * columns / rows.mean())
        rms = [np.sqrt((each**2).mean()) for each in (start, update)]
        expected = start - 0.5 * rms[0] / max(1, rms[1]) * update
        for eps in ((None, 1e-3), (1e-30, 1e-3)):
            x = start.copy()
            own = fusebook.Adafactor([x], lr=0.5, eps=eps)
            own.step([grad])
            self.assertLess(np.abs(x - expected).max(), 1e-14)
            self.assertEqual(own.counters.launches, 4)
            self.assertLess(np.abs(own.state[0]["row_var"] - rows).max(), 1e-15)
            self.assertEqual(own.state[0]["col_var"].shape, (1, 3))
        with self.assertRaisesRegex(fusebook.Error, "eps is 1e-08, not two numbers"):
            fusebook.Adafactor([start], eps=1e-8)

    def test_what_the_page_shows(self):
        self.assertEqual(printed_by("training.py"), expected_of("training.py"))


class State(unittest.TestCase):
    def test_going_on_from_a_saved_state(self):
        def run(steps, x, start=None):
            opt = fusebook.Adam([x], lr=0.1, amsgrad=True)
            if start is not None:
                opt.load_state_dict(start)
            for k in steps:
                opt.step([np.full(3, 1.0 + k)])
            return opt

        whole, first = np.zeros(3), np.zeros(3)
        run(range(6), whole)
        saved = run(range(3), first).state_dict()
        second = first.copy()
        after = run(range(3, 6), second, saved)
        self.assertTrue(np.array_equal(whole, second))
        self.assertEqual(after.state_dict()["state"][0]["step"], 6)
        # What was saved from is not written: states are copied.
        self.assertEqual(saved["state"][0]["step"], 3)

    def test_going_on_from_the_momentum_of_another_library(self):
        x = np.zeros(2)
        opt = fusebook.SGD([x], lr=1.0, momentum=0.5, dampening=0.25)
        start = opt.state_dict()
        start["state"] = {0: {"momentum_buffer": np.full(2, 4.0)}}
        opt.load_state_dict(start)
        opt.step([np.ones(2)])
        self.assertEqual(list(x), [-2.75] * 2)

    def test_states_are_shown_and_not_copied(self):
        opt = fusebook.SGD([np.zeros(2)], lr=1.0, momentum=0.5)
        opt.step([np.ones(2)])
        shown = opt.state_dict()["state"][0]["momentum_buffer"]
        opt.step([np.ones(2)])
        self.assertEqual(list(shown), [1.5, 1.5])

    def test_what_is_removed_from_the_state_begins_anew(self):
        def removed(opt):
            del opt.state[1]

        def emptied(opt):
            opt.state.clear()

        def replaced(opt):
            opt.state = {0: {}, 1: {}}

        # Steps of 1 and 1.5, then of 1 if the momentum begins anew, else of 1.75.
        for change, first in ((removed, -4.25), (emptied, -3.5), (replaced, -3.5)):
            arrays = np.zeros(2), np.zeros(3)
            opt = fusebook.SGD(arrays, lr=1.0, momentum=0.5)
            for _ in range(2):
                opt.step([np.ones(2), np.ones(3)])
            change(opt)
            opt.step([np.ones(2), np.ones(3)])
            self.assertEqual([list(each) for each in arrays],
                             [[first] * 2, [-3.5] * 3], change)
            self.assertEqual(list(opt.state[1]["momentum_buffer"]), [1.0] * 3)
            self.assertEqual(opt.memory().states, 8 * (2 + 3 + 4))

    def test_what_is_replaced_in_the_state_is_taken(self):
        def emptied(opt):
            opt.state[1] = {}

        def zeroed(opt):
            opt.state[1]["momentum_buffer"] = np.zeros(3)

        def doubled(opt):
            opt.state[1]["momentum_buffer"] = 2 * opt.state[1]["momentum_buffer"]

        # The momentum is 1.5 after two steps; half of it is added to the third.
        for change, last in ((emptied, -3.5), (zeroed, -3.5), (doubled, -5.0)):
            arrays = np.zeros(2), np.zeros(3)
            opt = fusebook.SGD(arrays, lr=1.0, momentum=0.5)
            for _ in range(2):
                opt.step([np.ones(2), np.ones(3)])
            change(opt)
            opt.state[1]["of_others"] = "theirs"
            opt.step([np.ones(2), np.ones(3)])
            self.assertEqual([list(each) for each in arrays],
                             [[-4.25] * 2, [last] * 3], change)
            self.assertEqual(opt.state[1]["of_others"], "theirs")
            self.assertEqual(list(opt.state[1]["momentum_buffer"]), [-2.5 - last] * 3)

    def test_what_others_put_beside_a_state_is_theirs(self):
        array = np.zeros(2)
        opt = fusebook.SGD([array], lr=1.0, momentum=0.5)
        opt.step([np.ones(2)])
        shown = opt.state[0]["momentum_buffer"]
        opt.state[0]["count"] = 1
        for _ in range(3):
            opt.state[0]["count"] += 1
            opt.step([np.ones(2)])
            # Nothing was taken anew.
            self.assertIs(opt.state[0]["momentum_buffer"], shown)
        self.assertEqual(opt.state[0]["count"], 4)
        self.assertEqual(list(array), [-1 - 1.5 - 1.75 - 1.875] * 2)

    def test_a_state_is_seen_after_another_came(self):
        arrays = np.zeros(2), np.zeros(3)
        opt = fusebook.SGD(arrays, lr=1.0, momentum=0.5)
        opt.step([np.ones(2), None])
        opt.state[0] = dict(opt.state[0], count=1)
        opt.step([np.ones(2), np.ones(3)])  # which makes a state for the second
        shown = opt.state[0]["momentum_buffer"]
        opt.state[0]["count"] += 1
        opt.step([np.ones(2), np.ones(3)])
        self.assertIs(opt.state[0]["momentum_buffer"], shown)
        opt.state[0]["momentum_buffer"] = np.zeros(2)
        opt.step([np.ones(2), np.ones(3)])
        self.assertEqual(list(arrays[0]), [-1 - 1.5 - 1.75 - 1] * 2)
        self.assertEqual(list(arrays[1]), [-1 - 1.5 - 1.75] * 3)
        self.assertEqual(opt.state[0]["count"], 2)

    def test_what_others_keep_goes_along_with_its_array(self):
        a, b = np.zeros(2), np.zeros(3)
        opt = fusebook.SGD([a, b], lr=1.0, momentum=0.5)
        opt.step([np.ones(2), np.ones(3)])
        opt.state[1]["count"] = 5
        opt.param_groups[0]["params"] = [b]
        opt.step([np.ones(3)])
        self.assertEqual(list(opt.state), [0])
        self.assertEqual(opt.state[0]["count"], 5)
        self.assertEqual(list(b), [-2.5] * 3)

    def test_what_others_keep_is_in_state_dicts_and_copies(self):
        opt = fusebook.Adam([np.zeros(2)], lr=0.5)
        opt.step([np.ones(2)])
        opt.state[0]["slow"] = np.full(2, 3.0)
        loaded = fusebook.Adam([opt.param_groups[0]["params"][0].copy()], lr=1.0)
        loaded.load_state_dict(opt.state_dict())
        copies = loaded, copy.deepcopy(opt), pickle.loads(pickle.dumps(opt))
        for each in (opt, *copies):
            each.step([np.full(2, 2.0)])
            self.assertEqual(list(each.param_groups[0]["params"][0]),
                             list(opt.param_groups[0]["params"][0]))
            self.assertEqual(list(each.state[0]), list(opt.state[0]))
            self.assertEqual(list(each.state[0]["slow"]), [3.0] * 2)
        for each in copies:
            self.assertIsNot(each.state[0]["slow"], opt.state[0]["slow"])

    def test_what_others_keep_of_arrays_that_were_never_stepped(self):
        opt = fusebook.Adam([np.zeros(2), np.zeros(3)], lr=0.5)
        opt.step([np.ones(2), None])
        shared = np.zeros(1)
        for i in range(2):
            opt.state.setdefault(i, {})["slow"] = shared
        loaded = fusebook.Adam([np.zeros(2), np.zeros(3)])
        loaded.load_state_dict(opt.state_dict())
        copied, with_it = copy.deepcopy((opt, shared))
        self.assertIs(copied.state[1]["slow"], with_it)
        for each in loaded, copied, pickle.loads(pickle.dumps(opt)):
            self.assertEqual([list(state) for state in each.state.values()],
                             [["exp_avg", "exp_avg_sq", "step", "slow"], ["slow"]])
            self.assertIs(each.state[0]["slow"], each.state[1]["slow"])
            self.assertIsNot(each.state[0]["slow"], shared)
            each.step([np.ones(2), np.ones(3)])
            self.assertEqual([int(state["step"]) for state in each.state.values()], [2, 1])

    def test_all_names_of_states_are_known(self):
        shown = set()
        for name, options in (("Adadelta", {}), ("Adafactor", {}), ("Adagrad", {}),
                              ("Adam", {"amsgrad": True}), ("AdamW", {"amsgrad": True}),
                              ("Adamax", {}), ("AdEMAMix", {}), ("ASGD", {}), ("LAMB", {}),
                              ("LARS", {"momentum": 0.5}), ("NAdam", {}), ("RAdam", {}),
                              ("RMSprop", {"momentum": 0.5, "centered": True}),
                              ("Rprop", {}), ("SGD", {"momentum": 0.5})):
            for shape in (2,), (2, 2):
                opt = getattr(fusebook, name)([np.zeros(shape)], **options)
                opt.step([np.ones(shape)])
                shown.update(opt.state[0])
        self.assertEqual(_core.all_state_names() - shown,
                         {"master_param", "low_half", "rounding_key"})
        self.assertLessEqual(shown, _core.all_state_names())

    def test_states_of_another_class_are_not_what_others_keep(self):
        for theirs, ours in (("RMSprop", "Adam"), ("Adadelta", "RMSprop"),
                             ("NAdam", "Adam"), ("Adam", "SGD"), ("Adafactor", "Adam")):
            opt = getattr(fusebook, theirs)([np.zeros((2, 2))])
            opt.step([np.ones((2, 2))])
            own = getattr(fusebook, ours)([np.zeros((2, 2))])
            own.step([np.ones((2, 2))])
            shown = dict(own.state[0])
            with self.assertRaisesRegex(fusebook.Error, " is not a state of "):
                own.load_state_dict({**own.state_dict(), "state": opt.state_dict()["state"]})
            self.assertEqual(own.state[0], shown)

    def test_a_state_that_does_not_fit_is_refused(self):
        array = np.zeros(2)
        opt = fusebook.SGD([array], lr=1.0, momentum=0.5)
        opt.step([np.ones(2)])
        opt.state[0]["momentum_buffer"] = np.zeros(3)
        for _ in range(2):
            with self.assertRaisesRegex(fusebook.Error, "^state: parameter 0: momentum_buffer has shape"):
                opt.step([np.ones(2)])
        self.assertEqual(list(array), [-1.0] * 2)
        opt.state[0]["momentum_buffer"] = np.zeros(2)
        opt.step([np.ones(2)])
        self.assertEqual(list(array), [-2.0] * 2)

    def test_an_array_and_a_state_that_go_at_once(self):
        a, b, c = np.zeros(2), np.zeros(2), np.zeros(2)
        opt = fusebook.SGD([a, b, c], lr=1.0, momentum=0.5)
        opt.step([np.full(2, each) for each in (1.0, 2.0, 3.0)])
        del opt.param_groups[0]["params"][0]
        del opt.state[1]  # of b, which is in place 0 now
        opt.step([np.ones(2), np.ones(2)])
        self.assertEqual([list(each) for each in (a, b, c)],
                         [[-1.0] * 2, [-3.0] * 2, [-5.5] * 2])
        self.assertEqual([list(opt.state[i]["momentum_buffer"]) for i in range(2)],
                         [[1.0] * 2, [2.5] * 2])
        del opt.param_groups[0]["params"][0]
        opt.state = {0: dict(opt.state[1])}  # of c, by its current place
        opt.step([np.ones(2)])
        self.assertEqual(list(c), [-7.75] * 2)

    def test_states_stay_with_arrays_that_get_other_places(self):
        a, b = np.zeros(2), np.zeros(3)
        opt = fusebook.SGD([a, b], lr=1.0, momentum=0.5)
        opt.step([np.ones(2), np.ones(3)])
        del opt.param_groups[0]["params"][0]
        opt.step([np.ones(3)])
        self.assertEqual(list(opt.state), [0])
        self.assertEqual(list(opt.state_dict()["state"][0]["momentum_buffer"]),
                         [1.5] * 3)
        opt.add_param_group({"params": [a]})
        opt.step([np.ones(3), np.ones(2)])
        self.assertEqual([list(a), list(b)], [[-2.0] * 2, [-4.25] * 3])

    def test_what_does_not_fit_changes_nothing(self):
        x = np.zeros(2)
        opt = fusebook.Adam([x])
        opt.step([np.ones(2)])
        good = opt.state_dict()
        bad = {"state": {0: {**good["state"][0], "exp_avg": np.zeros(5)}},
               "param_groups": [{**good["param_groups"][0], "lr": 9.0}]}
        with self.assertRaisesRegex(fusebook.Error, "exp_avg has shape"):
            opt.load_state_dict(bad)
        self.assertEqual(opt.param_groups[0]["lr"], 1e-3)
        self.assertEqual(opt.state_dict()["state"][0]["step"], 1)
        two = fusebook.Adam([np.zeros(2), np.zeros(2)])
        with self.assertRaisesRegex(fusebook.Error, "other sizes"):
            two.load_state_dict(good)

    def test_arrays_live_as_long_as_the_optimizer(self):
        class Array(np.ndarray):  # whose end can be seen
            pass

        x = np.zeros(4).view(Array)
        grad = np.ones(4).view(Array)
        seen, seen_grad = weakref.ref(x), weakref.ref(grad)
        opt = fusebook.Adam([x])
        opt.step([grad])
        del grad
        gc.collect()
        self.assertIsNone(seen_grad())  # a step keeps no gradient
        with self.assertRaises(ValueError):
            x.resize(9)
        del x
        gc.collect()
        self.assertIsNotNone(seen())
        state = opt.state_dict()["state"][0]["exp_avg"]
        del opt
        gc.collect()
        self.assertIsNone(seen())
        self.assertAlmostEqual(state[3], 0.1)  # lives on by itself


class Lender:
    """Another library: its tensor counts how often it was lent and given back."""

    def __init__(self, values, read_only=False):
        self.array = np.array(values)
        self.array.flags.writeable = not read_only
        self.lent = 0

    def __dlpack__(self, **options):
        self.lent += 1
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Dlpack(unittest.TestCase):
    def test_arrays_of_another_library(self):
        lender = Lender([1.0, 2.0])
        sgd = fusebook.SGD([lender], lr=1.0)
        sgd.step([Lender([0.5, 0.5])])
        self.assertEqual(list(lender.array), [0.5, 1.5])
        self.assertEqual(lender.lent, 1)
        seen = weakref.ref(lender.array.base if lender.array.base is not None
                           else lender)
        del sgd, lender
        gc.collect()
        self.assertIsNone(seen())

    def test_memory_that_may_only_be_read(self):
        with self.assertRaisesRegex(Exception, "only be read|readonly|read-only"):
            fusebook.SGD([Lender([1.0], read_only=True)])


class Errors(unittest.TestCase):
    def refused(self, text, call):
        with self.assertRaisesRegex(fusebook.Error, text) as caught:
            call()
        self.assertNotIn("\n", str(caught.exception))

    def test_parameters(self):
        def adam(*params, **options):
            return lambda: fusebook.Adam(list(params), **options)

        frozen = np.zeros(2)
        frozen.flags.writeable = False
        x = np.zeros(3)
        self.refused("empty parameter list", adam())
        self.refused("invalid learning rate: -1", adam(x, lr=-1))
        self.refused("same tensor as parameter 0", adam(x, x))
        self.refused("strides .-1. must not be negative", adam(x[::-1]))
        self.refused("may only be read", adam(frozen))
        self.refused("share memory", adam(np.lib.stride_tricks.as_strided(
            x, (3,), (0,))))
        self.refused("dtype int32 is not supported", adam(np.zeros(2, np.int32)))
        self.refused("other order", adam(np.zeros(2, ">f4")))
        self.refused("it is not an array", adam("x"))
        self.refused("not differentiable", adam(x, differentiable=True))

    def test_gradients_leave_everything_as_it_was(self):
        x = np.zeros(3)
        opt = fusebook.Adam([x], lr=1.0)
        for text, grads in (
                ("shape .2. on cpu, but the parameter has shape .3.", [np.ones(2)]),
                ("expected 1 gradients", []), ("expected 1 gradients", [x, x]),
                ("it is not an array", [[1.0, 2.0, 3.0]]),
                ("dtype int64", [np.ones(3, np.int64)]),
                ("no attribute grad", None)):
            self.refused(text, lambda grads=grads: opt.step(grads))
        self.assertEqual(list(x), [0, 0, 0])
        self.assertEqual(opt.state_dict()["state"], {})
        opt.step([np.ones(3)])
        self.assertEqual(opt.state_dict()["state"][0]["step"], 1)

    def test_options_that_are_no_numbers(self):
        for options, text in (
                ({"lr": "fast"}, "Adam: lr is 'fast', not a number"),
                ({"eps": None}, "Adam: eps is None, not a number"),
                ({"lr": np.ones(2)}, "Adam: lr is array.*, not a number"),
                ({"betas": 0.9}, "Adam: betas is 0.9, not two numbers"),
                ({"betas": (0.9,)}, "Adam: betas is .0.9,., not two numbers"),
                ({"betas": (1.5, 0.9)}, "beta parameter at index 0: 1.5")):
            self.refused(text, lambda options=options: fusebook.Adam(
                [np.zeros(2)], **options))

    def test_numbers_that_are_gone(self):
        x = np.zeros(3)
        opt = fusebook.Adam([x])
        del opt.param_groups[0]["betas"]
        self.refused("no 'betas'", lambda: opt.step([np.ones(3)]))


class Maps(unittest.TestCase):
    def test_values(self):
        a = [np.arange(3.0), np.ones((2, 2))]
        b = [np.ones(3), np.zeros((2, 2))]
        blended = fusebook.foreach_map(lambda p, q: ops.lerp(p, q, 0.25) + 1, a, b)
        self.assertEqual(list(blended[0]), [1.25, 2, 2.75])
        self.assertEqual(blended[1].shape, (2, 2))
        self.assertEqual(list(a[0]), [0, 1, 2])
        twice, roots = fusebook.foreach_map(
            lambda p, s: (p * s, ops.where(p > 0.5, -ops.sqrt(p), 7)), a, 2)
        self.assertEqual(list(twice[0]), [0, 2, 4])
        self.assertEqual(list(roots[0]), [7, -1, -math.sqrt(2)])

    def test_in_place(self):
        a, b = [np.ones(3)], [np.full(3, 2.0)]
        fusebook.foreach_map_(lambda p, q: (p - q, p + q), (a, b))
        self.assertEqual([a[0][0], b[0][0]], [-1, 3])
        fusebook.foreach_map_(lambda p, s: p / s, a, 4)
        self.assertEqual(a[0][0], -0.25)

    def test_numbers_of_the_function_may_change(self):
        a = [np.ones(2)]
        for factor in (2.0, 3.0, 4.0, 5.0):
            got = fusebook.foreach_map(lambda p, f=factor: p * f + (f - 1), a)
            self.assertEqual(got[0][0], 2 * factor - 1)

    def test_what_cannot_be(self):
        a = [np.ones(2)]

        def refused(text, function, *more):
            with self.assertRaisesRegex(fusebook.Error, text):
                fusebook.foreach_map(function, a, *more)

        refused("has no value yet", lambda p: 1.0 if p > 0 else p)
        refused("returns nothing", lambda p: None)
        refused("returned 'x'", lambda p: "x")
        refused("operand 2 has 2 tensors", lambda p, q: p + q, a + a)

        def itself(p):
            return fusebook.foreach_map(itself, a)[0]

        refused("calls foreach_map with itself", itself)
        with self.assertRaises(ZeroDivisionError):
            fusebook.foreach_map(lambda p: p * (1 / 0), a)
        self.assertEqual(fusebook.foreach_map(lambda p: -p, a)[0][0], -1)


class Types(unittest.TestCase):
    def test_the_stub_says_what_there_is(self):
        folder = pathlib.Path(fusebook.__file__).parent
        self.assertTrue((folder / "py.typed").is_file())
        stub = ast.parse((folder / "_core.pyi").read_text())
        told = {each.name: each for each in stub.body if hasattr(each, "name")}
        here = {name for name in vars(fusebook._core) if not name.startswith("_")}
        self.assertEqual(set(told), here)
        for name, each in told.items():
            if name in ("ops", "Error") or not isinstance(each, ast.ClassDef):
                continue
            methods = {part.name for part in each.body if hasattr(part, "name")}
            here = set(vars(getattr(fusebook._core, name)))
            self.assertEqual(methods - here, set(), name)

    def test_all_that_is_offered_is_there(self):
        for name in fusebook.__all__:
            self.assertTrue(hasattr(fusebook, name), name)
        self.assertTrue(callable(ops.sqrt) and callable(ops.where))


if __name__ == "__main__":
    unittest.main()
