"""Times PyTorch over the cases of the benchmark: its Adam, or the whole tail of a
step around its fused Adam.

usage: peer_torch.py {step|tail} THREADS CASE_NAME SIZE:COUNT [SIZE:COUNT ...]

Prints one line per variant in the form that `bench` reads, and the most memory it
held. Run it through `./fusebook bench --peer torch`.
"""

import random
import resource
import statistics
import sys
import time

try:
    import torch
except ImportError as error:
    print(f"peer_torch: {sys.executable} cannot import torch ({error}); "
          "set FUSEBOOK_PYTHON_TORCH to a Python that has PyTorch installed")
    sys.exit(3)

MIN_RUN_TIME = 0.2  # seconds for each variant, as in our own measurements
ROUNDS = 9
LARGE = 1 << 26  # elements; from here on variants are made one after the other
MAX_NORM = 1e30  # never reached, so that gradients do not fade from step to step


def make_params(sizes):
    params = [torch.rand(size) for size in sizes]
    for param in params:
        param.grad = torch.rand_like(param)
    return params


def steps_of(params):
    """Name and maker of each step; all update the same parameters."""
    adam = torch.optim.Adam
    found = [
        ("for-loop", lambda: adam(params, foreach=False).step),
        ("foreach", lambda: adam(params, foreach=True).step),
        ("fused", lambda: adam(params, fused=True).step),
    ]
    # One branch a tensor: above this, its compiler needs many minutes.
    if len(params) <= 200:
        found.append(
            ("torch.compile", lambda: torch.compile(adam(params).step)))
    return found


class Tail:
    """What surrounds a step: clipping, averaging and, with a scaler, dividing by
    its scale and skipping."""

    def __init__(self, params):
        self.params = params
        self.adam = torch.optim.Adam(params, fused=True)
        self.model = torch.nn.ParameterList(params)
        self.averages = torch.optim.swa_utils.AveragedModel(
            self.model,
            multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn())
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1,
                                           growth_interval=1_000_000_000)
        self.scaler.scale(torch.ones(()))  # makes its tensors

    def clipped(self):
        torch.nn.utils.clip_grad_norm_(self.params, MAX_NORM)
        self.adam.step()
        self.averages.update_parameters(self.model)

    def scaled(self):
        self.scaler.unscale_(self.adam)
        torch.nn.utils.clip_grad_norm_(self.params, MAX_NORM)
        self.scaler.step(self.adam)
        self.averages.update_parameters(self.model)
        self.scaler.update()


def tails_of(params):
    return [("clip, Adam, average", lambda: Tail(params).clipped),
            ("whole tail", lambda: Tail(params).scaled)]


VARIANTS = {"step": steps_of, "tail": tails_of}


def block_size(step):
    """Calls in a block, so that reading the clock does not count."""
    calls = 1
    while True:
        begin = time.perf_counter()
        for _ in range(calls):
            step()
        if time.perf_counter() - begin >= MIN_RUN_TIME / 1000:
            return calls
        calls *= 10


def time_block(step, calls):
    begin = time.perf_counter()
    for _ in range(calls):
        step()
    return (time.perf_counter() - begin) / calls


def measure(steps):
    blocks = []
    for step in steps:
        step()
        step()
        blocks.append(block_size(step))
    times = [[] for _ in steps]
    order = list(range(len(steps)))
    while order:
        random.shuffle(order)
        for i in order:
            times[i].append(time_block(steps[i], blocks[i]))
        order = [
            i for i in order if len(times[i]) < ROUNDS
            or sum(times[i]) * blocks[i] < MIN_RUN_TIME
        ]
    return [statistics.median(t) for t in times]


def main():
    kind, threads, name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    sizes = []
    for run in sys.argv[4:]:
        size, count = run.split(":")
        sizes += [int(size)] * int(count)
    torch.set_num_threads(threads)
    random.seed(0)
    version = torch.__version__.partition("+")[0]  # without the build's name
    variants = VARIANTS[kind](make_params(sizes))
    one_by_one = sum(sizes) >= LARGE
    for some in [[v] for v in variants] if one_by_one else [variants]:
        steps = [make() for _, make in some]
        for (variant, _), seconds in zip(some, measure(steps)):
            print(f"reading\t{kind}\t{name}\ttorch {version} {variant}\t"
                  f"{seconds * 1e6:.9g}\t0")
        del steps
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"reading\tmemory\t{name}\tpeak of PyTorch, {kind}\t0\t{peak}")


if __name__ == "__main__":
    with torch.no_grad():
        main()
