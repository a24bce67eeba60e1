from collections.abc import Callable

from ._core import Element

def __getattr__(name: str) -> Callable[..., Element]: ...
