"""Written by python/tools/stubs.py; change that, or the package, not this."""

from tonnage._typing import TensorLike
from typing import Any

def intersection(a: TensorLike, b: TensorLike, validate_indices: bool = True) -> Any: ...
