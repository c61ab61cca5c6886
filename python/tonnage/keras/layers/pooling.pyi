"""Written by python/tools/stubs.py; change that, or the package, not this."""

from collections.abc import Sequence
from tonnage._tonnage import Tensor
from tonnage._typing import Ints, TensorLike
from tonnage.keras.layers.base import Layer as _Layer
from typing import Any

class AveragePooling1D(_Pooling):
    @staticmethod
    def pool(input: TensorLike, ksize: Ints, strides: TensorLike, padding: str | Sequence[Sequence[int]], data_format: str | None = None, name: str | None = None) -> Tensor: ...
    rank: int
class AveragePooling2D(_Pooling):
    @staticmethod
    def pool(input: TensorLike, ksize: Ints, strides: TensorLike, padding: str | Sequence[Sequence[int]], data_format: str | None = None, name: str | None = None) -> Tensor: ...
    rank: int
class AveragePooling3D(_Pooling):
    @staticmethod
    def pool(input: TensorLike, ksize: Ints, strides: TensorLike, padding: str | Sequence[Sequence[int]], data_format: str | None = None, name: str | None = None) -> Tensor: ...
    rank: int
class GlobalAveragePooling1D(_Global):
    def call(self, inputs: Any, mask: Any = None) -> Any: ...
    def compute_mask(self, inputs: Any, mask: Any = None) -> Any: ...
    rank: int
    supports_masking: bool
class GlobalAveragePooling2D(_Global):
    @staticmethod
    def fold(x: Any, axes: Ints, keep: Any) -> Any: ...
    rank: int
class GlobalAveragePooling3D(_Global):
    @staticmethod
    def fold(x: Any, axes: Ints, keep: Any) -> Any: ...
    rank: int
class GlobalMaxPooling1D(_Global):
    @staticmethod
    def fold(x: Any, axes: Ints, keep: Any) -> Any: ...
    rank: int
class GlobalMaxPooling2D(_Global):
    @staticmethod
    def fold(x: Any, axes: Ints, keep: Any) -> Any: ...
    rank: int
class GlobalMaxPooling3D(_Global):
    @staticmethod
    def fold(x: Any, axes: Ints, keep: Any) -> Any: ...
    rank: int
class MaxPooling1D(_Pooling):
    @staticmethod
    def pool(input: TensorLike, ksize: Ints, strides: TensorLike, padding: str | Sequence[Sequence[int]], data_format: str | None = None, name: str | None = None) -> Tensor: ...
    rank: int
class MaxPooling2D(_Pooling):
    @staticmethod
    def pool(input: TensorLike, ksize: Ints, strides: TensorLike, padding: str | Sequence[Sequence[int]], data_format: str | None = None, name: str | None = None) -> Tensor: ...
    rank: int
class MaxPooling3D(_Pooling):
    @staticmethod
    def pool(input: TensorLike, ksize: Ints, strides: TensorLike, padding: str | Sequence[Sequence[int]], data_format: str | None = None, name: str | None = None) -> Tensor: ...
    rank: int
class _Global(_Layer):
    data_format: Any
    keepdims: Any
    def __init__(self, data_format: str | None = None, keepdims: bool = False, **kwargs: Any) -> None: ...
    def call(self, inputs: Any) -> Any: ...
    fold: Any
    rank: Any
class _Pooling(_Layer):
    data_format: Any
    padding: Any
    pool_size: Any
    strides: Any
    def __init__(self, pool_size: Ints = 2, strides: Ints | None = None, padding: Any = 'valid', data_format: str | None = None, **kwargs: Any) -> None: ...
    def call(self, inputs: Any) -> Any: ...
    pool: Any
    rank: Any
AvgPool1D = AveragePooling1D
AvgPool2D = AveragePooling2D
AvgPool3D = AveragePooling3D
GlobalAvgPool1D = GlobalAveragePooling1D
GlobalAvgPool2D = GlobalAveragePooling2D
GlobalAvgPool3D = GlobalAveragePooling3D
GlobalMaxPool1D = GlobalMaxPooling1D
GlobalMaxPool2D = GlobalMaxPooling2D
GlobalMaxPool3D = GlobalMaxPooling3D
MaxPool1D = MaxPooling1D
MaxPool2D = MaxPooling2D
MaxPool3D = MaxPooling3D
