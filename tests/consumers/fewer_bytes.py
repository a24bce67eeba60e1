"""How long a step of AdamW takes, and how many bytes it moves, by how weights and
states are stored: here, and in the 8-bit optimizers and the fused ones that others
have for a CPU. All in one process, in turns; see in_turns.py.

    python fewer_bytes.py BUILD [JSON]

`BUILD` is as for adapters.py. Beside PyTorch, bitsandbytes, torchao and DeepSpeed are
measured where this Python has them. Prints medians of the processes, which `JSON` has
with the versions.
"""

import importlib
import importlib.metadata
import os
import sys

import torch
from in_turns import TORCH, InPython, Native, facts, main

CASES = ("10 x 1024 x 1024", "1000 x 64")
OTHERS = (("deepspeed", "deepspeed.ops.adam", "DeepSpeedCPUAdam"),
          ("bitsandbytes", "bitsandbytes.optim", "AdamW8bit"),
          ("torchao", "torchao.optim", "AdamW8bit"))
HERE_IN = {"float32": torch.float32, "8-bit states": torch.float32,
           "split, 8-bit states": torch.bfloat16,
           "stochastic, 8-bit states": torch.bfloat16}
PLAIN = "here, float32"


def others(sizes):
    """Of other packages; what is not installed is left out."""
    for package, module, name in OTHERS:
        try:
            make = getattr(importlib.import_module(module), name)
        except ImportError as error:
            print(f"left out: {package} ({error})", file=sys.stderr)
            continue
        version = importlib.metadata.version(package)
        yield f"{package} {version} {name}", InPython(make, sizes)


def variants(sizes):
    return {f"{TORCH} fused": InPython(torch.optim.AdamW, sizes, fused=True),
            **dict(others(sizes)),
            **{f"here, {storage}": Native(f"own {storage}", sizes, dtype)
               for storage, dtype in HERE_IN.items()}}


def shown(found):
    rows = []
    for case, measured in found.items():
        print(case)
        for name, (seconds, _, moved) in measured.items():
            ratio = seconds / measured[PLAIN][0]
            print(f"  {name:40} {moved:6.2f} bytes {1e6 * seconds:11.1f} us "
                  f"{ratio:8.3f}x")
            rows.append({"case": case, "variant": name, "bytes": moved,
                         "us": round(1e6 * seconds, 3)})
    return {**facts(), "rows": rows}


if __name__ == "__main__":
    # Packages look for the ninja of this Python there.
    os.environ["PATH"] = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    main(__file__, variants, CASES, shown)
