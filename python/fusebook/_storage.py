"""Options of a group that say how it keeps its weights and its states, and in what it
computes. A group has those that were set."""

from __future__ import annotations

import operator
from typing import Any

_WEIGHTS = {"master_weights": bool, "split_masters": bool, "stochastic_rounding": bool,
            "rounding_seed": int}
_STATES = {"states_8bit": bool, "min_8bit_size": int, "state_block_size": int}
_UPDATE = {"opmath": bool}
_ALL = {**_WEIGHTS, **_STATES, **_UPDATE}


def _value(name: str, value: Any) -> bool | int:
    """The value of an option, or ValueError saying what it must be."""
    is_flag = type(value).__name__ in ("bool", "bool_")  # NumPy has its own
    if _ALL[name] is bool:
        if not is_flag:
            raise ValueError("True or False")
        return bool(value)
    try:
        number = None if is_flag else operator.index(value)
    except TypeError:
        number = None
    if name == "rounding_seed" and (number is None or not 0 <= number < 2**32):
        raise ValueError(f"an integer from 0 to {2**32 - 1}")
    if number is None:
        raise ValueError("an integer")
    # Sizes beyond all are as good as the largest of 64 bits.
    return min(max(number, -2**63), 2**63 - 1)


def options_of(group: dict[str, Any]) -> dict[str, bool | int]:
    """Those that a group has. Raises ValueError for what cannot be."""
    options = {}
    for name in _ALL:
        if name not in group:
            continue
        try:
            options[name] = _value(name, group[name])
        except ValueError as wanted:
            raise ValueError(f"{name} must be {wanted}, but is "
                             f"{group[name]!r}") from None
    return options


def without(group: dict[str, Any]) -> dict[str, Any]:
    """A group without them."""
    return {name: value for name, value in group.items() if name not in _ALL}


def keep(groups: list[dict[str, Any]], before: list[dict[str, Any]]) -> None:
    """Where a loaded group says nothing of how weights are kept, nothing of states, or
    nothing of the update, that stays as it was."""
    for group, old in zip(groups, before, strict=True):
        for options in (_WEIGHTS, _STATES, _UPDATE):
            if not any(name in group for name in options):
                group.update((name, old[name]) for name in options if name in old)
