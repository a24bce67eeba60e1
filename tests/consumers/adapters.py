"""How long a step of Adam takes over tensors of PyTorch: in PyTorch, here through
LibTorch's adapter and the Python package, and here over tensors of our own. All in
one process, in turns; see in_turns.py.

    python adapters.py BUILD [JSON]

`BUILD` has the library and the Python package; the module `adapter_steps` of the
project `libtorch` is built with an installed copy and this Python's PyTorch. Prints
medians of the processes; `JSON` is written in the form of the benchmark's.
"""

import torch
from in_turns import CASES, TORCH, InPython, Native, facts, main


def variants(sizes):
    import fusebook

    return {
        f"{TORCH} foreach": InPython(torch.optim.Adam, sizes, foreach=True),
        f"{TORCH} fused": InPython(torch.optim.Adam, sizes, fused=True),
        f"{TORCH} LibTorch": Native("torch", sizes),
        "LibTorch adapter": Native("adapter", sizes),
        "Python package": InPython(fusebook.Adam, sizes),
        "own tensors": Native("own", sizes),
    }


def rows_of(case, found):
    least = found["own tensors"][0]
    return [{"case": case, "variant": name, "us": round(1e6 * seconds, 3),
             "ratio": seconds / least, "divided_by": "own tensors"}
            for name, (seconds, *_) in found.items()]


def show(case, found):
    print(case)
    for name, (seconds, counted, _) in found.items():
        ratio = seconds / found["own tensors"][0]
        said = "" if not counted or not counted[0] else (
            f"{counted[0]} launches, {counted[1]} compilations")
        print(f"  {name:22} {1e6 * seconds:11.1f} us {ratio:8.3f}x  {said}")


def shown(found):
    rows = []
    for case in found:
        show(case, found[case])
        rows += rows_of(case, found[case])
    others = ("tail", "gradients", "groups", "memory", "host", "compile")
    return {**facts(), "rows": rows, **{name: [] for name in others}}


if __name__ == "__main__":
    main(__file__, variants, CASES, shown)
