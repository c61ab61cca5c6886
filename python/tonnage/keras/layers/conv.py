"""Convolutions over one, two or three axes, and what is made of them."""

from ... import _tonnage as _t
from ..._shape import TensorShape
from .. import activations, constraints, initializers, regularizers
from ..backend import standardize_data_format
from .base import Layer
from .pooling import _first, _last
from .spec import InputSpec, of_rank

_CONV = {1: _t.conv1d, 2: _t.conv2d, 3: _t.conv3d}


class _Windows(Layer):
    """What convolutions share: sizes, padding, the place of channels, a bias, an activation."""

    rank = None
    _takes_floats = True

    def __init__(self, kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias, bias_initializer,
                 bias_regularizer, bias_constraint, **kwargs):
        super().__init__(**kwargs)
        self.kernel_size = self._sizes(kernel_size, "kernel_size")
        self.strides = self._sizes(strides, "strides")
        self.dilation_rate = self._sizes(dilation_rate, "dilation_rate")
        self.padding = padding.lower()
        if self.padding not in (("valid", "same", "causal") if self.rank == 1 else ("valid", "same")):
            raise ValueError(f"Invalid padding for {type(self).__name__}: {padding!r}")
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError(f"`strides > 1` not supported in conjunction with `dilation_rate > 1`. Received: "
                             f"strides={self.strides} and dilation_rate={self.dilation_rate}")
        self.data_format = standardize_data_format(data_format)
        self.activation, self.use_bias = activations.get(activation), use_bias
        self._bias_of = initializers.get(bias_initializer), regularizers.get(bias_regularizer), constraints.get(
            bias_constraint)
        self.input_spec = InputSpec(ndim=self.rank + 2)
        self.bias = None

    def _sizes(self, value, what):
        sizes = [value] * self.rank if isinstance(value, int) else [int(v) for v in value]
        if len(sizes) != self.rank or min(sizes) <= 0:
            raise ValueError(f"The `{what}` argument must be a tuple of {self.rank} positive integers. Received {value}")
        return sizes

    def _channels(self, input_shape):
        axis = 1 if self.data_format == "channels_first" else -1
        channels = TensorShape(input_shape)[axis]
        if channels is None:
            raise ValueError(f"The channel dimension of the inputs should be defined. The input_shape received is "
                             f"{tuple(input_shape)}, where axis {axis} is the channel dimension (layer {self.name!r}).")
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={axis: channels})
        return channels

    def _add_bias(self, count):
        if self.use_bias:
            first, regularizer, constraint = self._bias_of
            self.bias = self.add_weight((count,), first, name="bias", regularizer=regularizer, constraint=constraint)

    def call(self, inputs):
        """Computes."""
        x = _last(inputs) if self.data_format == "channels_first" else inputs
        made = self._windows(x)
        if self.use_bias:
            made = made + self.bias
        made = self.activation(made)
        return _first(made) if self.data_format == "channels_first" else made

    def _convolved(self, x, kernel, groups, strides=None):
        pads = []
        if self.padding == "causal":
            pads = [[(self.kernel_size[0] - 1) * self.dilation_rate[0], 0]]
        return _CONV[self.rank](x, kernel, strides or self.strides, self.padding == "same", pads, self.dilation_rate, groups)


class _Conv(_Windows):
    def __init__(self, filters, kernel_size, strides=1, padding="valid", data_format=None, dilation_rate=1, groups=1,
                 activation=None, use_bias=True, kernel_initializer="glorot_uniform", bias_initializer="zeros",
                 kernel_regularizer=None, bias_regularizer=None, activity_regularizer=None, kernel_constraint=None,
                 bias_constraint=None, **kwargs):
        super().__init__(kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias, bias_initializer,
                         bias_regularizer, bias_constraint, activity_regularizer=activity_regularizer, **kwargs)
        if filters <= 0 or groups <= 0 or filters % groups:
            raise ValueError(f"Invalid value for argument `filters`. Expected a strictly positive value that the number of "
                             f"groups divides. Received filters={filters}, groups={groups}.")
        self.filters, self.groups = int(filters), int(groups)
        self._kernel_of = initializers.get(kernel_initializer), regularizers.get(kernel_regularizer), constraints.get(
            kernel_constraint)

    def build(self, input_shape):
        """Makes the filters and the bias."""
        channels = self._channels(input_shape)
        if channels % self.groups:
            raise ValueError(f"The number of input channels must be evenly divisible by the number of groups. Received "
                             f"groups={self.groups}, but the input has {channels} channels (full input shape is "
                             f"{tuple(input_shape)}) in layer {self.name!r}.")
        first, regularizer, constraint = self._kernel_of
        self.kernel = self.add_weight((*self.kernel_size, channels // self.groups, self.filters), first, name="kernel",
                                      regularizer=regularizer, constraint=constraint)
        self._add_bias(self.filters)

    def _windows(self, x):
        for n, k, d in zip(x.lengths[1:-1], self.kernel_size, self.dilation_rate):
            if self.padding == "valid" and n is not None and n < (k - 1) * d + 1:
                raise ValueError(f"Computed output size would be negative in layer {self.name!r}. Received: "
                                 f"input_shape={tuple(x.shape)}, kernel_size={self.kernel_size}, "
                                 f"dilation_rate={self.dilation_rate}.")
        return self._convolved(x, self.kernel, self.groups)


class _ConvTranspose(_Windows):
    def __init__(self, filters, kernel_size, strides=1, padding="valid", output_padding=None, data_format=None,
                 dilation_rate=1, activation=None, use_bias=True, kernel_initializer="glorot_uniform",
                 bias_initializer="zeros", kernel_regularizer=None, bias_regularizer=None, activity_regularizer=None,
                 kernel_constraint=None, bias_constraint=None, **kwargs):
        super().__init__(kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias, bias_initializer,
                         bias_regularizer, bias_constraint, activity_regularizer=activity_regularizer, **kwargs)
        self.filters = int(filters)
        self.output_padding = None if output_padding is None else self._extra(output_padding)
        self._kernel_of = initializers.get(kernel_initializer), regularizers.get(kernel_regularizer), constraints.get(
            kernel_constraint)

    def _extra(self, value):
        sizes = [value] * self.rank if isinstance(value, int) else [int(v) for v in value]
        if any(o >= s for o, s in zip(sizes, self.strides)):
            raise ValueError(f"output_padding {sizes} must be smaller than strides {self.strides}")
        return sizes

    def build(self, input_shape):
        """Makes the filters and the bias."""
        first, regularizer, constraint = self._kernel_of
        self.kernel = self.add_weight((*self.kernel_size, self.filters, self._channels(input_shape)), first, name="kernel",
                                      regularizer=regularizer, constraint=constraint)
        self._add_bias(self.filters)

    def _length(self, n, axis):
        reach = (self.kernel_size[axis] - 1) * self.dilation_rate[axis] + 1
        stride = self.strides[axis]
        if self.output_padding is None:
            return n * stride if self.padding == "same" else n * stride + max(reach - stride, 0)
        pad = reach // 2 if self.padding == "same" else 0
        return (n - 1) * stride + reach - 2 * pad + self.output_padding[axis]

    def _windows(self, x):
        lengths = [self._length(n, axis) for axis, n in enumerate(x.lengths[1:-1])]
        return _t.conv_transpose(x, self.kernel, lengths, self.strides, self.padding == "same", self.dilation_rate)


class _Depthwise(_Windows):
    def __init__(self, kernel_size, strides=1, padding="valid", depth_multiplier=1, data_format=None, dilation_rate=1,
                 activation=None, use_bias=True, depthwise_initializer="glorot_uniform", bias_initializer="zeros",
                 depthwise_regularizer=None, bias_regularizer=None, activity_regularizer=None, depthwise_constraint=None,
                 bias_constraint=None, **kwargs):
        super().__init__(kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias, bias_initializer,
                         bias_regularizer, bias_constraint, activity_regularizer=activity_regularizer, **kwargs)
        self.depth_multiplier = int(depth_multiplier)
        self._kernel_of = initializers.get(depthwise_initializer), regularizers.get(depthwise_regularizer), constraints.get(
            depthwise_constraint)

    def build(self, input_shape):
        """Makes the filters and the bias."""
        channels = self._channels(input_shape)
        first, regularizer, constraint = self._kernel_of
        self.kernel = self.add_weight((*self.kernel_size, channels, self.depth_multiplier), first, name="kernel",
                                      regularizer=regularizer, constraint=constraint)
        self._add_bias(channels * self.depth_multiplier)

    def _windows(self, x):
        return self._convolved(x, _per_channel(self.kernel, self.kernel_size), x.lengths[-1])


def _per_channel(kernel, sizes):
    """Filters of one channel each, as groups take them."""
    channels, times = tuple(kernel.shape)[-2:]
    return _t.reshape(kernel, [*sizes, 1, channels * times])


class _Separable(_Windows):
    def __init__(self, filters, kernel_size, strides=1, padding="valid", data_format=None, dilation_rate=1,
                 depth_multiplier=1, activation=None, use_bias=True, depthwise_initializer="glorot_uniform",
                 pointwise_initializer="glorot_uniform", bias_initializer="zeros", depthwise_regularizer=None,
                 pointwise_regularizer=None, bias_regularizer=None, activity_regularizer=None, depthwise_constraint=None,
                 pointwise_constraint=None, bias_constraint=None, **kwargs):
        super().__init__(kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias, bias_initializer,
                         bias_regularizer, bias_constraint, activity_regularizer=activity_regularizer, **kwargs)
        self.filters, self.depth_multiplier = int(filters), int(depth_multiplier)
        self._depth_of = depthwise_initializer, depthwise_regularizer, depthwise_constraint
        self._point_of = pointwise_initializer, pointwise_regularizer, pointwise_constraint

    def build(self, input_shape):
        """Makes both kinds of filters and the bias."""
        channels = self._channels(input_shape)
        for name, shape, (first, regularizer, constraint) in (
                ("depthwise_kernel", (*self.kernel_size, channels, self.depth_multiplier), self._depth_of),
                ("pointwise_kernel", (*[1] * self.rank, channels * self.depth_multiplier, self.filters), self._point_of)):
            setattr(self, name, self.add_weight(shape, first, name=name, regularizer=regularizer, constraint=constraint))
        self._add_bias(self.filters)

    def _windows(self, x):
        made = self._convolved(x, _per_channel(self.depthwise_kernel, self.kernel_size), x.lengths[-1])
        ones = [1] * self.rank
        return _CONV[self.rank](made, self.pointwise_kernel, ones, False, [], ones, 1)


Conv1D = of_rank(__name__, _Conv, "Conv1D", 1, "Filters over sequences.")
Conv2D = of_rank(__name__, _Conv, "Conv2D", 2, "Filters over images.")
Conv3D = of_rank(__name__, _Conv, "Conv3D", 3, "Filters over volumes.")
Conv1DTranspose = of_rank(__name__, _ConvTranspose, "Conv1DTranspose", 1, "Longer sequences, as filters over them would undo.")
Conv2DTranspose = of_rank(__name__, _ConvTranspose, "Conv2DTranspose", 2, "Larger images, as filters over them would undo.")
Conv3DTranspose = of_rank(__name__, _ConvTranspose, "Conv3DTranspose", 3, "Larger volumes, as filters over them would undo.")
DepthwiseConv1D = of_rank(__name__, _Depthwise, "DepthwiseConv1D", 1, "Filters of its own for each channel of sequences.")
DepthwiseConv2D = of_rank(__name__, _Depthwise, "DepthwiseConv2D", 2, "Filters of its own for each channel of images.")
SeparableConv1D = of_rank(__name__, _Separable, "SeparableConv1D", 1, "Filters for each channel, then across channels.")
SeparableConv2D = of_rank(__name__, _Separable, "SeparableConv2D", 2, "Filters for each channel, then across channels.")
Convolution1D, Convolution2D, Convolution3D = Conv1D, Conv2D, Conv3D
SeparableConvolution1D, SeparableConvolution2D = SeparableConv1D, SeparableConv2D
