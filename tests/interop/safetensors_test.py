"""Checkpoints in Python: safetensors reads ours, and we refuse its files.

usage: safetensors_test.py CHECKPOINT_TEST-PROGRAM
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import safetensors
import safetensors.numpy

PROGRAM = ""


def run(*words):
    return subprocess.run(
        [PROGRAM, *map(str, words)], capture_output=True, text=True, check=False
    )


class Checkpoint(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "run.safetensors"
        written = run("write", self.path)
        self.assertEqual((written.returncode, written.stdout), (0, ""))

    def test_tensors(self):
        tensors = safetensors.numpy.load_file(self.path)
        weight = np.arange(6, dtype=np.float32).reshape(2, 3) / np.float32(4)
        # Adam's first step: every weight moves by the rate, less eps.
        param = tensors["param_groups.0.params.0"]
        self.assertEqual(param.dtype, np.float32)
        np.testing.assert_allclose(param, weight - 0.25, rtol=0, atol=1e-7)

        state = "param_groups.0.state.0."
        names = ["exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"]
        for name in names:
            self.assertEqual(
                tensors[state + name].dtype,
                np.float64 if name == "step" else np.float32,
            )
        self.assertEqual(tensors[state + "step"].shape, ())
        self.assertEqual(tensors[state + "step"], 1)
        np.testing.assert_allclose(tensors[state + "exp_avg"], 0.1, rtol=1e-6)
        self.assertEqual(tensors["param_groups.0.lr"], np.float32(0.25))

        other = tensors["param_groups.1.params.0"]
        self.assertEqual((other.dtype, other.shape), (np.float64, ()))
        self.assertEqual(other, 1e300)
        # The second parameter had no gradient, so nothing is kept for it.
        self.assertEqual(len(tensors), 2 + len(names) + 1)

    def test_numbers(self):
        with safetensors.safe_open(self.path, "np") as file:
            texts = file.metadata()
        self.assertEqual(texts["format"], "fusebook checkpoint 1")
        self.assertEqual(texts["optimizer"], "Adam")
        self.assertEqual(texts["steps"], "1")
        self.assertEqual(float(texts["param_groups.1.lr"]), 0.1)
        self.assertEqual(float(texts["param_groups.0.betas[1]"]), 0.999)
        self.assertEqual(texts["param_groups.0.amsgrad"], "true")
        self.assertEqual(texts["schedulers.0"], "ReduceLROnPlateau")
        self.assertEqual(float(texts["schedulers.0.best"]), float("inf"))
        rates = [float(x) for x in texts["schedulers.0.last_lr"].split(", ")]
        self.assertEqual(rates, [0.25, 0.1])

    def test_ours_is_read_and_theirs_refused(self):
        self.assertEqual(run("read", self.path).returncode, 0)
        tensors = safetensors.numpy.load_file(self.path)
        with safetensors.safe_open(self.path, "np") as file:
            metadata = file.metadata()
        for foreign in (None, {"format": "np"}):
            safetensors.numpy.save_file(tensors, self.path, foreign)
            answer = run("read", self.path)
            self.assertEqual(answer.returncode, 1)
            self.assertIn("that Fusebook did not write", answer.stdout)
        # The checksum of ours, over a file that is written otherwise.
        safetensors.numpy.save_file(tensors, self.path, metadata)
        answer = run("read", self.path)
        self.assertEqual(answer.returncode, 1)
        self.assertIn("its checksum does not match", answer.stdout)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop()
    unittest.main()
