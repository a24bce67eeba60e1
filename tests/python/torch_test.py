"""The Python package with torch tensors, against torch.optim.

    python torch_test.py [BUILD]
"""

import collections
import copy
import gc
import io
import unittest
import weakref

from support import expected_of, printed_by  # first: it finds the package

import fusebook
import torch
from torch.nn import Parameter
from torch.optim import lr_scheduler, optimizer

# Numbers of a parameter are float64 here; torch keeps these two in float32.
ROUNDED = {"ASGD": 1e-8, "NAdam": 1e-9, "Adafactor": 1e-13}
NAMES = ("ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam",
         "RAdam", "RMSprop", "Rprop", "SGD")
# Launches of a step, and the kernels that they take: means are no kernels.
LAUNCHES = {"Adafactor": (4, 2)}
OPTIONS = {"SGD": {"momentum": 0.9, "nesterov": True}, "RMSprop": {"momentum": 0.5},
           "Adam": {"amsgrad": True, "weight_decay": 0.1}}


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(),
                               torch.nn.Linear(16, 1)).double()


class Trainer:
    def __init__(self, library, name, schedule):
        self.model = model()
        options = OPTIONS.get(name, {})
        self.opt = getattr(library, name)(self.model.parameters(), **options)
        self.decay = schedule(self.opt)
        self.x = torch.linspace(-1, 1, 8 * 32).double().reshape(32, 8)
        self.y = self.x.sin().sum(1, keepdim=True)

    def train(self, steps):
        for _ in range(steps):
            self.opt.zero_grad()
            ((self.model(self.x) - self.y)**2).mean().backward()
            self.opt.step()
            self.decay.step()

    def params(self):
        return [each.detach().clone() for each in self.model.parameters()]


class Trained(Trainer):
    """Adam of ours, under a schedule."""

    def __init__(self):
        super().__init__(fusebook, "Adam", lambda opt: lr_scheduler.StepLR(opt, 3))


class AgainstTorch(unittest.TestCase):
    def test_all_with_the_state_carried_over_in_both_directions(self):
        for name in NAMES:
            def schedule(opt):
                return lr_scheduler.StepLR(opt, 5, gamma=0.5)

            ours = Trainer(fusebook, name, schedule)
            theirs = Trainer(torch.optim, name, schedule)
            places = [each.data_ptr() for each in ours.model.parameters()]
            for steps in (10, 10, 10):
                ours.train(steps)
                theirs.train(steps)
                for a, b in zip(ours.params(), theirs.params(), strict=True):
                    self.assertLess((a - b).abs().max(), ROUNDED.get(name, 1e-14),
                                    name)
                states = [copy.deepcopy(each.opt.state_dict())
                          for each in (theirs, ours)]
                ours.opt.load_state_dict(states[0])
                theirs.opt.load_state_dict(states[1])
            launches, kernels = LAUNCHES.get(name, (1, 1))
            self.assertEqual(ours.opt.counters.launches, 30 * launches, name)
            self.assertEqual(ours.opt.counters.compilations, kernels, name)
            self.assertEqual(ours.opt.recompile_reports, [], name)
            self.assertEqual(places, [each.data_ptr()
                                      for each in ours.model.parameters()])
            self.assertIsInstance(ours.opt, torch.optim.Optimizer)
            self.assertIsInstance(ours.opt, getattr(fusebook, name))
            self.assertEqual(ours.opt.defaults, theirs.opt.defaults)

    def test_schedulers(self):
        for schedule in (
                lambda opt: lr_scheduler.OneCycleLR(opt, 0.1, total_steps=30),
                lambda opt: lr_scheduler.CosineAnnealingLR(opt, 10),
                lambda opt: lr_scheduler.LambdaLR(opt, lambda k: 0.9**k)):
            ours = Trainer(fusebook, "Adam", schedule)
            theirs = Trainer(torch.optim, "Adam", schedule)
            ours.train(20)
            theirs.train(20)
            for a, b in zip(ours.params(), theirs.params(), strict=True):
                self.assertLess((a - b).abs().max(), 1e-13)
            self.assertLessEqual(ours.opt.counters.recompiles, 1)

    def test_what_the_page_shows(self):
        self.assertEqual(printed_by("training_torch.py"),
                         expected_of("training_torch.py"))


def ones(*shape, **options):
    return Parameter(torch.ones(*shape, **options))


class Tensors(unittest.TestCase):
    def test_parameters_that_move_or_change(self):
        p = ones(3)
        sgd = fusebook.SGD([p], lr=0.25)
        p.grad = torch.ones(3)
        sgd.step()
        old = p.data
        p.data = p.data.clone()
        sgd.step()
        self.assertEqual(p.tolist(), [0.5] * 3)
        self.assertEqual(old.tolist(), [0.75] * 3)
        self.assertEqual(sgd.counters.compilations, 1)
        p.data = torch.ones(5)
        p.grad = None
        with self.assertRaisesRegex(fusebook.Error, r"had the shape \[3\] and now"):
            sgd.step()
        p.data = torch.ones(3, dtype=torch.float64)
        with self.assertRaisesRegex(fusebook.Error, "another dtype"):
            sgd.step()

    def test_gradients_of_any_kind(self):
        p = ones(3, 2)
        sgd = fusebook.SGD([p, ones(2)], lr=0.25)
        sgd.step()  # nothing has a gradient
        for grad in (torch.ones(2, 3).t(), torch.ones(3, 2),
                     torch.ones(1, 1).expand(3, 2)):
            p.grad = grad
            sgd.step()
        self.assertEqual(p.tolist(), [[0.25, 0.25]] * 3)
        sgd.step(grads=[torch.ones(3, 2, dtype=torch.float64), None])
        self.assertEqual(p.tolist(), [[0, 0]] * 3)
        p.grad = torch.sparse_coo_tensor([[0], [0]], [1.0], (3, 2),
                                         check_invariants=True)
        with self.assertRaisesRegex(fusebook.Error, "gradient of parameter 0") as why:
            sgd.step()
        self.assertNotIn("\n", str(why.exception))
        self.assertEqual(p.tolist(), [[0, 0]] * 3)

    def test_memory_that_was_freed(self):
        p, q = ones(3), ones(2)
        adam = fusebook.Adam([p, q], lr=0.5)
        q.grad = torch.ones(2)
        p.grad = torch.ones(3)
        p.grad.untyped_storage().resize_(0)
        with self.assertRaisesRegex(fusebook.Error, "gradient of parameter 0 has no"):
            adam.step()
        p.grad = torch.ones(3)
        p.data.untyped_storage().resize_(0)
        with self.assertRaisesRegex(fusebook.Error, "parameter 0"):
            adam.step()
        self.assertEqual(q.tolist(), [1, 1])
        self.assertEqual(len(adam.state), 0)
        p.data = torch.ones(3)
        adam.step()
        self.assertEqual(q.tolist(), p.tolist()[:2])
        self.assertEqual(adam.state[p]["step"], 1)

    def test_parameters_that_are_frozen_for_a_while(self):
        models = [model(), model()]
        opts = [fusebook.Adam(models[0].parameters(), lr=0.1),
                torch.optim.Adam(models[1].parameters(), lr=0.1)]
        x = torch.linspace(-1, 1, 32).double().reshape(4, 8)
        for step in range(9):
            for each, opt in zip(models, opts, strict=True):
                each[0].weight.requires_grad_(step // 3 != 1)
                opt.zero_grad()
                each(x).pow(2).sum().backward()
                torch.nn.utils.clip_grad_norm_(each.parameters(), 0.5)
                opt.step()
        for a, b in zip(*(each.parameters() for each in models), strict=True):
            self.assertLess((a - b).abs().max(), 1e-14)
        self.assertEqual(opts[0].state[models[0][0].weight]["step"], 6)
        self.assertEqual(opts[0].counters.launches, 9)
        self.assertEqual(opts[0].counters.recompiles, 0)

    def test_states_that_are_removed(self):
        def one(opt):
            del opt.state[opt.param_groups[0]["params"][0]]

        def all_of_them(opt):
            opt.state.clear()

        def the_whole(opt):
            opt.state = collections.defaultdict(dict)

        def emptied(opt):
            opt.state[opt.param_groups[0]["params"][0]] = {}

        def none(opt):
            opt.state["calls"] = {"count": 5}
            opt.state[opt.param_groups[0]["params"][0]]["slow"] = torch.ones(1)

        for change in (one, all_of_them, the_whole, emptied, none):
            for opt in self.changed_midway(change):
                count = opt.state[opt.param_groups[0]["params"][0]]["step"]
                self.assertEqual(count, 10 if change is none else 5)

    def test_what_others_keep_is_in_state_dicts(self):
        for name in NAMES:
            opts = []
            for library in (fusebook, torch.optim):
                trainer = Trainer(library, name, lambda opt: lr_scheduler.StepLR(opt, 5))
                trainer.train(3)
                param = trainer.opt.param_groups[0]["params"][0]
                trainer.opt.state[param]["slow"] = torch.full((2,), 3.0)
                trainer.opt.load_state_dict(trainer.opt.state_dict())
                trainer.train(3)
                opts.append(trainer)
                self.assertEqual(trainer.opt.state[param]["slow"].tolist(), [3.0, 3.0])
            for a, b in zip(*(each.params() for each in opts), strict=True):
                self.assertLess((a - b).abs().max(), ROUNDED.get(name, 1e-14), name)

    def changed_midway(self, change):
        """Ours of each class, after torch's was trained and changed alike."""
        for name in NAMES:
            runs = [Trainer(library, name, lambda opt: lr_scheduler.StepLR(opt, 5))
                    for library in (fusebook, torch.optim)]
            for each in runs:
                each.train(5)
                change(each.opt)
                each.train(5)
            for a, b in zip(*(each.params() for each in runs), strict=True):
                self.assertLess((a - b).abs().max(), ROUNDED.get(name, 1e-14),
                                (name, change))
            yield runs[0].opt

    def test_states_that_are_replaced(self):
        def zeroed(opt):
            for state in opt.state.values():
                for name, value in state.items():
                    if name != "step" and torch.is_tensor(value) and value.dim():
                        state[name] = torch.zeros_like(value)

        self.assertEqual(len(list(self.changed_midway(zeroed))), len(NAMES))

    # As programs do that model scenes with points.
    def cut_and_lengthened(self, library, name):
        param = Parameter(torch.linspace(-1, 1, 12).double().reshape(6, 2))
        opt = getattr(library, name)([param], lr=0.1)
        for sizes in (slice(0, 4), slice(None), slice(1, None)):
            for step in range(1, 4):
                param.grad = step * param.detach() + 1
                opt.step()
            changed = Parameter(torch.cat([param.detach()[sizes], torch.ones(1, 2)]))
            state = opt.state.pop(param)
            for key, value in state.items():
                if torch.is_tensor(value) and value.shape == param.shape:
                    state[key] = torch.cat([value[sizes], torch.zeros(1, 2)])
            opt.param_groups[0]["params"][0] = param = changed
            opt.state[param] = state
        param.grad = param.detach() + 1
        opt.step()
        self.assertEqual(opt.state[param]["step"], 10)
        return param.detach()

    def test_parameters_that_are_cut_and_lengthened(self):
        for name in ("Adam", "AdamW", "RAdam", "Adamax"):
            ours, theirs = (self.cut_and_lengthened(library, name)
                            for library in (fusebook, torch.optim))
            self.assertEqual(ours.shape, (6, 2))
            self.assertLess((ours - theirs).abs().max(), 1e-14, name)

    def leaves_for_a_while(self, library, switch=None, frozen=False):
        run = Trainer(library, "Adam", lambda opt: lr_scheduler.StepLR(opt, 5))
        if switch is not None:
            switch(run.opt)
        run.train(5)
        params = run.opt.param_groups[0]["params"]
        weight = params[0]
        if frozen:  # which is another way to leave it alone
            weight.requires_grad_(False)
        else:
            del params[0]
        run.train(3)
        if frozen:
            weight.requires_grad_()
        else:
            params.insert(0, weight)
        run.train(5)
        self.assertEqual(run.opt.state[weight]["step"], 10)
        return run.params()

    def test_parameters_that_leave_their_group_for_a_while(self):
        ours, theirs = (self.leaves_for_a_while(each) for each in (fusebook, torch.optim))
        for a, b in zip(ours, theirs, strict=True):
            self.assertLess((a - b).abs().max(), 1e-14)

        def coded(opt):
            opt.use_8bit_states(min_8bit_size=1, state_block_size=32)

        out, frozen = (self.leaves_for_a_while(fusebook, coded, each)
                       for each in (False, True))
        for a, b in zip(out, frozen, strict=True):
            self.assertTrue(torch.equal(a, b))

    def test_files_of_torch(self):
        first, second = Trained(), Trained()
        first.train(4)
        file = io.BytesIO()
        parts = "model", "opt", "decay"
        torch.save([getattr(first, part).state_dict() for part in parts], file)
        file.seek(0)
        for part, state in zip(parts, torch.load(file, weights_only=True),
                               strict=True):
            getattr(second, part).load_state_dict(state)
        first.train(3)
        second.train(3)
        for a, b in zip(first.params(), second.params(), strict=True):
            self.assertTrue(torch.equal(a, b))

    def test_a_scaler_skips_steps(self):
        p = ones(2)
        sgd = fusebook.SGD([p], lr=0.5)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        scaler.scale(torch.ones(1))
        for grad, expected in ((4.0, 0.5), (float("inf"), 0.5), (2.0, 0.0)):
            p.grad = torch.full((2,), grad)
            scaler.step(sgd)
            scaler.update()
            self.assertEqual(p.tolist(), [expected] * 2)

    def test_parameters_of_any_kind(self):
        for bad, text in ((torch.zeros(2, dtype=torch.int64), "int64"),
                          (torch.zeros(2, dtype=torch.complex64), "complex64"),
                          (torch.zeros(1).expand(3), "share memory"),
                          (torch.zeros(2, device="meta"), "parameter 0")):
            with self.assertRaisesRegex(fusebook.Error, text):
                fusebook.Adam([bad])
        with self.assertRaises(TypeError):
            fusebook.Adam(torch.zeros(2))
        for dtype in (torch.bfloat16, torch.float16, torch.float64):
            p, none = ones(3, dtype=dtype), ones(0, dtype=dtype)
            p.grad, none.grad = torch.ones_like(p), torch.ones_like(none)
            fusebook.SGD([none, p], lr=0.5).step()
            self.assertEqual(p.tolist(), [0.5] * 3)

    def test_groups_come_and_numbers_are_tensors(self):
        a, b = ones(2), ones(2)
        sgd = fusebook.SGD([a], lr=torch.tensor(0.5))
        a.grad, b.grad = torch.ones(2), torch.ones(2)
        sgd.step()
        sgd.add_param_group({"params": [b], "lr": 0.25})
        sgd.param_groups[0]["lr"].fill_(0.125)
        sgd.step()
        self.assertEqual([a[0].item(), b[0].item()], [0.375, 0.75])

    def test_closures_and_hooks(self):
        p = ones(1)
        sgd = fusebook.SGD([p], lr=0.25)
        calls = []
        sgd.register_step_post_hook(lambda *_: calls.append(p.item()))

        def closure():
            sgd.zero_grad()
            loss = (p * p).sum()
            loss.backward()
            return loss

        self.assertEqual(sgd.step(closure).item(), 1)
        self.assertEqual(calls, [0.5])

        def fails():
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            sgd.step(fails)
        self.assertEqual(p.item(), 0.5)

    def test_hooks_of_all_optimizers(self):
        p = ones(1)
        sgd = fusebook.SGD([p], lr=0.25)
        p.grad = torch.ones(1)
        calls = []
        before = optimizer.register_optimizer_step_pre_hook(
            lambda opt, args, kwargs: calls.append(("before", opt is sgd, p.item())))
        after = optimizer.register_optimizer_step_post_hook(
            lambda opt, args, kwargs: calls.append(("after", opt is sgd, p.item())))
        sgd.step()
        before.remove()
        after.remove()
        sgd.step()
        self.assertEqual(calls, [("before", True, 1), ("after", True, 0.75)])
        self.assertEqual(p.item(), 0.5)

    def test_a_hook_gives_another_closure(self):
        p = ones(1)
        sgd = fusebook.SGD([p], lr=0.25)
        p.grad = torch.ones(1)
        sgd.register_step_pre_hook(lambda opt, args, kwargs: ((opt, lambda: 7), {}))
        self.assertEqual(sgd.step(), 7)
        self.assertEqual(p.item(), 0.75)

    def test_a_profiler_knows_the_step(self):
        p = ones(1)
        sgd = fusebook.SGD([p], lr=0.25)
        p.grad = torch.ones(1)
        with torch.profiler.profile() as profile:
            sgd.step()
        names = [event.name for event in profile.events()]
        self.assertEqual(names.count("Optimizer.step#SGD.step"), 1)
        self.assertEqual(p.item(), 0.75)

    def test_copies_and_loads(self):
        p = ones(2)
        adam = fusebook.Adam([p], lr=0.5)
        p.grad = torch.ones(2)
        adam.step()
        twin = copy.deepcopy(adam)
        other = twin.param_groups[0]["params"][0]
        other.grad = torch.ones(2)
        adam.step()
        twin.step()
        self.assertEqual(p.tolist(), other.tolist())
        self.assertNotEqual(p.data_ptr(), other.data_ptr())
        before = p.tolist(), copy.deepcopy(adam.state_dict())
        bad = copy.deepcopy(adam.state_dict())
        bad["state"][0]["exp_avg"] = torch.ones(7)
        for wrong in (bad, torch.optim.SGD([p]).state_dict()):
            with self.assertRaises(fusebook.Error):
                adam.load_state_dict(wrong)
            self.assertEqual(str(adam.state_dict()), str(before[1]))
        adam.step()
        self.assertEqual(adam.state[p]["step"], 3)

    def test_nothing_is_kept(self):
        p = ones(2)
        p.grad = torch.ones(2)
        sgd = fusebook.SGD([p], lr=0.5, momentum=0.5)
        sgd.step()
        grad, param = weakref.ref(p.grad), weakref.ref(p)
        p.grad = None
        gc.collect()
        self.assertIsNone(grad())
        del p, sgd
        gc.collect()
        self.assertIsNone(param())

    def test_maps(self):
        a = [torch.ones(2, dtype=torch.bfloat16), torch.ones(3, dtype=torch.bfloat16)]
        got = fusebook.foreach_map(lambda p: p * 0.5 + 1, a)
        self.assertEqual([each.tolist() for each in got], [[1.5] * 2, [1.5] * 3])
        self.assertEqual(got[0].dtype, torch.bfloat16)


if __name__ == "__main__":
    unittest.main()
