"""Times PyTorch's Adam over the cases of the benchmark, alone or with all that
comes around a step.

usage: peer_torch.py step|tail THREADS CASE_NAME SIZE:COUNT [SIZE:COUNT ...]

Prints one line a variant in the form that `bench` reads, and the most memory it
held. Run it through `./fusebook bench --peer torch`.
"""

import random
import resource
import statistics
import sys
import time

try:
    import torch
    from torch.optim import swa_utils
except ImportError as error:
    print(f"peer_torch: {sys.executable} cannot import torch ({error}); "
          "set FUSEBOOK_PYTHON to a Python that has PyTorch installed")
    sys.exit(3)

MIN_RUN_TIME = 0.2  # seconds for each variant, as in our own measurements
ROUNDS = 9
LARGE = 1 << 26  # elements; from here on variants are made one after the other
MAX_NORM = 1e30  # never reached, so that gradients do not fade


def make_params(sizes):
    params = [torch.rand(size) for size in sizes]
    for param in params:
        param.grad = torch.rand_like(param)
    return params


class Model(torch.nn.Module):
    """Parameters whose gradients are there, and stay as they are."""

    def __init__(self, params):
        super().__init__()
        self.params = torch.nn.ParameterList(
            torch.nn.Parameter(each, requires_grad=False) for each in params)
        for kept, each in zip(self.params, params):
            kept.grad = each.grad


def tails_of(params):
    """Like `steps_of`, with the norm of all gradients, clipping and an average,
    and with a GradScaler that has to unscale first."""
    model = Model(params)

    def tail(scaler):
        params = list(model.parameters())
        adam = torch.optim.Adam(params, fused=True)
        averaged = swa_utils.AveragedModel(
            model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn())
        scaler.scale(torch.zeros(()))  # where its scale is made

        def step():
            scaler.unscale_(adam)
            torch.nn.utils.clip_grad_norm_(params, MAX_NORM)
            scaler.step(adam)
            scaler.update()
            averaged.update_parameters(model)

        return step

    def scaler(enabled):
        return torch.amp.GradScaler("cpu", init_scale=1.0, enabled=enabled,
                                    growth_interval=10**9)

    return [
        ("clip, fused, average", lambda: tail(scaler(False))),
        ("unscale, clip, fused, average", lambda: tail(scaler(True))),
    ]


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


KINDS = {"step": steps_of, "tail": tails_of}


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
    variants = KINDS[kind](make_params(sizes))
    one_by_one = sum(sizes) >= LARGE
    for some in [[v] for v in variants] if one_by_one else [variants]:
        steps = [make() for _, make in some]
        for (variant, _), seconds in zip(some, measure(steps)):
            print(f"reading\t{kind}\t{name}\ttorch {torch.__version__} "
                  f"{variant}\t{seconds * 1e6:.9g}\t0")
        del steps
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if kind == "step":
        print(f"reading\tmemory\t{name}\tpeak of PyTorch\t0\t{peak}")


if __name__ == "__main__":
    with torch.no_grad():
        main()
