"""The optimizers of torch.optim, with its names, arguments and defaults; and AdEMAMix,
LAMB and LARS, which torch does not have.

`foreach`, `fused` and `capturable` are taken and change nothing: a step is one
launch in any case, but for Adafactor's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ._optimizer import Optimizer


class Adadelta(Optimizer):
    """torch.optim.Adadelta, in one launch."""

    _name = "Adadelta"

    def __init__(self, params: Iterable[Any], lr: float = 1.0, rho: float = 0.9,
                 eps: float = 1e-6, weight_decay: float = 0,
                 foreach: bool | None = None, *, capturable: bool = False,
                 maximize: bool = False, differentiable: bool = False) -> None:
        super().__init__(params, dict(lr=lr, rho=rho, eps=eps,
            weight_decay=weight_decay, foreach=foreach, capturable=capturable,
            maximize=maximize, differentiable=differentiable))


class Adafactor(Optimizer):
    """torch.optim.Adafactor. Means of rows and columns are launches of their own, so
    that a step with matrices is four."""

    _name = "Adafactor"
    _counts = {"eps": 2}

    def __init__(self, params: Iterable[Any], lr: float = 1e-2,
                 beta2_decay: float = -0.8,
                 eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0,
                 weight_decay: float = 0.0, *, foreach: bool | None = None,
                 maximize: bool = False) -> None:
        super().__init__(params, dict(lr=lr, beta2_decay=beta2_decay, eps=eps, d=d,
            weight_decay=weight_decay, foreach=foreach, maximize=maximize))

    def _options_of(self, group: dict[str, Any]) -> dict[str, Any]:
        eps = group.get("eps")
        if isinstance(eps, (tuple, list)) and len(eps) == 2 and eps[0] is None:
            group = {**group, "eps": (-1.0, eps[1])}  # AdafactorOptions::none
        return super()._options_of(group)


class Adagrad(Optimizer):
    """torch.optim.Adagrad, in one launch."""

    _name = "Adagrad"

    def __init__(self, params: Iterable[Any], lr: float = 1e-2, lr_decay: float = 0,
                 weight_decay: float = 0, initial_accumulator_value: float = 0,
                 eps: float = 1e-10, foreach: bool | None = None, *,
                 maximize: bool = False, differentiable: bool = False,
                 fused: bool | None = None) -> None:
        super().__init__(params, dict(lr=lr, lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value, eps=eps,
            foreach=foreach, maximize=maximize, differentiable=differentiable,
            fused=fused))


class Adam(Optimizer):
    """torch.optim.Adam, in one launch."""

    _name = "Adam"

    def __init__(self, params: Iterable[Any], lr: float = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, amsgrad: bool = False, *,
                 foreach: bool | None = None, maximize: bool = False,
                 capturable: bool = False, differentiable: bool = False,
                 fused: bool | None = None,
                 decoupled_weight_decay: bool = False) -> None:
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps,
            weight_decay=weight_decay, amsgrad=amsgrad, foreach=foreach,
            maximize=maximize, capturable=capturable, differentiable=differentiable,
            fused=fused, decoupled_weight_decay=decoupled_weight_decay))


class AdamW(Optimizer):
    """torch.optim.AdamW, in one launch."""

    _name = "AdamW"

    def __init__(self, params: Iterable[Any], lr: float = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *,
                 maximize: bool = False, foreach: bool | None = None,
                 capturable: bool = False, differentiable: bool = False,
                 fused: bool | None = None) -> None:
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps,
            weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize,
            foreach=foreach, capturable=capturable, differentiable=differentiable,
            fused=fused, decoupled_weight_decay=True))


class Adamax(Optimizer):
    """torch.optim.Adamax, in one launch."""

    _name = "Adamax"

    def __init__(self, params: Iterable[Any], lr: float = 2e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, foreach: bool | None = None, *,
                 maximize: bool = False, differentiable: bool = False,
                 capturable: bool = False) -> None:
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps,
            weight_decay=weight_decay, foreach=foreach, maximize=maximize,
            differentiable=differentiable, capturable=capturable))


class AdEMAMix(Optimizer):
    """AdEMAMix (Pagliardini, Ablin and Grangier, 2024), in one launch: AdamW with a
    second average of the gradients, which forgets far more slowly. Its weight and its
    decay grow in the first `t_alpha` and `t_beta3` steps."""

    _name = "AdEMAMix"
    _counts = {"betas": 3}

    def __init__(self, params: Iterable[Any], lr: float = 1e-3,
                 betas: tuple[float, float, float] = (0.9, 0.999, 0.9999),
                 alpha: float = 5.0, t_alpha: int | None = None,
                 t_beta3: int | None = None, eps: float = 1e-8,
                 weight_decay: float = 1e-2, *, maximize: bool = False) -> None:
        super().__init__(params, dict(lr=lr, betas=betas, alpha=alpha,
            t_alpha=t_alpha or 0, t_beta3=t_beta3 or 0, eps=eps,
            weight_decay=weight_decay, maximize=maximize))


class ASGD(Optimizer):
    """torch.optim.ASGD, in one launch."""

    _name = "ASGD"

    def __init__(self, params: Iterable[Any], lr: float = 1e-2, lambd: float = 1e-4,
                 alpha: float = 0.75, t0: float = 1e6, weight_decay: float = 0,
                 foreach: bool | None = None, maximize: bool = False,
                 differentiable: bool = False, capturable: bool = False) -> None:
        super().__init__(params, dict(lr=lr, lambd=lambd, alpha=alpha, t0=t0,
            weight_decay=weight_decay, foreach=foreach, maximize=maximize,
            differentiable=differentiable, capturable=capturable))


class LAMB(Optimizer):
    """LAMB (You and others, 2020), in one launch: the direction of AdamW, as long for
    each tensor as the tensor itself."""

    _name = "LAMB"

    def __init__(self, params: Iterable[Any], lr: float = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-6,
                 weight_decay: float = 1e-2, bias_correction: bool = True, *,
                 maximize: bool = False) -> None:
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps,
            weight_decay=weight_decay, bias_correction=bias_correction,
            maximize=maximize))


class LARS(Optimizer):
    """LARS (You, Gitman and Ginsburg, 2017), in one launch: gradient descent whose
    rate is, for each tensor, the ratio of its norm and that of its gradient."""

    _name = "LARS"

    def __init__(self, params: Iterable[Any], lr: float = 1.0, momentum: float = 0.9,
                 weight_decay: float = 0, trust_coefficient: float = 1e-3,
                 eps: float = 1e-8, nesterov: bool = False, *,
                 maximize: bool = False) -> None:
        super().__init__(params, dict(lr=lr, momentum=momentum,
            weight_decay=weight_decay, trust_coefficient=trust_coefficient, eps=eps,
            nesterov=nesterov, maximize=maximize))


class NAdam(Optimizer):
    """torch.optim.NAdam, in one launch."""

    _name = "NAdam"

    def __init__(self, params: Iterable[Any], lr: float = 2e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, momentum_decay: float = 4e-3,
                 decoupled_weight_decay: bool = False, *,
                 foreach: bool | None = None, maximize: bool = False,
                 capturable: bool = False, differentiable: bool = False) -> None:
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps,
            weight_decay=weight_decay, momentum_decay=momentum_decay,
            decoupled_weight_decay=decoupled_weight_decay, foreach=foreach,
            maximize=maximize, capturable=capturable, differentiable=differentiable))


class RAdam(Optimizer):
    """torch.optim.RAdam, in one launch."""

    _name = "RAdam"

    def __init__(self, params: Iterable[Any], lr: float = 1e-3,
                 betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, decoupled_weight_decay: bool = False, *,
                 foreach: bool | None = None, maximize: bool = False,
                 capturable: bool = False, differentiable: bool = False) -> None:
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps,
            weight_decay=weight_decay, decoupled_weight_decay=decoupled_weight_decay,
            foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable))


class RMSprop(Optimizer):
    """torch.optim.RMSprop, in one launch."""

    _name = "RMSprop"

    def __init__(self, params: Iterable[Any], lr: float = 1e-2, alpha: float = 0.99,
                 eps: float = 1e-8, weight_decay: float = 0, momentum: float = 0,
                 centered: bool = False, capturable: bool = False,
                 foreach: bool | None = None, maximize: bool = False,
                 differentiable: bool = False) -> None:
        super().__init__(params, dict(lr=lr, alpha=alpha, eps=eps,
            weight_decay=weight_decay, momentum=momentum, centered=centered,
            capturable=capturable, foreach=foreach, maximize=maximize,
            differentiable=differentiable))


class Rprop(Optimizer):
    """torch.optim.Rprop, in one launch."""

    _name = "Rprop"

    def __init__(self, params: Iterable[Any], lr: float = 1e-2,
                 etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50), *,
                 capturable: bool = False, foreach: bool | None = None,
                 maximize: bool = False, differentiable: bool = False) -> None:
        super().__init__(params, dict(lr=lr, etas=etas, step_sizes=step_sizes,
            capturable=capturable, foreach=foreach, maximize=maximize,
            differentiable=differentiable))


class SGD(Optimizer):
    """torch.optim.SGD, in one launch."""

    _name = "SGD"

    def __init__(self, params: Iterable[Any], lr: float = 1e-3, momentum: float = 0,
                 dampening: float = 0, weight_decay: float = 0,
                 nesterov: bool = False, *, maximize: bool = False,
                 foreach: bool | None = None, differentiable: bool = False,
                 fused: bool | None = None) -> None:
        super().__init__(params, dict(lr=lr, momentum=momentum, dampening=dampening,
            weight_decay=weight_decay, nesterov=nesterov, maximize=maximize,
            foreach=foreach, differentiable=differentiable, fused=fused))
