"""Written by python/tools/stubs.py; change that, or the package, not this."""

from tonnage._typing import TensorLike
from typing import Any

def complex(real: TensorLike, imag: TensorLike, name: str | None = None) -> Any: ...
