"""Tests of the capture on a GPU, without one.

    capture_test.py parts              its parts, with stand-ins for programs
    capture_test.py whole BUILD_DIR PROGRAM...
                                       all of it on the simulated GPU, with what was
                                       built there, as the PROGRAMs were
"""

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import types
import unittest
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(ROOT / "docs"))

import building  # noqa: E402
import gpu  # noqa: E402
import own_results  # noqa: E402
import peers  # noqa: E402
import running  # noqa: E402
import sanitizer  # noqa: E402
from report import Refused, Report  # noqa: E402

from fusebook_docs import checking, currency, samples  # noqa: E402
from fusebook_docs.book import Book  # noqa: E402

SIMULATED = gpu.Gpu("cuda-sim", "CUDA sim", "")
programs = None  # the build folder of the test of the whole


class Scratch(unittest.TestCase):
    """A folder of its own."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="fusebook-capture-")
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)

    def script(self, name, text):
        path = self.scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    def report(self, budget=60):
        return Report(self.scratch / "out", SIMULATED, budget)

    def start(self, *words, **environment):
        return subprocess.Popen(
            [sys.executable, "-B", HERE, *words], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
            env={**os.environ, **environment})

    def capture(self, *words, **environment):
        process = self.start(*words, **environment)
        out, _ = process.communicate(timeout=280)
        return process.returncode, out


class _Driver:
    """A driver's library; what is not given ends well."""

    def __init__(self, calls):
        self.calls = calls

    def __getattr__(self, name):
        call = self.calls.get(name, lambda *_: 0)
        return lambda *arguments: call(*arguments) or 0


def _setter(value):
    return lambda out: setattr(out._obj, "value", value)


class Devices(Scratch):
    def test_folders_are_names_of_the_book(self):
        for name, folder in (
                ("NVIDIA H200", "h200"),
                ("NVIDIA H100 80GB HBM3", "h100"),
                ("NVIDIA H100 PCIe", "h100"),
                ("NVIDIA A100-SXM4-80GB", "a100"),
                ("Tesla V100-SXM2-16GB", "v100"),
                ("NVIDIA GeForce RTX 4090", "rtx_4090"),
                ("NVIDIA RTX A6000", "rtx_a6000"),
                ("NVIDIA GH200 480GB", "gh200"),
                ("NVIDIA GeForce RTX 3080 Ti Laptop GPU", "rtx_3080_ti"),
                ("CUDA sim", "cuda_sim"),
                ("NVIDIA 9", "gpu_9"), ("", "gpu")):
            self.assertEqual(gpu.folder_of(name), folder, name)
            Book.here().sample_paths(folder, "foreach_map")

    def test_only_gpus(self):
        for name in ("cpu", "gpu", "cuda:", "cuda:x", "cuda-sim:0", "CUDA"):
            with self.assertRaises(gpu.WrongDevice):
                gpu.find(name)

    def test_what_a_driver_says(self):
        calls = {"cuDeviceGetName": lambda name, _, handle: setattr(
                     name, "value", f"NVIDIA H{handle.value}".encode()),
                 "cuDriverGetVersion": _setter(13020),
                 "cuDeviceGetCount": _setter(2),
                 "cuDeviceGet": lambda out, at: setattr(
                     out._obj, "value", at.value + 7)}
        with mock.patch("ctypes.CDLL", lambda _: _Driver(calls)), \
                mock.patch("gpu._VERSION_FILE", self.scratch / "version"):
            found = gpu.find("cuda:1")
            self.assertEqual((found.name, found.driver), ("NVIDIA H8",
                                                          "CUDA 13.2"))
            (self.scratch / "version").write_text(
                "NVRM version: NVIDIA UNIX Open Kernel Module  580.65.06  x\n")
            self.assertEqual(gpu.find("cuda").driver,
                             "driver 580.65.06, CUDA 13.2")
            with self.assertRaisesRegex(gpu.NoGpu, "no device 2"):
                gpu.find("cuda:2")
            for code in (35, 100, 999):
                calls["cuInit"] = lambda _, code=code: code
                with self.assertRaisesRegex(gpu.NoGpu, f"code {code}"):
                    gpu.find("cuda")

    def test_no_gpu_is_exit_code_3_and_leaves_nothing(self):
        try:
            gpu.find("cuda")
        except gpu.NoGpu as error:
            reason = str(error)
        else:
            self.skipTest("there is a GPU")
        out = self.scratch / "new" / "out"
        status, text = self.capture("--device", "cuda", "--out", str(out))
        self.assertEqual((status, text),
                         (3, f"fusebook: --device cuda: {reason}\n"))
        self.assertFalse(out.parent.exists())

    def test_wrong_words(self):
        (self.scratch / "mine").write_text("precious")
        for words, environment, message in (
                (["--device", "cpu"], {}, "is not a GPU"),
                (["--device", "cuda-sim", "--out", str(self.scratch)], {},
                 "is not a capture's folder"),
                (["--device", "cuda-sim"], {"FUSEBOOK_BUDGET": "soon"},
                 "a number of seconds")):
            status, text = self.capture(*words, **environment)
            self.assertEqual(status, 2, text)
            self.assertIn(message, text)
        self.assertEqual([path.name for path in self.scratch.iterdir()],
                         ["mine"])


class Running(Scratch):
    def test_time_is_up_for_children_too(self):
        pid = self.scratch / "pid"
        script = self.script("slow", f"echo begun; sleep 60 & echo $! >{pid};"
                                     " wait")
        done = running.run([script], self.scratch / "log", 0.5, self.scratch)
        self.assertIsNone(done.status)
        self.assertEqual(done.last_line, "begun")
        self.assertIn("not finished", done.ending)
        self.assertFalse(_lives(int(pid.read_text())))

    def test_endings(self):
        for text, status, ending in (
                ("echo a; echo b; exit 4", 4, "exit code 4: b"),
                ("kill -9 $$", -9, "killed by SIGKILL")):
            done = running.run([self.script("p", text)], self.scratch / "log",
                               20, self.scratch)
            self.assertEqual((done.status, done.ending), (status, ending))
        done = running.run([self.scratch / "none"], self.scratch / "log", 20,
                           self.scratch)
        self.assertEqual(done.status, 127)


def _lives(pid):
    for _ in range(50):  # until it is reaped
        try:
            state = Path(f"/proc/{pid}/stat").read_text().split()[2]
        except OSError:
            return False
        if state == "Z":
            return False
        time.sleep(0.02)
    return True


class Sanitizer(unittest.TestCase):
    def verdict(self, text, status=0):
        return sanitizer.verdict(types.SimpleNamespace(
            text=text, status=status, ending="its ending",
            last_line=text.splitlines()[-1]))

    def test_its_own_summary_counts(self):
        for text, status, kind in (
                ("==1== ERROR SUMMARY: 0 errors", 0, "ok"),
                ("==1== ERROR SUMMARY: 1 error", 99, "failed"),
                ("==1== ERROR SUMMARY: 0 errors", 1, "failed"),
                ("==1== RACECHECK SUMMARY: 0 hazards displayed (0 errors)", 0,
                 "ok"),
                ("==1== RACECHECK SUMMARY: 2 hazards displayed", 99, "failed"),
                ("Error: cannot attach", 1, "unavailable"),
                ("Error: cannot attach", 0, "unavailable"),
                ("Error: Device not supported\n"
                 "==1== ERROR SUMMARY: 1 error", 99, "unavailable"),
                ("==1== so far", None, "unfinished")):
            self.assertEqual(self.verdict(text, status)[0], kind, text)


class Peers(Scratch):
    """With stand-ins for the script that measures PyTorch."""

    def measured(self, text, seconds=20, budget=60):
        script = self.scratch / "peer.py"
        script.write_text(f"import json, sys, time\n{text}\n")
        os.environ["FUSEBOOK_PYTHON_TORCH"] = sys.executable
        self.addCleanup(os.environ.pop, "FUSEBOOK_PYTHON_TORCH", None)
        report = self.report(budget)
        with contextlib.redirect_stdout(io.StringIO()):
            rows = peers.measure(report, self.scratch, report.left, script,
                                 {"2 x 3": ["3:2"]}, seconds)
        path = report.folder / "peers.json"
        self.assertEqual(json.loads(path.read_text())["rows"], rows)
        return rows, (report.folder / "summary.txt").read_text()

    ROW = 'print(json.dumps({"case": sys.argv[3], "us": 1.5, ' \
          '"variant": sys.argv[2]}), flush=True)'

    def test_every_group_gets_a_process(self):
        rows, _ = self.measured(
            f'assert sys.argv[1] == "cuda-sim" and sys.argv[4:] == ["3:2"]\n'
            f'{self.ROW}')
        self.assertEqual([row["variant"] for row in rows],
                         list(peers.GROUPS))

    def test_not_finished_keeps_what_was_measured(self):
        rows, text = self.measured(
            f'{self.ROW}\nif sys.argv[2] == "eager": time.sleep(60)', 1.5)
        self.assertEqual([row["us"] for row in rows], [1.5, None, 1.5, 1.5])
        self.assertEqual(rows[1]["reason"], "not finished")
        self.assertIn("eager: not finished", text)

    def test_failures_and_no_time(self):
        rows, _ = self.measured('print("no memory"); sys.exit(1)')
        self.assertEqual([row["reason"] for row in rows],
                         3 * ["exit code 1: no memory"])
        rows, _ = self.measured(self.ROW, budget=3)
        self.assertEqual([row["reason"] for row in rows], 3 * ["no time left"])

    def test_not_installed(self):
        rows, text = self.measured('print("no torch"); sys.exit(3)')
        self.assertEqual(rows, [])
        self.assertIn("not installed: no torch", text)

    def test_beside_the_best_peer(self):
        report = self.report()
        (report.folder / "bench.json").write_text(json.dumps({"rows": [
            {"case": "a", "variant": "compiled", "us": 3.0},
            {"case": "a", "variant": "by hand", "us": 1.0},
            {"case": "b", "variant": "compiled", "us": None}]}))
        with contextlib.redirect_stdout(io.StringIO()) as out:
            peers.compare(report, [
                {"case": "a", "variant": "slow", "us": 8.0},
                {"case": "a", "variant": "fast", "us": 4.0},
                {"case": "a", "variant": "none", "us": None},
                {"case": "b", "variant": "fast", "us": 4.0}])
        self.assertEqual(out.getvalue(), "  a: compiled 3.00 us, 0.750 x fast\n")

    def test_the_script_says_so_itself(self):
        done = subprocess.run(
            [sys.executable, "-S", "-I", peers.SCRIPT, "cuda", "eager", "a",
             "1:1"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, peers.NOT_INSTALLED)
        self.assertIn("cannot import torch", done.stdout)

    def test_what_takes_long_comes_last(self):
        order = peers.in_order(peers.CASES)
        self.assertEqual(len(set(order)), 15)
        self.assertEqual({group for group, _ in order[:5]}, {"eager"})
        self.assertEqual([case for _, case in order[5:]],
                         2 * ["10 x 1024 x 1024", "1 x 2^28"] +
                         2 * ["1000 x 64"] +
                         2 * ["10000 x 64", "GPT-2 small"])

    def test_gpt2_has_its_parameters(self):
        sizes = [run.split(":") for run in peers.CASES["GPT-2 small"]]
        self.assertEqual(sum(int(count) for _, count in sizes), 148)
        self.assertEqual(sum(int(size) * int(count) for size, count in sizes),
                         124439808)


class PeerScript(Scratch):
    """The script that measures PyTorch, with a stand-in for that."""

    TORCH = """
import contextlib, time, types
__version__ = "9.9"
rand = lambda size, device: types.SimpleNamespace(grad=None)
rand_like = lambda tensor: tensor
no_grad = contextlib.nullcontext
device = lambda name: types.SimpleNamespace(index=None)
class Event:
    def __init__(self, enable_timing): assert enable_timing
    def record(self): self.at = time.perf_counter()
    def elapsed_time(self, end): return (end.at - self.at) * 1e3
cuda = types.SimpleNamespace(
    Event=Event, synchronize=lambda: None, set_device=lambda index: None,
    is_available=lambda: AVAILABLE)
class Adam:
    def __init__(self, params, **options):
        assert len(params) == 5 and all(p.grad is not None for p in params)
    def step(self): time.sleep(0.001)
optim = types.SimpleNamespace(Adam=Adam)
_dynamo = types.SimpleNamespace(reset=lambda: None)
def compile(function, mode, fullgraph):
    if fullgraph and mode is None: raise RuntimeError("no")
    return function
"""

    def rows(self, group, status=0, available=True):
        (self.scratch / "torch.py").write_text(
            f"AVAILABLE = {available}\n{self.TORCH}")
        done = subprocess.run(
            [sys.executable, "-B", peers.SCRIPT, "cuda", group, "a case",
             "64:3", "7:2"], capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(self.scratch)})
        self.assertEqual(done.returncode, status, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()
                if line.startswith("{")]

    def test_every_variant_is_a_row(self):
        names = []
        for group in peers.GROUPS:
            for row in self.rows(group):
                names.append(row["variant"])
                self.assertEqual((row["case"], row["torch"]),
                                 ("a case", "9.9"))
                for name in ("us", "event_us", "host_us"):
                    self.assertGreaterEqual(row[name], 1000)
        self.assertEqual(names, [
            "torch fused", "torch foreach", "torch for-loop",
            "torch compile, max-autotune-no-cudagraphs",
            "torch compile, default"])

    def test_compile_time_and_whether_it_was_one_graph(self):
        for group, whole in (("compile-max-autotune", True),
                             ("compile-default", False)):
            row = self.rows(group)[0]
            self.assertGreaterEqual(row["compile_ms"], 2)
            self.assertIs(row["fullgraph"], whole)

    def test_a_torch_without_a_gpu_is_not_installed(self):
        self.assertEqual(self.rows("eager", peers.NOT_INSTALLED, False), [])


class Building(Scratch):
    """With a stand-in for cmake that writes down how it was called."""

    def build(self, doctest, *tools, status=0, rest=0):
        patch = self.scratch / "docs" / "exercises" / "adam" / "amsgrad.patch"
        patch.parent.mkdir(parents=True, exist_ok=True)
        patch.write_text("")
        for name in tools:
            self.script(f"bin/{name}", "")
        (self.scratch / "bin").mkdir(exist_ok=True)
        (self.scratch / "bin" / "mkdir").symlink_to(shutil.which("mkdir"))
        self.script("bin/cmake", f"""
echo "$@" >>{self.scratch}/calls
[ "$1" = -S ] && mkdir -p "$4/tests" && echo '{doctest}' >"$4/CMakeCache.txt"
[ "$6" = Ninja ] && : >"$4/build.ninja"
case "$*" in *bench_gpu*) exit {status} ;; *adam.amsgrad*) exit {rest} ;; esac
exit 0""")
        report = self.report()
        path = {"PATH": f"{self.scratch}/bin"}
        with mock.patch.dict(os.environ, path), \
                contextlib.redirect_stdout(io.StringIO()) as out:
            folder = building.build(report, self.scratch, ["adam"], 30)
        return folder.name, out.getvalue(), (
            self.scratch / "calls").read_text().splitlines()

    def test_all_is_there(self):
        folder, out, calls = self.build("doctest_DIR:PATH=/x", "ninja")
        self.assertEqual((folder, len(calls)), ("release", 3))
        self.assertIn("-G Ninja", calls[0])
        self.assertTrue(calls[1].endswith("--target adam bench_gpu"))
        self.assertTrue(calls[2].endswith(
            "--target device_tests trace_tests compile_tests tensor_tests "
            "adam.amsgrad -- -k0"))
        self.assertIn(f"-DFUSEBOOK_PYTHON={sys.executable}", calls[0])
        self.assertNotIn("skipped", out)
        self.assertNotIn("FAILED", out)

    def test_a_real_gpu_gets_all_suites_that_look_at_the_device(self):
        simulated = gpu.Gpu("cuda-sim", "CUDA sim", "")
        real = gpu.Gpu("cuda", "NVIDIA H200", "")
        first = building.suites(ROOT, simulated)
        every = building.suites(ROOT, real)
        self.assertEqual(every[:len(first)], first)
        self.assertEqual(len(set(every)), len(every))
        for suite in ("ir/device_program_test", "optim/states_8bit_test",
                      "amp/grad_scaler_test", "foreach/reductions_test"):
            self.assertIn(suite, every)
        for suite in every:
            self.assertTrue((ROOT / "tests" / f"{suite}.cpp").is_file(), suite)

    def test_what_is_missing_is_left_out_with_a_line(self):
        folder, out, calls = self.build(
            "doctest_DIR:PATH=doctest_DIR-NOTFOUND", "make")
        self.assertEqual((folder, len(calls)), ("release-make", 3))
        self.assertIn("-G Unix Makefiles", calls[0])
        self.assertTrue(calls[2].endswith("--target adam.amsgrad -- -k"))
        self.assertIn("skipped      ninja is not installed", out)
        self.assertIn("skipped      tests: doctest is not installed", out)

    def test_an_exercise_that_cannot_be_built(self):
        """It holds up nobody, and no older program takes its place."""
        old = self.script("build/release/tests/adam.amsgrad", "")
        kept = self.script("build/release/tests/adam", "")
        folder, out, _ = self.build("doctest_DIR:PATH=/x", "ninja", rest=2)
        self.assertEqual(folder, "release")
        self.assertIn("FAILED       not all of the tests and exercises", out)
        self.assertFalse(old.exists())
        self.assertTrue(kept.exists())

    def test_nothing_can_be_built(self):
        for tools, status, message in (((), 0, "neither ninja nor make"),
                                       (("ninja",), 2, "exit code 2")):
            shutil.rmtree(self.scratch / "bin", ignore_errors=True)
            with self.assertRaisesRegex(building.CannotBuild, message):
                self.build("", *tools, status=status)


class Samples(Scratch):
    """With stand-ins for the docs tool and for what is built."""

    PROGRAMS = ("recipes/adam", "recipes/sgd", "tests/adam.amsgrad",
                "tests/adam.lr", "tests/sgd.lr")

    def captured(self, real, limit, missing=(), tool=""):
        for program in self.PROGRAMS:
            if program not in missing:
                self.script(f"build/{program}", "")
            if "." in program:
                patch = self.scratch / "docs" / "exercises" / program[6:].replace(
                    ".", "/", 1)
                patch.parent.mkdir(parents=True, exist_ok=True)
                patch.with_name(f"{patch.name}.patch").write_text("")
        main = self.scratch / "docs" / "fusebook_docs" / "__main__.py"
        main.parent.mkdir(parents=True)
        main.write_text(f"""
import pathlib, sys, time
words = dict(zip(sys.argv, sys.argv[1:]))
stem = words["--recipe"]
if "--exercise" in words:
    stem += "." + words["--exercise"]
{tool}
folder = pathlib.Path(words["--samples"], words["--as"])
folder.mkdir(exist_ok=True)
for suffix in (".txt", ".json"):
    folder.joinpath(stem + suffix).write_text(words["--program"])
""")
        device = gpu.Gpu("cuda", "NVIDIA H200", "") if real else SIMULATED
        report = Report(self.scratch / "out", device, 60)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            own_results.capture_samples(report, self.scratch,
                                        self.scratch / "build",
                                        ["adam", "sgd"], limit)
        book = self.scratch / "docs" / "samples" / "h200"
        return out.getvalue().splitlines()[2:], {
            path.name for path in book.glob("*")}

    def test_recipes_come_first_then_exercises(self):
        lines, book = self.captured(True, 50)
        self.assertEqual([line.split()[1] for line in lines], [
            "adam", "sgd", "adam.amsgrad", "adam.lr", "sgd.lr"])
        self.assertEqual(len(book), 10)
        text = self.scratch / "docs" / "samples" / "h200" / "adam.lr.json"
        self.assertTrue(text.read_text().endswith("build/tests/adam.lr"))

    def test_the_simulator_leaves_the_book_alone(self):
        lines, book = self.captured(False, 50)
        self.assertEqual((len(lines), book), (5, set()))

    def test_what_is_not_built(self):
        lines, _ = self.captured(True, 50, missing=("tests/adam.lr",))
        self.assertEqual(lines[3], "  skipped      adam.lr: not built")

    def test_what_was_captured_stays_when_time_is_up(self):
        lines, book = self.captured(True, 4, tool="""
if stem == "adam.amsgrad":
    time.sleep(float(words["--timeout"]))
    sys.exit("still running")
""")
        self.assertIn("FAILED       adam.amsgrad: exit code 1: still", lines[2])
        self.assertEqual(lines[3:], [
            f"  skipped      {name}: no time left"
            for name in ("adam.lr", "sgd.lr")])
        self.assertEqual(book, {"adam.txt", "adam.json", "sgd.txt",
                                "sgd.json"})

    def test_samples_of_a_real_gpu_go_into_the_book(self):
        kept = self.scratch / "out"
        kept.mkdir()
        for suffix in ("txt", "json"):
            (kept / f"adam.{suffix}").write_text(suffix)
        own_results.into_the_book(kept, self.scratch,
                                  gpu.Gpu("cuda", "NVIDIA H200", ""), "adam")
        folder = self.scratch / "docs" / "samples" / "h200"
        self.assertEqual({path.name: path.read_text()
                          for path in folder.iterdir()},
                         {"adam.txt": "txt", "adam.json": "json"})


class Interrupted(Scratch):
    """With stand-ins for what is built."""

    def build(self, **texts):
        cases = "\n".join(
            f"*/{name}.cpp) {texts.get(name, 'exit 1')};;"
            for name in ("gpu_device_test", "device_test"))
        self.script("build/tests/device_tests", f"case $1 in\n{cases}\nesac")
        self.script("build/tests/bench_gpu", texts.get("bench_gpu", "exit 1"))
        return ["--device", "cuda-sim", "--programs",
                str(self.scratch / "build"), "--out",
                str(self.scratch / "out"), "foreach_map"]

    def summary(self):
        return (self.scratch / "out" / "summary.txt").read_text()

    def archived(self):
        with tarfile.open(self.scratch / "out" /
                          "fusebook-cuda_sim.tar.gz") as file:
            return file.getnames()

    def test_partial_results_survive(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start(*self.build(
                gpu_device_test="echo '[doctest] test cases: 3 | 3 passed'",
                device_test="touch begun; exec sleep 60".replace(
                    "begun", str(self.scratch / "begun"))))
            while not (self.scratch / "begun").exists():
                time.sleep(0.02)
            process.send_signal(number)
            out, _ = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, out)
            self.assertIn("gpu_device_test: 3 | 3 passed", self.summary())
            self.assertIn("Interrupted", self.summary())
            self.assertIn("fusebook-cuda_sim/logs/device_test.log",
                          self.archived())
            (self.scratch / "begun").unlink()

    def test_failures_do_not_end_it_and_time_does(self):
        status, out = self.capture(*self.build(
            gpu_device_test="echo broken; exit 1",
            device_test="sleep 60"), FUSEBOOK_BUDGET="14")
        self.assertEqual(status, 1, out)
        self.assertIn("FAILED       gpu_device_test: exit code 1: broken", out)
        self.assertIn("FAILED       device_test: not finished after 2 s", out)
        self.assertIn("FAILED       foreach_map", out)
        self.assertIn("failed: 4.", self.summary())
        self.assertIn("fusebook-cuda_sim/summary.txt", self.archived())

    def test_some_stages_have_all_the_time(self):
        status, out = self.capture("--only", "bench,sanitizer", *self.build(
            bench_gpu="sleep 5; echo broken; exit 1"), FUSEBOOK_BUDGET="16")
        self.assertEqual(status, 1, out)
        self.assertIn("exit code 1: broken", out)  # a quarter was too little
        self.assertNotIn("device_test", out)
        self.assertNotIn("foreach_map", out)
        self.assertNotIn("PyTorch", out)

    def test_only_an_earlier_capture_is_replaced(self):
        report = self.report()
        (report.folder / "logs" / "old").write_text("")
        self.assertFalse((self.report().folder / "logs" / "old").exists())
        (report.folder / "summary.txt").unlink()
        with self.assertRaises(Refused):
            self.report()


class Whole(Scratch):
    def test_all_of_it(self):
        out = self.scratch / "out"
        status, text = self.capture(
            "--device", "cuda-sim", "--programs", programs, "--out", str(out),
            "compiling_optimizer")
        self.assertEqual(status, 0, text)
        with tarfile.open(out / "fusebook-cuda_sim.tar.gz") as file:
            file.extractall(self.scratch, filter="data")
        inside = self.scratch / "fusebook-cuda_sim"
        self.check_summary((inside / "summary.txt").read_text())
        self.check_sample(inside / "samples")
        self.check_rows(json.loads((inside / "bench.json").read_text()))

    def check_summary(self, text):
        for words in ("Fusebook on CUDA sim", "ok           device_test",
                      "ok           compiling_optimizer\n",
                      "ok           compiling_optimizer.amsgrad\n", "30 rows",
                      "a simulated GPU has no peers", "failed: 0."):
            self.assertIn(words, text)

    def check_sample(self, folder):
        book, name = Book(ROOT, folder), "compiling_optimizer"
        exercises = book.exercise_names(name)
        self.assertEqual(len(exercises), 3)
        for exercise in (None, *exercises):
            sample = samples.load(book, "cuda_sim", name, exercise)
            self.assertIn("CUDA simulator", sample.provenance["device"])
            page = samples.load(Book(ROOT), "cpu", name, exercise)
            self.assertEqual(sample.titles, page.titles)
            self.assertEqual(sample.options, {"layers": 2, "width": 8})
            source = checking.source_of(book, name, exercise)
            self.assertFalse(currency.is_stale(book, sample, source, page))

    def check_rows(self, document):
        self.assertTrue(document["simulated"])
        self.assertEqual(document["skipped"], [])
        rows = document["rows"]
        self.assertEqual(len({row["case"] for row in rows}), 5)
        for row in rows:
            times = [name for name in row if name.endswith("us")]
            self.assertEqual([row[name] for name in times], 3 * [None])
            if row["variant"] == "compiled":
                self.assertEqual(row["launches"], 1)
        self.assertEqual([row["us"] for row in document["compile"]],
                         10 * [None])
        self.assertEqual(document["reach"],
                         [{"elements": 32768, "updated": True}])
        for row in document["bits"]:
            self.assertTrue(row["as_eager"] and row["as_cpu"], row)


def load_tests(loader, _tests, _pattern):
    names = [Whole] if programs else [Devices, Running, Sanitizer, Peers,
                                      PeerScript, Building, Samples, Interrupted]
    return unittest.TestSuite(loader.loadTestsFromTestCase(name)
                              for name in names)


if __name__ == "__main__":
    if sys.argv[1:2] == ["whole"]:
        programs = sys.argv[2]
    unittest.main(argv=sys.argv[:1], verbosity=2)
