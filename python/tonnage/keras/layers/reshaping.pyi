"""Written by python/tools/stubs.py; change that, or the package, not this."""

from collections.abc import Sequence
from tonnage._typing import Ints, ShapeLike
from tonnage.keras.layers.base import Layer as _Layer
from typing import Any

class Cropping1D(_Cropping):
    rank: int
class Cropping2D(_Cropping):
    rank: int
class Cropping3D(_Cropping):
    rank: int
class Flatten(_Layer):
    data_format: Any
    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None: ...
    def call(self, inputs: Any) -> Any: ...
class Permute(_Layer):
    dims: Any
    def __init__(self, dims: Sequence[int], **kwargs: Any) -> None: ...
    def call(self, inputs: Any) -> Any: ...
class RepeatVector(_Layer):
    n: Any
    def __init__(self, n: int, **kwargs: Any) -> None: ...
    def call(self, inputs: Any) -> Any: ...
class Reshape(_Layer):
    target_shape: Any
    def __init__(self, target_shape: ShapeLike, **kwargs: Any) -> None: ...
    def call(self, inputs: Any) -> Any: ...
class UpSampling1D(_UpSampling):
    rank: int
class UpSampling2D(_UpSampling):
    rank: int
class UpSampling3D(_UpSampling):
    rank: int
class ZeroPadding1D(_ZeroPadding):
    rank: int
class ZeroPadding2D(_ZeroPadding):
    rank: int
class ZeroPadding3D(_ZeroPadding):
    rank: int
class _Cropping(_FromTwoAxes):
    cropping: Any
    def __init__(self, cropping: Any = None, data_format: str | None = None, **kwargs: Any) -> None: ...
    def call(self, inputs: Any) -> Any: ...
class _FromTwoAxes(_Spatial):
    def __init__(self, data_format: str, **kwargs: Any) -> None: ...
class _Spatial(_Layer):
    data_format: Any
    def __init__(self, data_format: str, **kwargs: Any) -> None: ...
    rank: Any
class _UpSampling(_FromTwoAxes):
    interpolation: Any
    size: Any
    def __init__(self, size: Ints = 2, data_format: str | None = None, interpolation: str = 'nearest', **kwargs: Any) -> None: ...
    def call(self, inputs: Any) -> Any: ...
class _ZeroPadding(_Spatial):
    padding: Any
    def __init__(self, padding: Any = 1, data_format: str | None = None, **kwargs: Any) -> None: ...
    def call(self, inputs: Any) -> Any: ...
