"""Writes tests/support/torch_adafactor.inc: what torch's Adafactor makes of small
tensors of several shapes.

usage: torch_adafactor.py > torch_adafactor.inc

Needs PyTorch 2.15. Parameters and gradients are made of small integers, so that the
test makes the same.
"""

import math

import torch

torch.set_num_threads(1)

SHAPES = [(5, 3), (4,), (), (2, 3, 4), (1, 6), (6, 1), (67, 2)]
STATES = ["row_var", "col_var", "variance"]
STEPS = 5

# Options, and a number that the first gradient of each tensor has in its middle.
CASES = [
    ({}, None),
    ({"lr": 0.3, "beta2_decay": -0.5, "d": 2.0}, None),
    ({"lr": 0.05, "weight_decay": 0.1, "maximize": True}, None),
    ({"lr": 0.5, "eps": (0.25, 0.5), "weight_decay": 0.01}, None),
    ({"lr": 0.1, "eps": (1e-8, 10.0), "beta2_decay": 0.0}, None),
    ({"lr": 0.1}, math.nan),
    ({"lr": 0.1}, math.inf),
]


def param_of(numel):
    return [((i * 37 + 11) % 101 - 50) / 64 for i in range(numel)]


def grad_of(numel, step):
    return [((i * 29 + step * 17 + 5) % 89 - 44) / 32 for i in range(numel)]


def number(value):
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return f"{value:.17g}" if value != int(value) else f"{value:g}"


def numbers(tensor):
    values = tensor.detach().double().reshape(-1).tolist()
    return "{" + ", ".join(number(value) for value in values) + "}"


def run(options, odd, dtype, shape):
    numel = math.prod(shape)
    param = torch.tensor(param_of(numel)).to(dtype).reshape(shape)
    param.requires_grad_(True)
    optimizer = torch.optim.Adafactor([param], foreach=False, **options)
    for step in range(STEPS):
        grad = grad_of(numel, step)
        if odd is not None and step == 0:
            grad[numel // 2] = odd
        param.grad = torch.tensor(grad).to(dtype).reshape(shape)
        optimizer.step()
    yield "param", param
    for name in STATES:
        if name in optimizer.state[param]:
            yield name, optimizer.state[param][name]


def main():
    print("// What torch 2.15 gives. Written by interop/torch_adafactor.py.")
    print("// clang-format off")
    for options, odd in CASES:
        eps = options.get("eps", (None, 1e-3))
        settings = {"lr": 1e-2, "beta2_decay": -0.8, "d": 1.0, "weight_decay": 0.0,
                    "maximize": 0.0, **options,
                    "eps0": -1.0 if eps[0] is None else eps[0], "eps1": eps[1]}
        settings.pop("eps", None)
        chosen = ", ".join(f'{{"{k}", {float(v):g}}}' for k, v in settings.items())
        middle = "0" if odd is None else number(odd)
        for dtype in (torch.float64, torch.float32):
            for shape in SHAPES:
                sizes = ", ".join(map(str, shape))
                print(f"CASE({str(dtype)[6:]}, ({{{sizes}}}), {middle}, "
                      f"({{{chosen}}}),")
                results = run(options, odd, dtype, shape)
                print(",\n".join(f'     {{"{k}", {numbers(v)}}}'
                                 for k, v in results) + ")")


if __name__ == "__main__":
    main()
