"""How long a step of Adam takes over tensors of PyTorch: in PyTorch, here through
LibTorch's adapter and the Python package, and here over tensors of our own. All in
one process; each takes some steps in its turn, and the gradients of a step are at
other addresses than those of the step before. That is done in several processes, since
where one happens to put its tensors counts, too.

    python adapters.py BUILD [JSON]

`BUILD` has the library and the Python package; the module `adapter_steps` of the
project `libtorch` is built with an installed copy and this Python's PyTorch. Prints
medians of the processes; `JSON` is written in the form of the benchmark's.
"""

import ctypes
import datetime
import gc
import json
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
IN_A_ROW = {"10 x 1024 x 1024": 5, "1000 x 64": 40, "GPT-2 small": 2}
SETS = 3  # of gradients, one after the other
LIBRARY = None


def gpt2_small():
    """The parameters of GPT-2 small (Radford et al., 2019) in their order."""
    width = 768
    block = [width, width, 3 * width * width, 3 * width, width * width, width, width,
             width, 4 * width * width, 4 * width, 4 * width * width, width]
    return [50257 * width, 1024 * width, *block * 12, width, width]


CASES = {"10 x 1024 x 1024": [1024 * 1024] * 10, "1000 x 64": [64] * 1000,
         "GPT-2 small": gpt2_small()}


class Native:
    """Steps of the module in C++."""

    def __init__(self, kind, sizes):
        numbers = (ctypes.c_int64 * len(sizes))(*sizes)
        self.steps = LIBRARY.make_steps(kind.encode(), len(sizes), numbers)

    def seconds(self, grads):
        places = (ctypes.c_void_p * len(grads))(*[each.data_ptr() for each in grads])
        return LIBRARY.seconds_of_step(self.steps, places)

    def counted(self):
        return LIBRARY.launches_of(self.steps), LIBRARY.compilations_of(self.steps)

    def close(self):
        LIBRARY.free_steps(self.steps)


class InPython:
    """Steps of an optimizer in Python."""

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

    def close(self):
        pass


def variants(sizes):
    import fusebook

    version = f"torch {torch.__version__.partition('+')[0]}"
    return {
        f"{version} foreach": InPython(torch.optim.Adam, sizes, foreach=True),
        f"{version} fused": InPython(torch.optim.Adam, sizes, fused=True),
        f"{version} LibTorch": Native("torch", sizes),
        "LibTorch adapter": Native("adapter", sizes),
        "Python package": InPython(fusebook.Adam, sizes),
        "own tensors": Native("own", sizes),
    }


def measure(case):
    """Median seconds of each variant, and what it counted."""
    sizes = CASES[case]
    steps = variants(sizes)
    sets = [[torch.rand(size) for size in sizes] for _ in range(SETS)]
    times = {name: [] for name in steps}
    gc.disable()
    for turn in range(TURNS + 1):
        for name in random.sample(list(steps), len(steps)):
            took = [steps[name].seconds(sets[k % SETS]) for k in range(IN_A_ROW[case])]
            if turn > 0:  # in the first, kernels are compiled
                times[name] += took
    gc.enable()
    found = {name: (statistics.median(some), steps[name].counted())
             for name, some in times.items()}
    for each in steps.values():
        each.close()
    return found


def rows_of(case, found):
    least = found["own tensors"][0]
    return [{"case": case, "variant": name, "us": round(1e6 * seconds, 3),
             "ratio": seconds / least, "divided_by": "own tensors"}
            for name, (seconds, _) in found.items()]


def show(case, found):
    print(case)
    for name, (seconds, counted) in found.items():
        ratio = seconds / found["own tensors"][0]
        said = "" if not counted or not counted[0] else (
            f"{counted[0]} launches, {counted[1]} compilations")
        print(f"  {name:22} {1e6 * seconds:11.1f} us {ratio:8.3f}x  {said}")


def facts():
    return {"device": LIBRARY.cpu().decode(), "threads": THREADS,
            "compiler": LIBRARY.compiler().decode(),
            "system": LIBRARY.operating_system().decode(),
            "date": datetime.date.today().isoformat(), "processes": PROCESSES}


def good(*command):
    code, text = run(*command)
    if code != 0:
        sys.exit(f"{text}{command[0]} ended with {code}")
    return text


def built(build, folder):
    """The module, built with an installed copy."""
    prefix, steps = folder / "installed", folder / "steps"
    good("cmake", "--install", build, "--prefix", prefix)
    good("cmake", "-S", HERE / "libtorch", "-B", steps, "-DCMAKE_BUILD_TYPE=Release",
         f"-DCMAKE_PREFIX_PATH={prefix}",
         f"-DPYTORCH={pathlib.Path(torch.__file__).parent}")
    good("cmake", "--build", steps, "--target", "adapter_steps")
    return steps / "libadapter_steps.so"


def load(path):
    library = ctypes.CDLL(str(path))
    library.make_steps.restype = ctypes.c_void_p
    library.make_steps.argtypes = [ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p]
    library.seconds_of_step.restype = ctypes.c_double
    library.seconds_of_step.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    for function in (library.launches_of, library.compilations_of):
        function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_void_p]
    library.free_steps.argtypes = [ctypes.c_void_p]
    for function in (library.cpu, library.compiler, library.operating_system):
        function.restype = ctypes.c_char_p
    return library


def prepare(build, steps):
    global LIBRARY
    sys.path.insert(0, f"{build}/python")
    LIBRARY = load(steps)
    LIBRARY.set_threads(THREADS)


def measure_once(build, steps):
    """All cases in this process, for the one that started it."""
    prepare(build, steps)
    print(json.dumps({case: measure(case) for case in CASES}))


def medians(runs):
    """Of what some processes found for a case."""
    return {name: (statistics.median(found[name][0] for found in runs), runs[0][name][1])
            for name in runs[0]}


def main(build, out=None):
    with tempfile.TemporaryDirectory(prefix="fusebook-adapters-") as folder:
        steps = built(build, pathlib.Path(folder))
        runs = [json.loads(good(sys.executable, "-B", __file__, build, "--once", steps))
                for _ in range(PROCESSES)]
        prepare(build, steps)
    rows = []
    for case in CASES:
        found = medians([each[case] for each in runs])
        show(case, found)
        rows += rows_of(case, found)
    if out:
        others = ("tail", "gradients", "groups", "memory", "host", "compile")
        result = {**facts(), "rows": rows, **{name: [] for name in others}}
        pathlib.Path(out).write_text(json.dumps(result))


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[2] == "--once":
        measure_once(sys.argv[1], sys.argv[3])
    elif 2 <= len(sys.argv) <= 3:
        main(*sys.argv[1:])
    else:
        sys.exit(__doc__)
