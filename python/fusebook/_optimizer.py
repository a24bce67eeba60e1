"""What all optimizers share, whichever library made their parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import _core
from ._arrays import is_torch, like

if TYPE_CHECKING:  # what a class over torch tensors is, and one over others has
    from torch.optim import Optimizer as _Parameters
else:
    _Parameters = object

# Options of torch that say how it computes; here that is always one launch.
_HOW = {"foreach", "fused", "capturable", "differentiable"}
_NO_NUMBERS = _HOW | {"params", "param_names", "initial_lr"}
# How a group keeps its weights and states. A group has those that were set.
_STORAGE = {"master_weights": bool, "split_masters": bool, "stochastic_rounding": bool,
            "rounding_seed": int, "states_8bit": bool, "min_8bit_size": int,
            "state_block_size": int}


def _storage_option(group: dict[str, Any], name: str) -> bool | int:
    """The value of an option of storage, or ValueError saying what it must be."""
    value, kind = group[name], _STORAGE[name]
    if type(value) is not kind:
        raise ValueError("true or false" if kind is bool else "a whole number")
    if name == "rounding_seed" and not 0 <= value < 2**32:
        raise ValueError("a whole number of 32 bits, from 0 on")
    if kind is int:  # sizes beyond all are as good as the largest of 64 bits
        return min(max(value, -2**63), 2**63 - 1)
    return value


def _number(value: Any, count: int) -> Any:
    if isinstance(value, bool):
        return value
    if count == 1:
        return float(value)
    numbers = tuple(float(each) for each in value)
    if len(numbers) != count:
        raise ValueError
    return numbers


def _first_array(params: list[Any]) -> Any:
    """An array among parameters, groups, or pairs of a name and a parameter."""
    for each in params:
        if isinstance(each, Mapping):
            each = each.get("params", [])
            if not hasattr(each, "__dlpack__"):
                # A generator is read once: by its owner.
                found = _first_array(each) if isinstance(each, (list, tuple)) else None
                if found is not None:
                    return found
                continue
        if isinstance(each, tuple) and len(each) == 2:
            each = each[1]
        return each
    return None


@functools.cache
def _class_over(cls: type, base: type) -> type:
    """`cls` on top of what its parameters' library needs."""
    return type(cls.__name__, (cls, base),
                {"__module__": cls.__module__, "__doc__": cls.__doc__})


class Optimizer(_Parameters):
    """An optimizer over torch tensors or NumPy arrays.

    With torch tensors it is a `torch.optim.Optimizer`: schedulers, hooks, `state`
    and `state_dict` are torch's.
    """

    _name = ""  # of the optimizer of Fusebook
    _counts = {"betas": 2, "etas": 2, "step_sizes": 2}  # of numbers, where not one
    param_groups: list[dict[str, Any]]
    defaults: dict[str, Any]

    if TYPE_CHECKING:
        def step(self, closure: Any = None, *, grads: Any = None) -> Any: ...
        def _show_state(self, i: int, param: Any, state: dict[str, Any]) -> None: ...

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if defaults.get("differentiable"):
            raise _core.Error(f"{self._name}: a step is not differentiable; leave "
                              "differentiable out")
        if is_torch(params):
            raise TypeError("params must be an iterable of tensors or of dicts, not a "
                            "single tensor")
        given = [dict(each, params=list(each["params"]))
                 if isinstance(each, Mapping) and not hasattr(each["params"], "shape")
                 else each for each in params]
        if is_torch(_first_array(given)):
            from ._torch import TorchParameters as base
        else:
            from ._numpy import PlainParameters as base
        self.__class__ = _class_over(type(self), base)
        self._stepper = _core.Stepper(self._name)
        self._options: list[dict[str, Any]] = []
        base.__init__(self, given, defaults)
        self._take_groups()

    # -- what the compiled part knows

    def _params(self) -> list[list[Any]]:
        return [group["params"] for group in self.param_groups]

    def _options_of(self, group: dict[str, Any]) -> dict[str, Any]:
        options = {}
        for name in self.defaults:
            if name in _NO_NUMBERS:
                continue
            if name not in group:
                raise _core.Error(f"{self._name}: a parameter group has no '{name}'; "
                                  "is it of another optimizer?")
            value, count = group[name], self._counts.get(name, 1)
            try:
                options[name] = _number(value, count)
            except (TypeError, ValueError, RuntimeError):
                wanted = ("a number", "two numbers", "three numbers")[count - 1]
                raise _core.Error(f"{self._name}: {name} is {value!r}, not "
                                  f"{wanted}") from None
        for name in _STORAGE:
            if name not in group:
                continue
            try:
                options[name] = _storage_option(group, name)
            except ValueError as wanted:
                raise _core.Error(f"{self._name}: {name} is {group[name]!r}, not "
                                  f"{wanted}") from None
        return options

    def _take_groups(self) -> None:
        options = [self._options_of(group) for group in self.param_groups]
        self._stepper.set_groups(self._params(), options)
        self._options = options

    def _take_options(self) -> None:
        for i, group in enumerate(self.param_groups):
            now = self._options_of(group)
            if now != self._options[i]:
                self._stepper.set_options(i, now)
                self._options[i] = now

    def _switch(self, **options: Any) -> None:
        """Sets options of storage in all groups, or in none; the first switches the
        others on. A group has none of them while it is off."""
        before = [dict(group) for group in self.param_groups]
        off = next(iter(options.values())) is False
        try:
            for group in self.param_groups:
                group.update(options)
                if off:
                    for name in options:
                        del group[name]
            self._take_groups()
        except BaseException:
            for group, old in zip(self.param_groups, before, strict=True):
                group.clear()
                group.update(old)
            raise

    def _keep_storage(self, before: list[dict[str, Any]]) -> None:
        """Options of storage that loaded groups do not name stay as they were."""
        for group, old in zip(self.param_groups, before, strict=True):
            for name in _STORAGE:
                if name in old:
                    group.setdefault(name, old[name])

    def _state_of(self, i: int, model: Any) -> dict[str, Any]:
        return {name: like(model, array)
                for name, array in self._stepper.states(i).items()}

    def _show_states(self, places: Iterable[int]) -> None:
        params = [each for group in self._params() for each in group]
        for i in places:
            self._show_state(i, params[i], self._state_of(i, params[i]))

    def _make_step(self, grads: Any) -> None:
        if len(self._options) == len(self.param_groups):
            self._take_options()
        fresh = self._stepper.step(self._params(), grads)
        if fresh is None:
            self._take_groups()
            fresh = self._stepper.step(self._params(), grads)
        if fresh:
            self._show_states(fresh)

    def _restore(self, states: dict[int, dict[str, Any]], one: Any) -> None:
        """Takes states by place; `one` is the number 1 as an array."""
        self._take_groups()
        given = {}
        for i, state in states.items():
            own = {name: value for name, value in state.items() if value is not None}
            if self._name == "SGD" and "momentum_buffer" in own:
                # Torch's does not count: a buffer alone says that it is not new.
                own = {"step": one, "momentum_steps": one, **own}
            given[i] = own
        self._stepper.restore(given)
        self._show_states(i for i, own in given.items() if own)

    # -- how weights and states are kept

    def use_master_weights(self, on: bool = True) -> None:
        """Keeps parameters in bfloat16 or float16 in float32 besides, as state
        `master_param`, so that updates too small for 16 bits add up. All other states
        are float32, too. What is written into such a parameter between steps is
        overwritten by the next. Call it before the first step; for one group, set its
        `master_weights`, here or in the constructor's groups."""
        self._switch(master_weights=on)

    def use_split_masters(self, on: bool = True) -> None:
        """The same with less memory, for parameters in bfloat16: they are the upper
        halves of their masters, and the lower halves are kept besides, as state
        `low_half` in int16. For one group, set its `split_masters`."""
        self._switch(split_masters=on)

    def use_stochastic_rounding(self, on: bool = True, seed: int = 0) -> None:
        """Rounds parameters in bfloat16 up or down by random bits, so that updates too
        small for 16 bits add up on average, without masters. The bits depend on the
        seed, on the number of the parameter, its count of steps and the place of the
        element, alone. For one group, set its `stochastic_rounding` and
        `rounding_seed`."""
        self._switch(stochastic_rounding=on, rounding_seed=seed)

    def use_8bit_states(self, on: bool = True, min_8bit_size: int = 4096,
                        state_block_size: int = 256) -> None:
        """Keeps states in 8 bits, with a scale for each `state_block_size` neighbours,
        which take about a byte an element instead of a float32. Parameters with fewer than
        `min_8bit_size` elements, and those not in row-major order, keep their states as
        they are. States that exist are converted by the next step, here
        and back. `state` shows their bytes: of each block its scale, a float32, and then
        its codes. For one group, set its `states_8bit`, `min_8bit_size` and
        `state_block_size`."""
        self._switch(states_8bit=on, min_8bit_size=min_8bit_size,
                     state_block_size=state_block_size)

    # -- what there is to know

    def memory(self) -> _core.Memory:
        """Bytes of all parameters (`params`), and of the states that there are: of
        their elements (`states`) and of what 8-bit ones have besides (`scales`)."""
        return self._stepper.memory()

    @property
    def counters(self) -> _core.Counters:
        """Launches, compilations, recompiles and more, of all steps so far."""
        return self._stepper.counters()

    @property
    def recompile_reports(self) -> list[str]:
        """Why each recompile happened, the oldest first."""
        return self._stepper.reports()

    def report(self) -> str:
        """What the last step fused and, if something was not fused, why."""
        return self._stepper.report()
