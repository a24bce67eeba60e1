"""Writes tests/support/torch_optimizers.inc: what torch's optimizers make of numbers
near the ends of the range.

usage: ATEN_CPU_CAPABILITY=default torch_optimizers.py > torch_optimizers.inc

Needs PyTorch 2.15. "default" is its code without contraction, which this
library does not do either. State of one number a parameter is float64, as here.
"""

import itertools
import math

import torch

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

LR = 0.1
STEPS = 2
# RAdam needs six steps until it trusts its second moments.
LONG_STEPS = 7

STATES = {
    "SGD": ["momentum_buffer"],
    "Adam": ["exp_avg", "exp_avg_sq", "max_exp_avg_sq"],
    "NAdam": ["exp_avg", "exp_avg_sq", "mu_product"],
    "RAdam": ["exp_avg", "exp_avg_sq"],
    "Adamax": ["exp_avg", "exp_inf"],
    "Adagrad": ["sum"],
    "Adadelta": ["square_avg", "acc_delta"],
    "RMSprop": ["square_avg", "grad_avg", "momentum_buffer"],
    "Rprop": ["prev", "step_size"],
    "ASGD": ["ax", "eta", "mu"],
}
PAIRS = {"betas": (0.9, 0.999), "etas": (0.5, 1.2), "step_sizes": (1e-6, 50)}

CASES = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "nesterov": 1}),
    ("SGD", {"momentum": 0.5, "dampening": 1, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9, "lr": 1e30, "maximize": 1}),
    ("Adam", {}),
    ("Adam", {"amsgrad": 1, "maximize": 1}),
    ("Adam", {"weight_decay": 0.1, "eps": 0}),
    ("Adam", {"weight_decay": 0.1, "decoupled_weight_decay": 1, "betas0": 0.3}),
    ("Adam", {"betas0": 0, "betas1": 0}),
    ("Adam", {"lr": 1e-30}),
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "betas0": 0.3, "betas1": 0.5}),
    ("NAdam", {"lr": 1e30, "maximize": 1}),
    ("RAdam", {}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": 1}),
    ("RAdam", {"lr": 1e30}),
    ("Adamax", {}),
    ("Adamax", {"weight_decay": 0.1, "maximize": 1}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 1e30, "lr_decay": 0.1, "initial_accumulator_value": 1}),
    ("Adadelta", {}),
    ("Adadelta", {"rho": 1, "weight_decay": 0.1}),
    ("Adadelta", {"rho": 0, "lr": 1e30, "eps": 1e-3}),
    ("RMSprop", {}),
    ("RMSprop", {"centered": 1, "momentum": 0.5, "alpha": 0.9}),
    ("RMSprop", {"alpha": 1, "weight_decay": 0.1}),
    ("Rprop", {}),
    ("Rprop", {"lr": 1e-30, "step_sizes0": 0, "step_sizes1": 1e38}),
    ("ASGD", {}),
    ("ASGD", {"lr": 1e-30, "t0": 0, "lambd": 1e20, "weight_decay": 0.1}),
]

# Each parameter, then the gradients that it gets in turn.
NARROW = [
    (1, 1e20, 1e20), (1, -1e20, 1), (1, 3e18, -1e20), (1, 2e38, 2e38),
    (-2, 1e-20, 1e-20), (1, 1e-30, 1), (1, 0, 0), (1, 1e-40, 1e-40),
    (2e38, 1, -1), (1e20, -1e20, -1e20), (1e-30, 1e-30, 1e-30),
    (0, 1e38, 1e-38), (1, math.inf, 1), (1, 1, -math.inf), (1, math.nan, 1),
    (math.inf, 1, 1),
]
WIDE = [
    (1, 1e160, 1e160), (1, -1e155, 1), (1, 1e308, 1e308), (1, 1e-160, 1e-160),
    (1, 1e-200, 1), (1, 5e-324, 5e-324), (1e300, 1, -1), (1e20, -1e20, -1e20),
    (0, 1e308, 1e-308),
]


def make(kind, settings, param):
    options = {"lr": LR}
    pairs = {}
    for name, value in settings.items():
        if name[:-1] in PAIRS:
            pair = pairs.setdefault(name[:-1], list(PAIRS[name[:-1]]))
            pair[int(name[-1])] = float(value)
        elif name in ("maximize", "amsgrad", "nesterov", "centered",
                      "decoupled_weight_decay"):
            options[name] = bool(value)
        else:
            options[name] = float(value)
    options.update({name: tuple(pair) for name, pair in pairs.items()})
    return getattr(torch.optim, kind)([param], foreach=True, **options)


def number(value):
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return f"{value:.4g}"


def numbers(tensor):
    values = torch.as_tensor(tensor).double().reshape(-1).tolist()
    return "{" + ", ".join(number(value) for value in values) + "}"


def run(kind, settings, dtype, elements):
    rows = torch.tensor(elements).to(dtype)
    param = rows[:, 0].clone().requires_grad_(True)
    optimizer = make(kind, settings, param)
    steps = LONG_STEPS if kind == "RAdam" else STEPS
    for step in range(steps):
        param.grad = rows[:, 1 + step % 2].clone()
        optimizer.step()
    yield "param", param.detach()
    for name in STATES[kind]:
        state = optimizer.state[param].get(name)
        if state is not None:
            yield name, state


def main():
    print("// What torch 2.15 gives. Written by interop/torch_optimizers.py.")
    print("// clang-format off")
    for name, elements in (("NARROW", NARROW), ("WIDE", WIDE)):
        rows = ", ".join("{" + ", ".join(map(number, row)) + "}"
                         for row in elements)
        print(f"{name}({rows})")
    for (kind, settings), dtype in itertools.product(
            CASES, (torch.float32, torch.bfloat16, torch.float64)):
        elements = WIDE if dtype == torch.float64 else NARROW
        steps = LONG_STEPS if kind == "RAdam" else STEPS
        chosen = {"lr": LR, **settings}
        options = ", ".join(f'{{"{k}", {v:g}}}' for k, v in chosen.items())
        print(f"CASE({kind}, {str(dtype)[6:]}, {steps}, ({{{options}}}),")
        results = run(kind, settings, dtype, elements)
        print(",\n".join(f'     {{"{k}", {numbers(v)}}}' for k, v in results)
              + ")")


if __name__ == "__main__":
    main()
