"""Written by python/tools/stubs.py; change that, or the package, not this."""

from tonnage._shape import TensorShape
from tonnage._tonnage import DType
from tonnage._typing import DTypeLike, Ints, ShapeLike
from tonnage.keras.layers.base import Layer
from tonnage.keras.mixed_precision import DTypePolicy
from typing import Any

class InputSpec:
    axes: Any
    dtype: DType
    max_ndim: Any
    min_ndim: Any
    ndim: Any
    shape: TensorShape
    def __init__(self, dtype: DTypeLike | DTypePolicy | None = None, shape: ShapeLike | None = None, ndim: int | None = None, max_ndim: int | None = None, min_ndim: int | None = None, axes: Ints | None = None, allow_last_axis_squeeze: bool = False, name: str | None = None, optional: bool = False) -> None: ...
    def check(self, layer: Layer, place: Any, shape: ShapeLike) -> Any: ...
