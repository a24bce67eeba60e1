"""How the Python package keeps weights and states, with torch tensors.

    python torch_storage_test.py [BUILD]
"""

import copy
import io
import pickle
import unittest

import support  # noqa: F401  # first: it finds the package

import fusebook
import torch
from torch.nn import Parameter


def params(dtype):
    torch.manual_seed(1)
    return [Parameter(torch.randn(50, 100).to(dtype)), Parameter(torch.ones(10).to(dtype))]


def step(opt, all_params, number):
    torch.manual_seed(number)
    for each in all_params:
        each.grad = torch.randn(each.shape).to(each.dtype)
    opt.step()


def masters(opt):
    opt.use_master_weights()


def halves(opt):
    opt.use_split_masters()


def bits(opt):
    opt.use_stochastic_rounding(seed=7)


def codes(opt):
    opt.use_8bit_states(min_8bit_size=100, state_block_size=128)


def all_least(opt):
    bits(opt)
    codes(opt)


class Files(unittest.TestCase):
    def test_going_on_in_bits_from_a_file(self):
        for name, lr in (("Adam", 1e-3), ("SGD", 1e-4), ("Adafactor", 1e-3)):
            for switch in (masters, halves, bits, codes, all_least):
                with self.subTest(name=name, switch=switch.__name__):
                    self.go_on(lambda own, n=name, rate=lr: getattr(fusebook, n)(
                        own, lr=rate, **({"momentum": 0.9} if n == "SGD" else {})),
                        switch)

    def go_on(self, make, switch):
        dtype = torch.float32 if switch is codes else torch.bfloat16
        whole = params(dtype)
        opt = make(whole)
        switch(opt)
        for number in range(6):
            step(opt, whole, number)
        first = params(dtype)
        opt = make(first)
        switch(opt)
        for number in range(3):
            step(opt, first, number)
        file = io.BytesIO()
        torch.save({"model": first, "opt": opt.state_dict()}, file)
        file.seek(0)
        found = torch.load(file, weights_only=True)
        second = [Parameter(each.detach().clone()) for each in found["model"]]
        after = make(second)  # what is switched on is in the file
        after.load_state_dict(found["opt"])
        twin = copy.deepcopy(after)
        third = twin.param_groups[0]["params"]
        for number in range(3, 6):
            step(after, second, number)
            step(twin, third, number)
        for a, b, c in zip(whole, second, third, strict=True):
            self.assertTrue(torch.equal(a, b))
            self.assertTrue(torch.equal(a, c))
        self.assertEqual(after.state[second[0]]["step"], 6)


class Masters(unittest.TestCase):
    def test_they_follow_a_run_in_float32(self):
        for switch in (masters, halves):
            small, large = params(torch.bfloat16), params(torch.bfloat16)
            large = [Parameter(each.detach().float()) for each in large]
            opts = fusebook.Adam(small, lr=1e-4), torch.optim.Adam(large, lr=1e-4)
            switch(opts[0])
            for number in range(20):
                torch.manual_seed(number)
                for a, b in zip(small, large, strict=True):
                    a.grad = torch.randn(a.shape).bfloat16()
                    b.grad = a.grad.float()
                opts[0].step()
                opts[1].step()
            state = opts[0].state[small[0]]
            self.assertEqual(state["exp_avg"].dtype, torch.float32)
            if switch is masters:
                self.assertLess((state["master_param"] - large[0]).abs().max(), 1e-7)
                self.assertTrue(torch.equal(small[0], state["master_param"].bfloat16()))
            else:
                self.assertEqual(state["low_half"].dtype, torch.int16)
                joined = ((small[0].detach().view(torch.int16).int() << 16)
                          + state["low_half"].int()).view(torch.float32)
                self.assertLess((joined - large[0]).abs().max(), 1e-7)

    def test_their_memory(self):
        for switch, states in ((masters, 3 * 4), (halves, 2 * 4 + 2), (bits, 2 * 4)):
            all_params = params(torch.bfloat16)
            opt = fusebook.Adam(all_params)
            switch(opt)
            step(opt, all_params, 0)
            memory = opt.memory()
            self.assertEqual(memory.params, 2 * 5010)
            numbers = (2 if switch is bits else 1) * 2 * 8
            self.assertEqual(memory.states, states * 5010 + numbers)
            self.assertEqual(memory.scales, 0)


class Loading(unittest.TestCase):
    def test_states_of_torch_in_8_bits(self):
        ours, theirs = params(torch.float32), params(torch.float32)
        first = torch.optim.AdamW(theirs, lr=1e-3)
        for number in range(5):
            step(first, theirs, number)
        for a, b in zip(ours, theirs, strict=True):
            a.data.copy_(b.data)
        opt = fusebook.AdamW(ours, lr=1e-3)
        opt.use_8bit_states()
        opt.load_state_dict(first.state_dict())
        self.assertTrue(opt.param_groups[0]["states_8bit"])
        start = ours[0].detach().clone()
        for number in range(5, 10):
            step(opt, ours, number)
            step(first, theirs, number)
        self.assertEqual(opt.state[ours[0]]["exp_avg"].dtype, torch.int8)
        self.assertEqual(opt.state[ours[0]]["exp_avg_sq"].dtype, torch.uint8)
        moved = (theirs[0] - start).norm()
        self.assertLess((ours[0] - theirs[0]).norm(), 0.02 * moved)
        self.assertGreater((ours[0] - theirs[0]).norm(), 0)
        self.assertLess((ours[1] - theirs[1]).abs().max(), 1e-7)

    def test_states_in_16_bits_become_float32_beside_masters(self):
        own = params(torch.bfloat16)
        first = torch.optim.Adam(own, lr=1e-3)
        step(first, own, 0)
        before = first.state[own[0]]["exp_avg"].float()
        opt = fusebook.Adam(own, lr=1e-3)
        opt.use_master_weights()
        opt.load_state_dict(first.state_dict())
        self.assertEqual(opt.state[own[0]]["exp_avg"].dtype, torch.float32)
        self.assertTrue(torch.equal(opt.state[own[0]]["exp_avg"], before))
        step(opt, own, 1)
        self.assertTrue(torch.equal(own[0], opt.state[own[0]]["master_param"].bfloat16()))

    def test_what_a_hook_makes_of_it(self):
        own = params(torch.bfloat16)
        opt = fusebook.Adam(own)
        masters(opt)
        step(opt, own, 0)
        saved = copy.deepcopy(opt.state_dict())

        def twice(_, state_dict):
            state = {key: {**each, "master_param": each["master_param"] * 2}
                     for key, each in state_dict["state"].items()}
            return {**state_dict, "state": state}

        opt.register_load_state_dict_pre_hook(twice)
        opt.load_state_dict(saved)
        self.assertTrue(torch.equal(opt.state[own[0]]["master_param"],
                                    saved["state"][0]["master_param"] * 2))
        self.assertEqual(len(opt._optimizer_load_state_dict_pre_hooks), 1)

    def test_what_torch_carried_along_is_made_anew(self):
        for switch in (masters, halves, bits):
            own = params(torch.bfloat16)
            opt = fusebook.Adam(own, lr=1e-2)
            switch(opt)
            step(opt, own, 0)
            between = torch.optim.Adam(own, lr=1e-2)
            between.load_state_dict(copy.deepcopy(opt.state_dict()))
            for number in range(1, 5):
                step(between, own, number)
            weights = own[0].detach().clone()
            after = fusebook.Adam(own, lr=1e-2)
            switch(after)
            after.load_state_dict(copy.deepcopy(between.state_dict()))
            for group in after.param_groups:
                group["lr"] = 0.0
            step(after, own, 5)
            self.assertTrue(torch.equal(own[0], weights), switch.__name__)
            if switch is bits:  # the same seed and number make the same key
                self.assertEqual(after.state[own[0]]["rounding_key"],
                                 opt.state[own[0]]["rounding_key"])

    def test_what_a_hook_replaces_afterwards(self):
        own = params(torch.float32)
        opt = fusebook.Adam(own)
        step(opt, own, 0)
        saved = copy.deepcopy(opt.state_dict())

        def reset(changed):
            changed.state[own[0]]["exp_avg"] = torch.full((50, 100), 0.5)

        opt.register_load_state_dict_post_hook(reset)
        opt.load_state_dict(saved)
        self.assertTrue((opt.state[own[0]]["exp_avg"] == 0.5).all())
        opt.param_groups[0]["betas"] = (1 - 2.0**-20, 0.999)
        step(opt, own, 1)
        self.assertGreater(opt.state[own[0]]["exp_avg"].min(), 0.49)
        self.assertEqual(len(opt._optimizer_load_state_dict_post_hooks), 1)

    def test_another_order_of_memory(self):
        own = [Parameter(torch.ones(4, 16, 16, 8))]
        opt = fusebook.Adam(own, lr=1e-2)
        opt.use_8bit_states()
        step(opt, own, 0)
        self.assertEqual(opt.state[own[0]]["exp_avg"].dtype, torch.int8)
        own[0].data = own[0].data.to(memory_format=torch.channels_last)
        step(opt, own, 1)
        shown = opt.state[own[0]]["exp_avg"]
        self.assertEqual(shown.dtype, torch.float32)
        before = shown.clone()
        step(opt, own, 2)
        self.assertFalse(torch.equal(shown, before))

    def test_copies_under_a_schedule(self):
        own = params(torch.bfloat16)
        opt = fusebook.Adam(own, lr=1e-2)
        all_least(opt)
        torch.optim.lr_scheduler.StepLR(opt, 3)
        opt.register_load_state_dict_pre_hook(lambda *_: self.fail("no load"))
        step(opt, own, 0)
        for twin in (copy.deepcopy(opt), pickle.loads(pickle.dumps(opt))):
            self.assertIsInstance(twin, fusebook.Adam)
            self.assertIsInstance(twin, torch.optim.Optimizer)
            other = twin.param_groups[0]["params"]
            before = other[0].detach().clone()
            step(twin, other, 1)
            self.assertFalse(torch.equal(other[0], before))
            self.assertEqual(twin.state[other[0]]["step"], 2)
            self.assertEqual(opt.state[own[0]]["step"], 1)

    def test_a_switch_before_the_next_step(self):
        for switch in ("use_master_weights", "use_split_masters",
                       "use_stochastic_rounding"):
            own = params(torch.bfloat16)
            opt = fusebook.Adam(own, lr=1e-2)
            getattr(opt, switch)()
            step(opt, own, 0)
            getattr(opt, switch)(False)
            twin = copy.deepcopy(opt)
            step(twin, twin.param_groups[0]["params"], 1)
            opt.load_state_dict(opt.state_dict())
            step(opt, own, 1)
            self.assertTrue(torch.equal(own[0], twin.param_groups[0]["params"][0]))
            self.assertEqual(len(opt.state[own[0]]), 3)

    def test_into_an_optimizer_that_has_stepped_plainly(self):
        for switch in (masters, halves, all_least):
            own, other = params(torch.bfloat16), params(torch.bfloat16)
            saved, opt = fusebook.Adam(own), fusebook.Adam(other)
            switch(saved)
            step(saved, own, 0)
            step(opt, other, 7)
            opt.load_state_dict(copy.deepcopy(saved.state_dict()))
            for a, b in zip(other, own, strict=True):
                a.data.copy_(b.data)
            step(saved, own, 1)
            step(opt, other, 1)
            for a, b in zip(other, own, strict=True):
                self.assertTrue(torch.equal(a, b), switch.__name__)

    def test_another_order_of_keys(self):
        own = params(torch.float32)
        opt = fusebook.Adam(own)
        codes(opt)
        step(opt, own, 0)
        saved = copy.deepcopy(opt.state_dict())
        named = {"state": {f"p{key}": each for key, each in saved["state"].items()},
                 "param_groups": [{**saved["param_groups"][0], "params": ["p0", "p1"]}]}
        other = fusebook.Adam(own)
        other.load_state_dict(named)
        for key, each in saved["state"].items():
            for name, tensor in each.items():
                self.assertTrue(torch.equal(other.state[own[key]][name], tensor), name)

    def test_numbers_of_old_files(self):
        own = params(torch.float32)
        first = torch.optim.Adam(own)
        step(first, own, 0)
        saved = copy.deepcopy(first.state_dict())
        for each in saved["state"].values():
            each["step"] = 1  # torch 1.11 and older
        opt = fusebook.Adam(own)
        opt.load_state_dict(saved)
        self.assertEqual(opt.state[own[0]]["step"], 1)


if __name__ == "__main__":
    unittest.main()
