"""How long a step of Adam takes here and in torch.optim, in one process.

    python speed.py [BUILD]

Gradients are new tensors, at addresses of their own, in each step. Prints the
least of many steps, in microseconds.
"""

import time

import support  # noqa: F401  first: it finds the package

import fusebook
import torch

WAYS = {"fusebook": (fusebook.Adam, {}),
        "torch, foreach": (torch.optim.Adam, {"foreach": True}),
        "torch, fused": (torch.optim.Adam, {"fused": True})}
SIZES = {"1,000 x 64": ([64] * 1000, 100), "10 x 1024 x 1024": ([1024**2] * 10, 10)}


class Run:
    def __init__(self, make, options, sizes):
        self.params = [torch.nn.Parameter(torch.rand(size)) for size in sizes]
        self.opt = make(self.params, lr=1e-3, **options)
        self.least = float("inf")
        self.places = set()

    def step(self):
        old = [each.grad for each in self.params]  # so that none is reused
        for each in self.params:
            each.grad = torch.rand_like(each)
        self.places.add(self.params[0].grad.data_ptr())
        begin = time.perf_counter()
        self.opt.step()
        self.least = min(self.least, time.perf_counter() - begin)
        del old


def main():
    torch.set_num_threads(2)
    for title, (sizes, steps) in SIZES.items():
        runs = {name: Run(make, options, sizes)
                for name, (make, options) in WAYS.items()}
        for _ in range(steps):  # in turns
            for run in runs.values():
                run.step()
        print(title)
        ours = runs["fusebook"]
        for name, run in runs.items():
            print(f"  {name:15} {1e6 * run.least:9.1f} us "
                  f"{run.least / ours.least:7.2f}x, "
                  f"gradients at {len(run.places)} addresses")
        counters = ours.opt.counters
        print(f"  {counters.launches} launches, {counters.compilations} compilations")


if __name__ == "__main__":
    main()
