"""Arrays of other libraries, which need not be installed."""

from __future__ import annotations

import sys
from typing import Any

CPU = 1  # DLPack's number of that device


def is_torch(array: Any) -> bool:
    """Whether it is a torch tensor; nobody has one without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def like(array: Any, ours: Any) -> Any:
    """One of our arrays as one of the library that made `array`, without a copy. If
    that has no from_dlpack, and ours is on a GPU: ours itself, which has __dlpack__."""
    name = "torch" if is_torch(array) else type(array).__module__.partition(".")[0]
    take = getattr(sys.modules.get(name), "from_dlpack", None)
    if take is not None:
        return take(ours)
    if ours.__dlpack_device__()[0] != CPU:
        return ours
    import numpy

    return numpy.from_dlpack(ours)
