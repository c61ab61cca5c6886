"""Written by python/tools/stubs.py; change that, or the package, not this."""

from tonnage._typing import Ints
from tonnage.keras.saving import Configured as _Configured
from typing import Any

class Constraint(_Configured):
    def __call__(self, w: Any) -> Any: ...
class MaxNorm(Constraint):
    axis: Any
    max_value: Any
    def __init__(self, max_value: float = 2, axis: Ints = 0) -> None: ...
    def __call__(self, w: Any) -> Any: ...
class MinMaxNorm(Constraint):
    axis: Any
    max_value: Any
    min_value: Any
    rate: Any
    def __init__(self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: Ints = 0) -> None: ...
    def __call__(self, w: Any) -> Any: ...
class NonNeg(Constraint):
    def __call__(self, w: Any) -> Any: ...
class UnitNorm(Constraint):
    axis: Any
    def __init__(self, axis: Ints = 0) -> None: ...
    def __call__(self, w: Any) -> Any: ...
def get(identifier: Any) -> Any: ...
max_norm = MaxNorm
min_max_norm = MinMaxNorm
non_neg = NonNeg
unit_norm = UnitNorm
