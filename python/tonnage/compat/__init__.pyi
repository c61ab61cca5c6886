"""Written by python/tools/stubs.py; change that, or the package, not this."""

from tonnage._typing import TensorLike
from tonnage.compat import v1 as v1

import tonnage
v2 = tonnage
def as_bytes(value: TensorLike) -> bytes: ...
def as_str(value: TensorLike) -> str: ...
as_text = as_str
