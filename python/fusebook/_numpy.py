"""Optimizers over NumPy arrays, and over those of others that lend theirs."""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterable
from typing import Any

import numpy

from . import _core, _storage


class PlainParameters:
    """Parameter groups and states as in torch.optim."""

    _one = numpy.array(1.0)

    def __init__(self, params: list[Any], defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self.state: dict[int, dict[str, Any]] = {}
        if not params:
            raise _core.Error("optimizer got an empty parameter list")
        if not isinstance(params[0], dict):
            params = [{"params": params}]
        for group in params:
            self._add(group)

    def _add(self, group: dict[str, Any]) -> None:
        arrays = group["params"]
        arrays = list(arrays) if isinstance(arrays, (list, tuple)) else [arrays]
        self.param_groups.append({**self.defaults, **group, "params": arrays})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters; options that it does not name are the constructor's."""
        self._see_state()
        self._add(param_group)
        try:
            self._take_groups()
        except BaseException:
            self.param_groups.pop()
            raise

    def step(self, grads: Any = None) -> None:
        """One update: `grads` has one gradient for each parameter, in order, or
        None. Without it, each parameter's attribute `grad` is asked."""
        self._make_step(grads)

    def state_dict(self) -> dict[str, Any]:
        """States and options, as torch.optim has them. The arrays are the
        optimizer's own and keep changing."""
        groups, start = [], 0
        for group in self.param_groups:
            end = start + len(group["params"])
            groups.append({**group, "params": list(range(start, end))})
            start = end
        return {"state": {i: dict(state) for i, state in self.state.items()},
                "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the state of an optimizer of the same class, with what others had put
        beside it. Copies. Raises Error if something does not fit; then nothing has
        changed."""
        loaded = state_dict["param_groups"]
        sizes = [len(group["params"]) for group in self.param_groups]
        if [len(group["params"]) for group in loaded] != sizes:
            raise _core.Error("load_state_dict: the groups have other sizes than the "
                              "optimizer's")
        before = self.param_groups, self.state
        places = [i for group in loaded for i in group["params"]]
        try:
            self.param_groups = [
                {**_storage.without(own), **group, "params": own["params"]}
                for own, group in zip(self.param_groups, loaded, strict=True)]
            _storage.keep(self.param_groups, before[0])
            self.state = {}
            self._take_groups()
            states = {i: state_dict["state"].get(place, {})
                      for i, place in enumerate(places)}
            self.state = copy.deepcopy({i: {name: value for name, value in state.items()
                                            if not self._is_ours(i, name)}
                                        for i, state in states.items()})
            self._put_states(states, "load_state_dict")
        except BaseException:
            self.param_groups, self.state = before
            self._take_groups()
            raise

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("defaults", "param_groups", "state")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        held = state["state"]
        self.__dict__.update(state, state={})
        self._finish()
        self.state = {i: dict(each) for i, each in held.items()
                      if i < len(self._all_params())}
        self._put_states({i: {name: value for name, value in each.items()
                              if self._is_ours(i, name)}
                          for i, each in self.state.items()})

    def _entries(self) -> list[Any]:
        """What `state` has for each array."""
        shown, arrays, *_ = self._noted
        now = self._all_params()
        # The caller's own has current places; ours has those that the arrays had
        # when it was shown.
        places = {id(array): i
                  for i, array in enumerate(arrays if self.state is shown else now)}
        return [self.state.get(places.get(id(array), -1), {}) for array in now]

    def _states_held(self, places: Iterable[int]) -> dict[int, dict[str, Any]]:
        entries = self._entries()
        return {i: {name: value for name, value in entries[i].items()
                    if self._is_ours(i, name)}
                for i in places}

    def _see_new_params(self, places: list[int]) -> None:
        now, before = self._all_params(), self._noted[1]
        if len(now) == len(before) and all(map(operator.is_, now, before)):
            return
        entries = dict(enumerate(self._entries()))
        self.state.clear()
        self.state.update(entries)
        self._show_states(entries)

    def _show_state(self, i: int, param: Any, state: dict[str, Any]) -> None:
        self._add_others(i, state, self.state.get(i, {}))
        if state:
            self.state[i] = state
        else:
            self.state.pop(i, None)
