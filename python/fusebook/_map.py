"""foreach_map for functions of Python."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from . import _core
from ._arrays import like


class _Compiled(threading.local):
    """The compiled calls of a thread. By code, so that a lambda that is made anew in
    each call is compiled once; what it does is looked at in every call."""

    def __init__(self) -> None:
        self.maps: weakref.WeakKeyDictionary[Any, _core.Map] = (
            weakref.WeakKeyDictionary())


_compiled = _Compiled()


def _map_of(function: Callable[..., Any]) -> _core.Map:
    key = getattr(function, "__code__", function)
    maps = _compiled.maps
    if key not in maps:
        maps[key] = _core.Map()
    return maps[key]


def _operand(given: Any) -> Any:
    if isinstance(given, (list, tuple)):
        return list(given)
    return float(given)


def foreach_map(function: Callable[..., Any], *operands: Any) -> Any:
    """Applies a function of elements to lists of arrays, in one launch.

        blended = foreach_map(lambda p, g: ops.lerp(p, g, 0.1), params, grads)

    The function is called with an `Element` for each list or number, and says what
    happens to every element of every array. Returns a list of new arrays, or a tuple
    of lists if it returns a tuple. Raises `Error` for lists that do not fit.
    """
    lists = [_operand(each) for each in operands]
    model = next((each[0] for each in lists if isinstance(each, list) and each), None)
    returned = []

    def traced(*elements: Any) -> Any:
        returned.append(function(*elements))
        return returned[-1]

    results = _map_of(function)(traced, lists, 0)
    arrays = tuple([like(model, each) for each in result] for result in results)
    return arrays if isinstance(returned[-1], tuple) else arrays[0]


def foreach_map_(function: Callable[..., Any],
                 outputs: Sequence[Any] | tuple[Sequence[Any], ...],
                 *operands: Any) -> None:
    """The same in place: the function's first arguments are the elements of
    `outputs`, one list or a tuple of lists, whose new values it returns."""
    into = list(outputs) if isinstance(outputs, tuple) else [outputs]
    lists = [_operand(each) for each in [*into, *operands]]
    _map_of(function)(function, lists, len(into))
