"""Fusebook: the optimizers of torch.optim, AdEMAMix, LAMB and LARS, each step in
one launch.

    opt = fusebook.Adam(model.parameters(), lr=1e-3)
    loss.backward()
    opt.step()

Parameters are torch tensors or NumPy arrays; their memory is used in place. The
compiled step is made at the first call, for this machine.
"""

from . import _core, ops
from ._core import Counters, Element, Error, Memory, process_counters
from ._map import foreach_map, foreach_map_
from ._optimizer import Optimizer
from .optim import (ASGD, LAMB, LARS, SGD, AdEMAMix, Adadelta, Adafactor, Adagrad, Adam,
                    Adamax, AdamW, NAdam, RAdam, RMSprop, Rprop)

__version__ = _core.__version__

__all__ = [
    "ASGD", "AdEMAMix", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax",
    "Counters", "Element", "Error", "LAMB", "LARS", "Memory", "NAdam", "Optimizer",
    "RAdam", "RMSprop", "Rprop", "SGD", "__version__", "foreach_map", "foreach_map_", "ops",
    "process_counters",
]
