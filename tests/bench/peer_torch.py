"""Times PyTorch's Adam over the cases of the benchmark.

usage: peer_torch.py THREADS CASE_NAME SIZE:COUNT [SIZE:COUNT ...]

Prints one line a variant in the form that `bench` reads. Run it through
`./fusebook bench --peer torch`.
"""

import random
import statistics
import sys
import time

try:
    import torch
except ImportError as error:
    print(f"peer_torch: {sys.executable} cannot import torch ({error}); "
          "set FUSEBOOK_PYTHON to a Python that has PyTorch installed")
    sys.exit(3)

MIN_RUN_TIME = 0.2  # seconds for each variant, as in our own measurements
ROUNDS = 9


def make_optimizer(sizes, **options):
    params = [torch.rand(size) for size in sizes]
    for param in params:
        param.grad = torch.rand_like(param)
    return torch.optim.Adam(params, **options)


def compiled_step(sizes):
    optimizer = make_optimizer(sizes)
    return torch.compile(optimizer.step)


def make_variants(sizes):
    yield "for-loop", make_optimizer(sizes, foreach=False).step
    yield "foreach", make_optimizer(sizes, foreach=True).step
    yield "fused", make_optimizer(sizes, fused=True).step
    # One branch a tensor: above this, its compiler needs many minutes.
    if len(sizes) <= 200:
        yield "torch.compile", compiled_step(sizes)


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


def measure(variants):
    blocks = []
    for _, step in variants:
        step()
        step()
        blocks.append(block_size(step))
    times = [[] for _ in variants]
    order = list(range(len(variants)))
    while order:
        random.shuffle(order)
        for i in order:
            times[i].append(time_block(variants[i][1], blocks[i]))
        order = [
            i for i in order if len(times[i]) < ROUNDS
            or sum(times[i]) * blocks[i] < MIN_RUN_TIME
        ]
    return [statistics.median(t) for t in times]


def main():
    threads, name = int(sys.argv[1]), sys.argv[2]
    sizes = []
    for run in sys.argv[3:]:
        size, count = run.split(":")
        sizes += [int(size)] * int(count)
    torch.set_num_threads(threads)
    random.seed(0)
    variants = list(make_variants(sizes))
    for (variant, _), seconds in zip(variants, measure(variants)):
        print(f"reading\tstep\t{name}\ttorch {torch.__version__} {variant}\t"
              f"{seconds * 1e6:.9g}\t0")


if __name__ == "__main__":
    with torch.no_grad():
        main()
