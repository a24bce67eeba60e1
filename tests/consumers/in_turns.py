"""Steps of optimizers over the same data that take turns in one process: what a
measurement of some of them has in common. The gradients of a step are at other
addresses than those of the step before. It is done in several processes, since where
one happens to put its tensors counts, too.
"""

import ctypes
import datetime
import gc
import json
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

import torch
from copies import HERE, run

THREADS = 2
PROCESSES = 5
TURNS = 15
SETS = 3  # of gradients, one after the other
LONG = 0.05  # seconds, after which the next has its turn
TORCH = f"torch {torch.__version__.partition('+')[0]}"
LIBRARY = None


def gpt2_small():
    """The parameters of GPT-2 small (Radford et al., 2019) in their order."""
    width = 768
    block = [width, width, 3 * width * width, 3 * width, width * width, width, width,
             width, 4 * width * width, 4 * width, 4 * width * width, width]
    return [50257 * width, 1024 * width, *block * 12, width, width]


CASES = {"10 x 1024 x 1024": [1024 * 1024] * 10, "1000 x 64": [64] * 1000,
         "GPT-2 small": gpt2_small()}
_IN_A_ROW = {"10 x 1024 x 1024": 5, "1000 x 64": 40, "GPT-2 small": 2}


class Native:
    """Steps of the module in C++."""

    def __init__(self, kind, sizes, dtype=torch.float32):
        self.dtype, self.elements = dtype, sum(sizes)
        numbers = (ctypes.c_int64 * len(sizes))(*sizes)
        self.steps = LIBRARY.make_steps(kind.encode(), len(sizes), numbers)

    def seconds(self, grads):
        places = (ctypes.c_void_p * len(grads))(*[each.data_ptr() for each in grads])
        return LIBRARY.seconds_of_step(self.steps, places)

    def counted(self):
        return LIBRARY.launches_of(self.steps), LIBRARY.compilations_of(self.steps)

    def bytes(self):
        """What a step moves of each element."""
        return LIBRARY.bytes_of_step(self.steps) / self.elements

    def close(self):
        LIBRARY.free_steps(self.steps)


class InPython:
    """Steps of an optimizer in Python."""

    dtype = torch.float32

    def __init__(self, make, sizes, **options):
        self.params = [torch.nn.Parameter(torch.rand(size)) for size in sizes]
        self.opt = make(self.params, **options)

    def seconds(self, grads):
        for param, grad in zip(self.params, grads):
            param.grad = grad
        begin = time.perf_counter()
        self.opt.step()
        return time.perf_counter() - begin

    def counted(self):
        counters = getattr(self.opt, "counters", None)
        return counters and (counters.launches, counters.compilations)

    def bytes(self):
        """What a step has to move of each element: a weight and what the optimizer
        keeps for it, both ways, and a gradient."""
        kept = sum(_bytes_of(each) for of_param in self.opt.state.values()
                   for each in of_param.values())
        params = sum(map(_bytes_of, self.params))
        return (3 * params + 2 * kept) / sum(param.numel() for param in self.params)

    def close(self):
        pass


def _bytes_of(value):
    if not isinstance(value, torch.Tensor):
        return 0
    if hasattr(value, "__tensor_flatten__"):  # made of others
        return sum(_bytes_of(getattr(value, name))
                   for name in value.__tensor_flatten__()[0])
    return value.numel() * value.element_size()


def _take_turn(step, sets, case):
    took = []
    while len(took) < _IN_A_ROW[case] and sum(took) < LONG:
        took.append(step.seconds(sets[len(took) % SETS]))
    return took


def _measure(case, variants):
    """Median seconds of each variant, what it counted, and bytes of an element."""
    sizes = CASES[case]
    steps = variants(sizes)
    sets = {dtype: [[torch.rand(size, dtype=dtype) for size in sizes]
                    for _ in range(SETS)]
            for dtype in {each.dtype for each in steps.values()}}
    times = {name: [] for name in steps}
    gc.disable()
    for turn in range(TURNS + 1):
        for name in random.sample(list(steps), len(steps)):
            took = _take_turn(steps[name], sets[steps[name].dtype], case)
            if turn > 0:  # in the first, kernels are compiled
                times[name] += took
    gc.enable()
    found = {name: (statistics.median(some), steps[name].counted(),
                    steps[name].bytes())
             for name, some in times.items()}
    for each in steps.values():
        each.close()
    return found


def facts():
    return {"device": LIBRARY.cpu().decode(), "threads": THREADS,
            "compiler": LIBRARY.compiler().decode(),
            "system": LIBRARY.operating_system().decode(),
            "date": datetime.date.today().isoformat(), "processes": PROCESSES}


def _good(*command):
    code, text = run(*command)
    if code != 0:
        sys.exit(f"{text}{command[0]} ended with {code}")
    return text


def _built(build, folder):
    """The module, built with an installed copy."""
    prefix, steps = folder / "installed", folder / "steps"
    _good("cmake", "--install", build, "--prefix", prefix)
    _good("cmake", "-S", HERE / "libtorch", "-B", steps, "-DCMAKE_BUILD_TYPE=Release",
          f"-DCMAKE_PREFIX_PATH={prefix}",
          f"-DPYTORCH={pathlib.Path(torch.__file__).parent}")
    _good("cmake", "--build", steps, "--target", "adapter_steps")
    return steps / "libadapter_steps.so"


def _load(path):
    library = ctypes.CDLL(str(path))
    library.make_steps.restype = ctypes.c_void_p
    library.make_steps.argtypes = [ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p]
    library.seconds_of_step.restype = ctypes.c_double
    library.seconds_of_step.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    for function in (library.launches_of, library.compilations_of,
                     library.bytes_of_step):
        function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_void_p]
    library.free_steps.argtypes = [ctypes.c_void_p]
    for function in (library.cpu, library.compiler, library.operating_system):
        function.restype = ctypes.c_char_p
    return library


def _prepare(build, steps):
    global LIBRARY
    sys.path.insert(0, f"{build}/python")
    LIBRARY = _load(steps)
    LIBRARY.set_threads(THREADS)


def _medians(runs):
    """Of what some processes found for a case."""
    return {name: (statistics.median(found[name][0] for found in runs),
                   *runs[0][name][1:])
            for name in runs[0]}


def _in_processes(script, build):
    """{case: what was found}, the medians of some processes."""
    with tempfile.TemporaryDirectory(prefix="fusebook-in-turns-") as folder:
        steps = _built(build, pathlib.Path(folder))
        # What packages compile, once for all processes.
        os.environ["TORCH_EXTENSIONS_DIR"] = folder
        runs = [json.loads(_good(sys.executable, "-B", script, build, "--once",
                                 steps).splitlines()[-1])
                for _ in range(PROCESSES)]
        _prepare(build, steps)
    return {case: _medians([each[case] for each in runs]) for case in runs[0]}


def main(script, variants, cases, shown):
    """Measures in several processes, each of them this script again; `shown` prints
    what was found and gives what the JSON file is to have."""
    if len(sys.argv) == 4 and sys.argv[2] == "--once":
        _prepare(sys.argv[1], sys.argv[3])
        print(json.dumps({case: _measure(case, variants) for case in cases}))
    elif 2 <= len(sys.argv) <= 3:
        result = shown(_in_processes(script, sys.argv[1]))
        for out in sys.argv[2:]:
            pathlib.Path(out).write_text(json.dumps(result))
    else:
        sys.exit(sys.modules["__main__"].__doc__)
