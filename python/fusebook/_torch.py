"""Optimizers over torch tensors: torch's own class, with another step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.optim import optimizer as torch_optimizer

from . import _core, _storage

if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
    raise ImportError(
        f"fusebook needs PyTorch 2.10 or newer, and this is {torch.__version__}")


def _beside(param: torch.Tensor, value: Any) -> Any:
    """A state where a step takes it: codes from host memory, all else beside its
    parameter. Torch 1.11 and older had numbers that were no tensors."""
    if isinstance(value, (int, float)):
        return torch.tensor(value, dtype=torch.float64)
    if not isinstance(value, torch.Tensor):
        return value
    coded = value.dtype in (torch.int8, torch.uint8)
    return value.detach().to("cpu" if coded else param.device)


class TorchParameters(torch.optim.Optimizer):
    """What torch.optim.Optimizer leaves to an optimizer."""

    _one = torch.tensor(1.0, dtype=torch.float64)

    def __init__(self, params: list[Any], defaults: dict[str, Any]) -> None:
        torch.optim.Optimizer.__init__(self, params, defaults)

    def step(self, closure: Callable[[], Any] | None = None, *,
             grads: Any = None) -> Any:
        """One update of all parameters that have a gradient; returns what `closure`
        does. `grads` stand in for the parameters' own."""
        if self._is_watched():
            return self._watched_step(closure, grads=grads)
        return self._plain_step(closure, grads=grads)

    # Torch's wrapper, which names the step to a profiler and calls hooks, takes
    # 0.1 ms when caches are cold: only a step that has a use for it goes through it.
    step.hooked = True  # type: ignore[attr-defined]

    def _is_watched(self) -> bool:
        return bool(self._optimizer_step_pre_hooks or self._optimizer_step_post_hooks
                    or torch_optimizer._global_optimizer_pre_hooks
                    or torch_optimizer._global_optimizer_post_hooks
                    or torch.autograd._profiler_enabled())

    def _plain_step(self, closure: Callable[[], Any] | None = None, *,
                    grads: Any = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._make_step(grads)
        return loss

    _watched_step = torch.optim.Optimizer.profile_hook_step(_plain_step)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the state of this class, or of torch.optim's of that name, with what
        others had put beside it. Raises Error if something does not fit; then nothing
        has changed."""
        self._take_groups()  # parameters that are new, with the states they had
        before = {"state": self.state, "param_groups": self.param_groups}
        hooks = self._optimizer_load_state_dict_post_hooks
        given: list[dict[str, Any]] = []
        # Torch converts what it loads to the dtypes of parameters, which would spoil
        # masters and codes. This hook comes after all others, which may change it.
        last = self.register_load_state_dict_pre_hook(
            lambda _, loaded: given.append(loaded))
        self._optimizer_load_state_dict_post_hooks = type(hooks)()
        try:
            torch.optim.Optimizer.load_state_dict(self, state_dict)
            _storage.keep(self.param_groups, before["param_groups"])
            self._restore(self._states_in(given[0]))
        except BaseException:
            self.__setstate__(before)
            self._take_groups()
            raise
        finally:
            last.remove()
            self._optimizer_load_state_dict_post_hooks = hooks
        for hook in hooks.values():
            hook(self)
        if hooks:  # they may have replaced states
            self._restore_held()

    def _states_held(self, places: Iterable[int]) -> dict[int, dict[str, Any]]:
        """What `state` has for parameters, by place."""
        params = self._all_params()
        return {i: {name: _beside(params[i], value)
                    for name, value in self.state.get(params[i], {}).items()
                    if self._is_ours(i, name)}
                for i in places}

    def _see_new_params(self, places: list[int]) -> None:
        # Torch keeps the state of a parameter that leaves its group.
        held = self._states_held(places)
        if any(held.values()):
            self._put_states(held)

    def _states_in(self, state_dict: dict[str, Any]) -> dict[int, dict[str, Any]]:
        """The states of our parameters, by place, where the parameters are."""
        params = self._all_params()
        keys = [key for group in state_dict["param_groups"] for key in group["params"]]
        return {i: {name: _beside(param, value)
                    for name, value in state_dict["state"].get(key, {}).items()}
                for i, (param, key) in enumerate(zip(params, keys, strict=True))}

    def _show_state(self, i: int, param: Any, state: dict[str, Any]) -> None:
        self._add_others(i, state, self.state.get(param, {}))
        if state:
            self.state[param] = state
        else:
            self.state.pop(param, None)

    def __setstate__(self, state: dict[str, Any]) -> None:
        torch.optim.Optimizer.__setstate__(self, state)
        if "_stepper" in self.__dict__:
            return
        # A copy: it has parameters and states of its own.
        self._finish()
