"""Times PyTorch's Adam on a GPU.

    peer_torch.py DEVICE GROUP CASE_NAME SIZE:COUNT [SIZE:COUNT ...]

GROUP is "eager" (fused, foreach, for-loop), "compile-max-autotune" or
"compile-default". Prints a line of JSON for each variant as soon as it is
measured: wall clock with many steps asked for and one wait, the time between
two events around them, and the host's time of a step. Ends with exit code 3
where PyTorch is not installed or has no such device.
"""

import json
import statistics
import sys
import time

NOT_INSTALLED = 3
BLOCK = 0.02  # seconds of the calls that are waited for at once
ROUNDS = 9
AHEAD = 50  # calls that surely do not fill the queue of the device
MOST_FOR_LOOP = 1000  # tensors

try:
    import torch
except ImportError as error:
    print(f"{sys.executable} cannot import torch ({error}); set "
          "FUSEBOOK_PYTHON_TORCH to a Python that has PyTorch")
    sys.exit(NOT_INSTALLED)


class Timer:
    """Times calls on the GPU."""

    def __init__(self):
        self.begin = torch.cuda.Event(enable_timing=True)
        self.end = torch.cuda.Event(enable_timing=True)

    def run(self, step, calls):
        """Seconds a call: wall, between events, on the host."""
        torch.cuda.synchronize()
        start = time.perf_counter()
        self.begin.record()
        for _ in range(calls):
            step()
        asked = time.perf_counter()
        self.end.record()
        torch.cuda.synchronize()
        done = time.perf_counter()
        return ((done - start) / calls,
                self.begin.elapsed_time(self.end) * 1e-3 / calls,
                (asked - start) / calls)

    def measure(self, step):
        """Medians in microseconds."""
        self.run(step, 3)
        once = self.run(step, 1)[0]
        calls = int(min(max(BLOCK / once, 1), 20000))
        rounds = [self.run(step, calls) for _ in range(ROUNDS)]
        ahead = [self.run(step, min(calls, AHEAD)) for _ in range(ROUNDS)]
        wall, events, _ = (statistics.median(values) * 1e6
                           for values in zip(*rounds))
        host = statistics.median(values[2] for values in ahead) * 1e6
        return {"us": wall, "event_us": events, "host_us": host}


def make_step(sizes, device, **options):
    params = [torch.rand(size, device=device) for size in sizes]
    for param in params:
        param.grad = torch.rand_like(param)
    return torch.optim.Adam(params, **options).step


def tell(case, variant, **figures):
    print(json.dumps({"case": case, "variant": f"torch {variant}",
                      "torch": torch.__version__, **figures}), flush=True)


def measure_eager(case, sizes, device):
    for variant, options in (("fused", {"fused": True}),
                             ("foreach", {"foreach": True}),
                             ("for-loop", {"foreach": False})):
        if variant == "for-loop" and len(sizes) > MOST_FOR_LOOP:
            continue
        step = make_step(sizes, device, **options)
        tell(case, variant, **Timer().measure(step))


def compiled(sizes, device, mode, fullgraph):
    """A compiled step after its first calls, and the seconds they took."""
    torch._dynamo.reset()
    step = make_step(sizes, device, foreach=True, capturable=True)
    made = torch.compile(step, mode=mode, fullgraph=fullgraph)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    made()
    made()  # the state is there from now on, which compiles again
    torch.cuda.synchronize()
    return made, time.perf_counter() - begin


def measure_compiled(case, sizes, device, mode):
    name = mode or "default"
    try:
        fullgraph = True
        step, seconds = compiled(sizes, device, mode, fullgraph)
    except Exception as error:  # whatever this version cannot do in one graph
        print(f"fullgraph=True failed: {type(error).__name__}", flush=True)
        fullgraph = False
        step, seconds = compiled(sizes, device, mode, fullgraph)
    tell(case, f"compile, {name}", **Timer().measure(step),
         compile_ms=seconds * 1e3, fullgraph=fullgraph)


def main():
    device, group, case = sys.argv[1:4]
    sizes = []
    for run in sys.argv[4:]:
        size, count = run.split(":")
        sizes += [int(size)] * int(count)
    if not torch.cuda.is_available():
        print("this PyTorch has no CUDA device")
        sys.exit(NOT_INSTALLED)
    torch.cuda.set_device(torch.device(device).index or 0)
    if group == "eager":
        measure_eager(case, sizes, device)
    else:
        modes = {"compile-max-autotune": "max-autotune-no-cudagraphs",
                 "compile-default": None}
        measure_compiled(case, sizes, device, modes[group])


if __name__ == "__main__":
    with torch.no_grad():
        main()
