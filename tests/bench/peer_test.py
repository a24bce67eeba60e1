"""Tests of peer_torch.py with a stand-in for PyTorch: what it calls, and what it
tells `bench`."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent / "peer_torch.py"

# Writes down what is called; steps take long enough for one to be a block.
TORCH = """
import atexit, contextlib, time, types
__version__ = "9.9+cpu"
calls = []
def called(name, takes=0.0):
    def call(*arguments, **options):
        calls.append(name)
        time.sleep(takes)
    return call
atexit.register(lambda: print("called", *dict.fromkeys(calls)))
rand = ones = lambda size: types.SimpleNamespace(grad=None)
rand_like = lambda tensor: tensor
no_grad = contextlib.nullcontext
set_num_threads = called("threads")
compile = lambda function: function
class Adam:
    def __init__(self, params, **options):
        assert len(params) == 5 and all(p.grad is not None for p in params)
    step = called("step", 0.001)
class Average:
    def __init__(self, model, multi_avg_fn): pass
    update_parameters = called("average", 0.001)
class Scaler:
    def __init__(self, device, **options): assert device == "cpu"
    scale, unscale_, update = called("scale"), called("unscale"), called("update")
    def step(self, adam):
        calls.append("scaled step")
        adam.step()
optim = types.SimpleNamespace(Adam=Adam, swa_utils=types.SimpleNamespace(
    AveragedModel=Average, get_ema_multi_avg_fn=lambda: None))
nn = types.SimpleNamespace(ParameterList=list, utils=types.SimpleNamespace(
    clip_grad_norm_=called("clip")))
amp = types.SimpleNamespace(GradScaler=Scaler)
"""


class PeerTorch(unittest.TestCase):
    def run_script(self, kind, torch=TORCH):
        with tempfile.TemporaryDirectory(prefix="fusebook-peer-") as scratch:
            (Path(scratch) / "torch.py").write_text(torch)
            done = subprocess.run(
                [sys.executable, "-B", SCRIPT, kind, "2", "a case", "64:3", "7:2"],
                capture_output=True, text=True, check=False,
                env={**os.environ, "PYTHONPATH": scratch})
        return done

    def told(self, kind):
        done = self.run_script(kind)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        rows = [line.split("\t") for line in lines if line.startswith("reading")]
        for row in rows[:-1]:
            self.assertEqual(row[:3], ["reading", kind, "a case"])
            self.assertGreaterEqual(float(row[4]), 1000)
        self.assertEqual(rows[-1][1], "memory")
        self.assertGreater(int(rows[-1][5]), 0)
        return [row[3] for row in rows], lines[-1].removeprefix("called ")

    def test_each_way_to_step(self):
        names, calls = self.told("step")
        self.assertEqual(names, ["torch 9.9 for-loop", "torch 9.9 foreach",
                                 "torch 9.9 fused", "torch 9.9 torch.compile",
                                 "peak of PyTorch, step"])
        self.assertEqual(calls, "threads step")

    def test_the_whole_tail_has_all_its_parts(self):
        names, calls = self.told("tail")
        self.assertEqual(names, ["torch 9.9 clip, Adam, average",
                                 "torch 9.9 whole tail",
                                 "peak of PyTorch, tail"])
        for part in ("scale", "unscale", "clip", "scaled step", "step", "average",
                     "update"):
            self.assertIn(part, calls)

    def test_without_pytorch_it_says_what_to_set(self):
        done = self.run_script("step", "raise ImportError('none here')")
        self.assertEqual(done.returncode, 3)
        self.assertIn("cannot import torch (none here)", done.stdout)
        self.assertIn("FUSEBOOK_PYTHON_TORCH", done.stdout)


if __name__ == "__main__":
    unittest.main()
