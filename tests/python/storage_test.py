"""How the Python package keeps weights and states, with NumPy arrays.

    python storage_test.py [BUILD]
"""

import copy
import pickle
import unittest

from support import expected_of, printed_by  # first: it finds the package

import fusebook
import numpy as np


def gradients(step, arrays):
    """Of one sign, of several orders of magnitude, other ones each step."""
    return [np.asarray(1e-3 * 2.0**(np.arange(each.size) % 7 + step % 3), each.dtype)
            .reshape(each.shape) for each in arrays]


def arrays():
    return [np.linspace(-1, 1, 5000, dtype=np.float32).reshape(50, 100),
            np.ones(10, np.float32)]


class Eightbit(unittest.TestCase):
    def test_the_bytes_of_states(self):
        params = arrays()
        adam = fusebook.Adam(params, lr=0.1)
        adam.use_8bit_states()
        self.assertEqual(adam.memory().states, 0)
        adam.step([np.full_like(each, 0.25) for each in params])
        large, small = adam.state[0], adam.state[1]
        blocks = 20
        # All neighbours are alike, so that each has the code of the largest.
        for name, dtype, code, value in (
                ("exp_avg", np.int8, 127, np.float32(0.1) * np.float32(0.25)),
                ("exp_avg_sq", np.uint8, 254, np.float32(0.001 * 0.0625))):
            state = large[name]
            self.assertEqual(state.dtype, dtype)
            self.assertEqual(state.shape, (5000 + 4 * blocks,))
            whole = state[:19 * 260].reshape(19, 260)
            scales = whole[:, :4].copy().view(np.float32)
            self.assertLess(np.abs(scales / value - 1).max(), 1e-6, name)
            self.assertTrue((whole[:, 4:] == code).all(), name)
            self.assertEqual(len(state[19 * 260:]), 4 + 136)
            self.assertEqual(small[name].dtype, np.float32)
            self.assertEqual(small[name].shape, (10,))
        memory = adam.memory()
        self.assertEqual(memory.params, 4 * 5010)
        steps = 2 * 8
        self.assertEqual(memory.states, 2 * 5000 + 2 * 40 + steps)
        self.assertEqual(memory.scales, 2 * 4 * blocks)
        self.assertEqual(adam.counters.launches, 1)

    def test_steps_stay_near_those_with_whole_states(self):
        ends = []
        for on in (False, True):
            params = arrays()
            adam = fusebook.Adam(params, lr=1e-3)
            adam.use_8bit_states(on, min_8bit_size=5000, state_block_size=64)
            for step in range(20):
                adam.step(gradients(step, params))
            ends.append(params)
            self.assertEqual(adam.counters.recompiles, 0)
        moved = arrays()[0] - ends[0][0]
        self.assertGreater(np.abs(moved).min(), 0.015)
        self.assertLess(np.abs(ends[1][0] - ends[0][0]).max(), 0.002)
        self.assertGreater(np.abs(ends[1][0] - ends[0][0]).max(), 0)
        self.assertTrue(np.array_equal(ends[1][1], ends[0][1]))

    def test_going_on_in_bits(self):
        def run(steps, params, start=None, **size):
            opt = fusebook.AdamW(params, lr=1e-2)
            opt.use_8bit_states(min_8bit_size=100, **size)
            if start is not None:
                opt.load_state_dict(start)
            for step in steps:
                opt.step(gradients(step, params))
            return opt

        for size in ({}, {"state_block_size": 32}, {"state_block_size": 2048}):
            whole, first = arrays(), arrays()
            run(range(6), whole, **size)
            saved = run(range(3), first, **size).state_dict()
            after = run(range(3, 6), first, saved, **size)
            for a, b in zip(whole, first, strict=True):
                self.assertTrue(np.array_equal(a, b))
            self.assertEqual(after.state[0]["step"], 6)
            self.assertEqual(after.state[0]["exp_avg"].dtype, np.int8)

    def test_there_and_back(self):
        params = arrays()
        adam = fusebook.Adam(params, lr=1e-3)
        adam.step(gradients(0, params))
        whole = adam.state[0]["exp_avg"].copy()
        adam.use_8bit_states()
        adam.step(gradients(0, params))
        self.assertEqual(adam.state[0]["exp_avg"].dtype, np.int8)
        self.assertEqual(adam.state[0]["step"], 2)
        adam.use_8bit_states(False)
        adam.step(gradients(0, params))
        state = adam.state[0]["exp_avg"]
        self.assertEqual(state.dtype, np.float32)
        expected = whole * (1 - 0.9**3) / (1 - 0.9)
        self.assertLess(np.abs(state / expected - 1).max(), 0.05)
        # What was loaded is shown as the next step keeps it.
        coded = fusebook.Adam(arrays(), lr=1e-3)
        coded.use_8bit_states()
        coded.load_state_dict(adam.state_dict())
        self.assertTrue(np.array_equal(coded.state[0]["exp_avg"], state))
        coded.step(gradients(0, params))
        self.assertEqual(coded.state[0]["exp_avg"].dtype, np.int8)

    def test_a_parameter_without_a_gradient_is_converted_later(self):
        params = arrays()
        adam = fusebook.Adam(params)
        adam.step(gradients(0, params))
        adam.use_8bit_states(min_8bit_size=0)
        grads = gradients(1, params)
        adam.step([None, grads[1]])
        self.assertEqual(adam.state[0]["exp_avg"].dtype, np.float32)
        self.assertEqual(adam.state[1]["exp_avg"].dtype, np.int8)
        adam.step([grads[0], None])
        self.assertEqual(adam.state[0]["exp_avg"].dtype, np.int8)

    def test_groups_of_their_own(self):
        params = arrays()
        adam = fusebook.Adam([{"params": [params[0]], "states_8bit": True},
                              {"params": [params[1]]}])
        adam.use_8bit_states(False)
        adam.param_groups[1]["states_8bit"] = np.True_
        adam.param_groups[1]["min_8bit_size"] = np.int64(1)
        adam.step(gradients(0, params))
        self.assertEqual(adam.state[0]["exp_avg"].dtype, np.float32)
        self.assertEqual(adam.state[1]["exp_avg"].dtype, np.int8)
        del adam.param_groups[1]["states_8bit"]
        adam.step(gradients(0, params))
        self.assertEqual(adam.state[1]["exp_avg"].dtype, np.float32)


    def test_what_the_page_shows(self):
        self.assertEqual(printed_by("fewer_bytes.py"), expected_of("fewer_bytes.py"))


class Masters(unittest.TestCase):
    def run_small_steps(self, prepare, steps, start=None):
        x = np.ones(100, np.float16)
        sgd = fusebook.SGD([x], lr=2.0**-14, momentum=0.5)
        prepare(sgd)
        if start is not None:
            x[:], state = start
            sgd.load_state_dict(state)
        for _ in range(steps):
            sgd.step([np.full(100, -1, np.float16)])
        return x, sgd

    def test_small_updates_add_up(self):
        x, sgd = self.run_small_steps(lambda opt: None, 20)
        self.assertTrue((x == 1).all())
        x, sgd = self.run_small_steps(lambda opt: opt.use_master_weights(), 20)
        buffer, expected = 0.0, 1.0
        for _ in range(20):
            buffer = 0.5 * buffer + 1
            expected += 2.0**-14 * buffer
        master = sgd.state[0]["master_param"]
        self.assertEqual(master.dtype, np.float32)
        self.assertLess(np.abs(master - expected).max(), 1e-6)
        self.assertTrue(np.array_equal(x, master.astype(np.float16)))
        self.assertGreater(x[0], 1)

    def test_going_on_in_bits(self):
        def on(opt):
            opt.use_master_weights()

        whole, _ = self.run_small_steps(on, 21)
        x, sgd = self.run_small_steps(on, 10)
        saved = sgd.state_dict()
        self.assertEqual(saved["param_groups"][0]["master_weights"], True)
        # The state dict says that there are masters, whatever is switched on.
        for prepare in (on, lambda opt: None):
            y, after = self.run_small_steps(prepare, 11, (x, saved))
            self.assertTrue(np.array_equal(whole, y))
            self.assertEqual(after.param_groups[0]["master_weights"], True)

    def test_only_bfloat16_has_halves(self):
        for switch in ("use_split_masters", "use_stochastic_rounding"):
            with self.assertRaisesRegex(fusebook.Error, "float16"):
                self.run_small_steps(lambda opt, name=switch: getattr(opt, name)(), 1)


class Opmath(unittest.TestCase):
    def test_one_rounding_of_what_is_stored(self):
        for on in (True, False):
            x = np.linspace(-1, 1, 100).astype(np.float16)
            wide = x.astype(np.float32)
            buffer = np.zeros(100, np.float32)
            sgd = fusebook.SGD([{"params": [x], "opmath": on}], lr=0.1, momentum=0.9)
            differs = False
            for number in range(5):
                grad = np.cos(np.arange(100) + number).astype(np.float16)
                sgd.step([grad])
                exact = np.float32(0.9) * buffer if number else buffer
                exact = exact + grad.astype(np.float32)
                wide = (wide + exact * np.float32(-0.1)).astype(np.float16)
                wide = wide.astype(np.float32)
                buffer = exact.astype(np.float16).astype(np.float32)
                differs = differs or not np.array_equal(x.astype(np.float32), wide)
            self.assertEqual(differs, not on)
            self.assertEqual(sgd.state[0]["momentum_buffer"].dtype, np.float16)
            saved = sgd.state_dict()["param_groups"][0]
            self.assertEqual(saved.get("opmath", False), on)

    def test_what_says_nothing_of_it_leaves_it(self):
        def make(**options):
            return fusebook.SGD([{"params": [np.ones(3, np.float16)], **options}], lr=0.1)

        opt = make(opmath=True)
        opt.load_state_dict(make(states_8bit=True).state_dict())
        self.assertTrue(opt.param_groups[0]["opmath"])
        opt = make(master_weights=True)
        opt.load_state_dict(make(opmath=True).state_dict())
        self.assertTrue(opt.param_groups[0]["opmath"])
        self.assertTrue(opt.param_groups[0]["master_weights"])

    def test_only_true_and_false(self):
        with self.assertRaisesRegex(fusebook.Error, "opmath must be True or False"):
            fusebook.SGD([{"params": [np.ones(3, np.float16)], "opmath": 1}], lr=0.1)


class Loading(unittest.TestCase):
    def test_into_an_optimizer_that_has_stepped_in_another_way(self):
        switches = (lambda opt: None, lambda opt: opt.use_8bit_states(),
                    lambda opt: opt.use_8bit_states(state_block_size=32))
        for first in switches:
            saved_params = arrays()
            saved = fusebook.Adam(saved_params)
            first(saved)
            for number in range(3):
                saved.step(gradients(number, saved_params))
            at_save = [each.copy() for each in saved_params]
            state = copy.deepcopy(saved.state_dict())
            saved.step(gradients(3, saved_params))
            for second in switches:
                params = arrays()
                opt = fusebook.Adam(params)
                second(opt)
                opt.step(gradients(9, params))
                if first is switches[0]:
                    opt.use_8bit_states(False)  # the file says nothing of it
                opt.load_state_dict(state)
                for a, b in zip(params, at_save, strict=True):
                    a[:] = b
                opt.step(gradients(3, params))
                for a, b in zip(params, saved_params, strict=True):
                    self.assertTrue(np.array_equal(a, b))
                self.assertEqual(opt.state[0]["exp_avg"].dtype,
                                 saved.state[0]["exp_avg"].dtype)

    def test_the_file_says_how_states_are_kept(self):
        params = arrays()
        saved = fusebook.Adam(params)
        saved.use_8bit_states(state_block_size=64)
        saved.step(gradients(0, params))
        opt = fusebook.Adam(arrays())
        opt.use_master_weights()
        opt.use_8bit_states(min_8bit_size=7)
        opt.load_state_dict(saved.state_dict())
        group = opt.param_groups[0]
        self.assertEqual(group["state_block_size"], 64)
        self.assertEqual(group["min_8bit_size"], 4096)
        self.assertTrue(group["master_weights"])
        # One way to keep weights goes before another, so that they are not mixed.
        masters = fusebook.Adam(arrays())
        masters.use_master_weights()
        opt = fusebook.Adam(arrays())
        opt.use_split_masters()
        opt.use_8bit_states()
        opt.load_state_dict(masters.state_dict())
        group = opt.param_groups[0]
        self.assertTrue(group["master_weights"])
        self.assertNotIn("split_masters", group)
        self.assertTrue(group["states_8bit"])

    def test_copies(self):
        for switch in (lambda opt: None, lambda opt: opt.use_8bit_states()):
            params = arrays()
            adam = fusebook.Adam(params, lr=1e-2)
            switch(adam)
            adam.step(gradients(0, params))
            for twin in (copy.deepcopy(adam), pickle.loads(pickle.dumps(adam))):
                self.assertIsInstance(twin, fusebook.Adam)
                own = twin.param_groups[0]["params"]
                self.assertTrue(np.array_equal(own[0], params[0]))
                twin.step(gradients(1, own))
                self.assertEqual(twin.state[0]["step"], 2)
                self.assertEqual(adam.state[0]["step"], 1)
                again = arrays()
                third = fusebook.Adam(again, lr=1e-2)
                switch(third)
                for number in range(2):
                    third.step(gradients(number, again))
                for a, b in zip(own, again, strict=True):
                    self.assertTrue(np.array_equal(a, b))

    def test_a_copy_between_a_switch_and_its_step(self):
        params = arrays()
        adam = fusebook.Adam(params)
        adam.use_8bit_states(state_block_size=64)
        adam.step(gradients(0, params))
        adam.use_8bit_states(state_block_size=32)
        twin = copy.deepcopy(adam)
        for name in ("exp_avg", "exp_avg_sq"):
            self.assertTrue(np.array_equal(twin.state[0][name], adam.state[0][name]))
        own = twin.param_groups[0]["params"]
        adam.step(gradients(1, params))
        twin.step(gradients(1, own))
        self.assertEqual(twin.state[0]["exp_avg"].shape, (5000 + 4 * 157,))
        self.assertTrue(np.array_equal(own[0], params[0]))

    def test_states_that_are_made_later_are_shown(self):
        x = np.ones(3)
        sgd = fusebook.SGD([x], lr=0.1)
        sgd.step([np.ones(3)])
        self.assertNotIn("momentum_buffer", sgd.state[0])
        sgd.param_groups[0]["momentum"] = 0.5
        sgd.step([np.ones(3)])
        self.assertEqual(list(sgd.state[0]["momentum_buffer"]), [1] * 3)

    def test_memory_of_groups_as_they_are_now(self):
        adam = fusebook.Adam([np.zeros(10)])
        adam.add_param_group({"params": [np.zeros(5)]})
        self.assertEqual(str(adam.memory()), "Memory(params=120, states=0, scales=0)")
        adam.param_groups.pop()
        self.assertEqual(adam.memory().params, 80)


class Errors(unittest.TestCase):
    def test_what_cannot_be_leaves_everything_as_it_was(self):
        params = arrays()
        adam = fusebook.Adam([{"params": [each]} for each in params])
        adam.use_8bit_states(state_block_size=64)
        for text, options in (
                ("Adam: state_block_size must be a power of two from 32 to 2048, but is 100", {"state_block_size": 100}),
                ("must not be negative, but is -1", {"min_8bit_size": -1}),
                ("Adam: min_8bit_size must be an integer, but is 0.5",
                 {"min_8bit_size": 0.5}),
                ("Adam: min_8bit_size must be an integer, but is True",
                 {"min_8bit_size": True}),
                ("Adam: states_8bit must be True or False, but is 1", {"on": 1})):
            with self.assertRaisesRegex(fusebook.Error, text):
                adam.use_8bit_states(**options)
            for group in adam.param_groups:
                self.assertEqual(group["state_block_size"], 64)
                self.assertEqual(group["states_8bit"], True)
        with self.assertRaisesRegex(fusebook.Error, "from 0 to 4294967295, but is -1"):
            adam.use_stochastic_rounding(seed=-1)
        self.assertNotIn("rounding_seed", adam.param_groups[0])
        adam.step(gradients(0, params))
        self.assertEqual(adam.state[0]["exp_avg"].shape, (5000 + 4 * 79,))

    def test_states_that_do_not_fit(self):
        params = arrays()
        adam = fusebook.Adam(params)
        adam.use_8bit_states()
        adam.step(gradients(0, params))
        good = adam.state_dict()
        state = good["state"][0]
        for text, name, bad in (
                ("5079 bytes, but the scales and codes of 5000 elements, in blocks of "
                 "256, take 5080", "exp_avg", state["exp_avg"][1:]),
                ("contiguous one-dim", "exp_avg", state["exp_avg"].reshape(2, -1)),
                ("contiguous one-dim", "exp_avg", state["exp_avg"][::2]),
                # Codes with a sign, and without one.
                ("must have .* and block8", "exp_avg", state["exp_avg_sq"]),
                ("must have .* and ublock8", "exp_avg_sq", state["exp_avg"]),
                ("\"exp_avg\" of parameter 0 .ndarray.: .* other order", "exp_avg",
                 np.zeros((50, 100), ">f4")),
                ("\"step\" of parameter 0 .ndarray.: .*dtype int8", "step", np.int8([1]))):
            with self.assertRaisesRegex(fusebook.Error, text):
                adam.load_state_dict({**good, "state": {**good["state"],
                                                        0: {**state, name: bad}}})
            self.assertEqual(adam.state[0]["step"], 1)
            self.assertEqual(adam.state[1]["step"], 1)
        adam.load_state_dict(good)
        adam.step(gradients(1, params))
        self.assertEqual(adam.state[0]["step"], 2)


if __name__ == "__main__":
    unittest.main()
