"""Arrays of other libraries, which need not be installed."""

from __future__ import annotations

import sys
from typing import Any


def is_torch(array: Any) -> bool:
    """Whether it is a torch tensor; nobody has one without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def like(array: Any, ours: Any) -> Any:
    """One of our arrays as one of the library that made `array`, without a copy."""
    if is_torch(array):
        import torch

        return torch.from_dlpack(ours)
    import numpy

    return numpy.from_dlpack(ours)
