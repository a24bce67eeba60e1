"""What all optimizers share, whichever library made their parameters."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import _core, _storage
from ._arrays import is_torch, like

if TYPE_CHECKING:  # what a class over torch tensors is, and one over others has
    from torch.optim import Optimizer as _Parameters
else:
    _Parameters = object

# Options of torch that say how it computes; here that is always one launch.
_HOW = {"foreach", "fused", "capturable", "differentiable"}
_STATE_NAMES = _core.all_state_names()
_NO_NUMBERS = _HOW | {"params", "param_names", "initial_lr"}

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


def _unfinished(cls: type, base: type) -> Any:
    """A copy of an optimizer before it gets its state."""
    made = _class_over(cls, base)
    return made.__new__(made)


class Optimizer(_Parameters):
    """An optimizer over torch tensors or NumPy arrays.

    With torch tensors it is a `torch.optim.Optimizer`: schedulers, hooks, `state`
    and `state_dict` are torch's.
    """

    _name = ""  # of the optimizer of Fusebook
    _counts = {"betas": 2, "etas": 2, "step_sizes": 2}  # of numbers, where not one
    param_groups: list[dict[str, Any]]
    state: Any
    defaults: dict[str, Any]

    if TYPE_CHECKING:
        _one: Any  # the number as an array
        def step(self, closure: Any = None, *, grads: Any = None) -> Any: ...
        def _show_state(self, i: int, param: Any, state: dict[str, Any]) -> None: ...
        def _states_held(self, places: Iterable[int]) -> dict[int, dict[str, Any]]: ...
        def _see_new_params(self, places: list[int]) -> None: ...

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
        self._forget_shown()
        base.__init__(self, given, defaults)
        self._note_state()
        self._take_groups()

    def __reduce__(self) -> Any:
        # Its own class is made anew, on top of what its parameters' library needs.
        return _unfinished, type(self).__bases__, self.__getstate__()

    def _finish(self) -> None:
        """Makes the compiled part of a copy."""
        self._stepper = _core.Stepper(self._name)
        self._options = []
        self._forget_shown()
        self._note_state()
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
        try:
            options.update(_storage.options_of(group))
        except ValueError as why:
            raise _core.Error(f"{self._name}: {why}") from None
        return options

    def _take_groups(self) -> None:
        options = [self._options_of(group) for group in self.param_groups]
        new = self._stepper.set_groups(self._params(), options)
        self._options = options
        self._see_new_params(new)

    def _take_options(self) -> None:
        for i, group in enumerate(self.param_groups):
            now = self._options_of(group)
            if now != self._options[i]:
                self._stepper.set_options(i, now)
                self._options[i] = now

    def _switch(self, **options: Any) -> None:
        """Sets options of storage in all groups, or in none; the first switches the
        others on. A group has none of them while it is off."""
        self._see_state()
        before = [dict(group) for group in self.param_groups]
        off = next(iter(options.values())) is False
        try:
            for group in self.param_groups:
                for name, value in options.items():
                    if off:
                        group.pop(name, None)
                    else:
                        group[name] = value
            self._take_groups()
        except BaseException:
            for group, old in zip(self.param_groups, before, strict=True):
                group.clear()
                group.update(old)
            raise

    def _state_of(self, i: int, model: Any) -> dict[str, Any]:
        return {name: like(model, array)
                for name, array in self._stepper.states(i).items()}

    def _all_params(self) -> list[Any]:
        return [each for group in self._params() for each in group]

    def _forget_shown(self) -> None:
        # Our entries of `state`, by id, and how many states were shown in each.
        self._own: dict[int, tuple[dict[str, Any], int]] = {}
        self._names: set[str] = set()  # of all states that were ever shown

    def _show_states(self, places: Iterable[int]) -> None:
        params = self._all_params()
        for i in places:
            state = self._state_of(i, params[i])
            self._names.update(state)
            self._own[id(state)] = state, len(state)
            self._show_state(i, params[i], state)
        self._note_state()

    def _is_ours(self, i: int, name: Any) -> bool:
        """Whether an entry of `state` has it from us: others may put theirs there."""
        return name in self._names or self._stepper.knows(i, name)

    def _add_others(self, i: int, state: dict[str, Any], before: Mapping[Any, Any]) -> None:
        """Behind our states comes what others had put beside them."""
        state.update((name, value) for name, value in before.items()
                     if not self._is_ours(i, name))

    def _without_others(self, i: int, state: dict[str, Any]) -> dict[str, Any]:
        """States that come from elsewhere, without what others had put beside them. What
        another class of ours calls a state is none of theirs, but an error."""
        return {name: value for name, value in state.items()
                if name in _STATE_NAMES or self._is_ours(i, name)}

    def _note_state(self) -> None:
        entries = list(self.state.values())
        self._own = {id(each): self._own[id(each)] for each in entries
                     if id(each) in self._own}
        # What others put there may hold anything, at any time.
        nothing: tuple[dict[str, Any], int] = {}, 0
        ours = (self._own.get(id(each), nothing) for each in entries)
        self._noted = (self.state, self._all_params(), entries,
                       [tuple(itertools.islice(state.values(), count))
                        for state, count in ours])

    def _see_state(self) -> None:
        """If `state` was replaced, or something in it was replaced, removed or added,
        takes what it holds: a parameter without an entry begins anew."""
        shown, _, entries, values = self._noted
        if self.state is not shown or not _core.still_shows(shown, entries, values):
            self._restore_held()

    def _restore_held(self) -> None:
        self._restore(self._states_held(range(len(self._all_params()))), "state")

    def _make_step(self, grads: Any) -> None:
        self._see_state()
        if len(self._options) == len(self.param_groups):
            self._take_options()
        fresh = self._stepper.step(self._params(), grads)
        if fresh is None:
            self._take_groups()
            fresh = self._stepper.step(self._params(), grads)
        if fresh:
            self._show_states(fresh)

    def _restore(self, states: dict[int, dict[str, Any]],
                 source: str = "load_state_dict") -> None:
        """Takes states by place; errors name their source."""
        self._take_groups()
        self._put_states(states, source)

    def _put_states(self, states: dict[int, dict[str, Any]],
                    source: str = "state") -> None:
        given = {}
        for i, state in states.items():
            own = {name: value for name, value in state.items() if value is not None}
            if self._name == "SGD" and "momentum_buffer" in own:
                # Torch's does not count: a buffer alone says that it is not new.
                own = {"step": self._one, "momentum_steps": self._one, **own}
            given[i] = self._without_others(i, own)
        self._stepper.restore(given, source)
        self._show_states(given)

    # -- how weights and states are kept

    def use_master_weights(self, on: bool = True) -> None:
        """Keeps a float32 copy of each bfloat16 or float16 parameter, as the state
        `master_param`, so that updates too small for 16 bits add up. All its other states
        are float32, too. A step overwrites what was written into such a parameter since
        the last one. Call it before the first step. It applies to the groups that exist
        now; for one group, set its option `master_weights`."""
        self._switch(master_weights=on)

    def use_split_masters(self, on: bool = True) -> None:
        """Like `use_master_weights` with less memory, for bfloat16 parameters: they are
        the upper halves of their masters, and the lower halves are kept as the state
        `low_half`, in int16. Call it before the first step. It applies to the groups that
        exist now; for one group, set its option `split_masters`."""
        self._switch(split_masters=on)

    def use_stochastic_rounding(self, on: bool = True, seed: int = 0) -> None:
        """Rounds bfloat16 parameters up or down by random bits, so that updates too small
        for 16 bits add up on average, without masters. The bits depend only on the seed,
        the number of the parameter, its count of steps and the place of the element. Call
        it before the first step. It applies to the groups that exist now; for one group,
        set its options `stochastic_rounding` and `rounding_seed`."""
        self._switch(stochastic_rounding=on, rounding_seed=seed)

    def use_opmath(self, on: bool = True) -> None:
        """Updates bfloat16 and float16 parameters in float32, and rounds the parameter
        and each state once, to nearest, as PyTorch's fused optimizers do. Without it, as
        in PyTorch's foreach optimizers, the result of each operation is rounded, which
        takes longer and loses more digits. It keeps nothing besides, and may be switched
        between steps. It applies to the groups that exist now; for one group, set its
        option `opmath`."""
        self._switch(opmath=on)

    def use_8bit_states(self, on: bool = True, min_8bit_size: int = 4096,
                        state_block_size: int = 256) -> None:
        """Keeps states in 8 bits: about a byte an element instead of a float32. Each run
        of `state_block_size` neighbouring elements shares one scale. Parameters with
        fewer than `min_8bit_size` elements, and those not in row-major order, keep their
        states as they are. Existing states are converted by the next step, in both
        directions. `state` shows the bytes: for each block, its scale as a float32, then
        its codes. It applies to the groups that exist now; for one group, set its options
        `states_8bit`, `min_8bit_size` and `state_block_size`."""
        self._switch(states_8bit=on, min_8bit_size=min_8bit_size,
                     state_block_size=state_block_size)

    # -- what there is to know

    def memory(self) -> _core.Memory:
        """How many bytes all parameters take (`params`), the states that exist, without
        scales (`states`), and the scales of 8-bit states (`scales`)."""
        self._see_state()
        found = self._stepper.memory(self._params())
        if found is None:
            self._take_groups()
            found = self._stepper.memory(self._params())
        return found

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
