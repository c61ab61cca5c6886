"""Written by python/tools/stubs.py; change that, or the package, not this."""

from tonnage._typing import Ints, Named
from tonnage.keras.layers.base import Layer as _Layer
from typing import Any

class Conv1D(_Conv):
    rank: int
class Conv1DTranspose(_ConvTranspose):
    rank: int
class Conv2D(_Conv):
    rank: int
class Conv2DTranspose(_ConvTranspose):
    rank: int
class Conv3D(_Conv):
    rank: int
class Conv3DTranspose(_ConvTranspose):
    rank: int
class DepthwiseConv1D(_Depthwise):
    rank: int
class DepthwiseConv2D(_Depthwise):
    rank: int
class SeparableConv1D(_Separable):
    rank: int
class SeparableConv2D(_Separable):
    rank: int
class _Conv(_Windows):
    filters: Any
    groups: Any
    kernel: Any
    def __init__(self, filters: int, kernel_size: Ints, strides: Ints = 1, padding: Any = 'valid', data_format: str | None = None, dilation_rate: Ints = 1, groups: int = 1, activation: Named | None = None, use_bias: bool = True, kernel_initializer: Named = 'glorot_uniform', bias_initializer: Named = 'zeros', kernel_regularizer: Named | None = None, bias_regularizer: Named | None = None, activity_regularizer: Named | None = None, kernel_constraint: Named | None = None, bias_constraint: Named | None = None, **kwargs: Any) -> None: ...
    def build(self, input_shape: Any) -> None: ...
class _ConvTranspose(_Windows):
    filters: Any
    kernel: Any
    output_padding: Any
    def __init__(self, filters: int, kernel_size: Ints, strides: Ints = 1, padding: Any = 'valid', output_padding: Ints | None = None, data_format: str | None = None, dilation_rate: Ints = 1, activation: Named | None = None, use_bias: bool = True, kernel_initializer: Named = 'glorot_uniform', bias_initializer: Named = 'zeros', kernel_regularizer: Named | None = None, bias_regularizer: Named | None = None, activity_regularizer: Named | None = None, kernel_constraint: Named | None = None, bias_constraint: Named | None = None, **kwargs: Any) -> None: ...
    def build(self, input_shape: Any) -> None: ...
class _Depthwise(_Windows):
    depth_multiplier: Any
    kernel: Any
    def __init__(self, kernel_size: Ints, strides: Ints = 1, padding: Any = 'valid', depth_multiplier: int = 1, data_format: str | None = None, dilation_rate: Ints = 1, activation: Named | None = None, use_bias: bool = True, depthwise_initializer: Named = 'glorot_uniform', bias_initializer: Named = 'zeros', depthwise_regularizer: Named | None = None, bias_regularizer: Named | None = None, activity_regularizer: Named | None = None, depthwise_constraint: Named | None = None, bias_constraint: Named | None = None, **kwargs: Any) -> None: ...
    def build(self, input_shape: Any) -> None: ...
class _Separable(_Windows):
    depth_multiplier: Any
    depthwise_kernel: Any
    filters: Any
    pointwise_kernel: Any
    def __init__(self, filters: int, kernel_size: Ints, strides: Ints = 1, padding: Any = 'valid', data_format: str | None = None, dilation_rate: Ints = 1, depth_multiplier: int = 1, activation: Named | None = None, use_bias: bool = True, depthwise_initializer: Named = 'glorot_uniform', pointwise_initializer: Named = 'glorot_uniform', bias_initializer: Named = 'zeros', depthwise_regularizer: Named | None = None, pointwise_regularizer: Named | None = None, bias_regularizer: Named | None = None, activity_regularizer: Named | None = None, depthwise_constraint: Named | None = None, pointwise_constraint: Named | None = None, bias_constraint: Named | None = None, **kwargs: Any) -> None: ...
    def build(self, input_shape: Any) -> None: ...
class _Windows(_Layer):
    activation: Any
    bias: Any
    data_format: Any
    dilation_rate: Any
    kernel_size: Any
    padding: Any
    strides: Any
    use_bias: Any
    def __init__(self, kernel_size: Ints, strides: Ints, padding: Any, data_format: str, dilation_rate: Ints, activation: Named, use_bias: Any, bias_initializer: Named, bias_regularizer: Named, bias_constraint: Named, **kwargs: Any) -> None: ...
    def call(self, inputs: Any) -> Any: ...
    rank: Any
Convolution1D = Conv1D
Convolution2D = Conv2D
Convolution3D = Conv3D
SeparableConvolution1D = SeparableConv1D
SeparableConvolution2D = SeparableConv2D
