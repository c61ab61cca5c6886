"""Windows whose largest element, or mean, is taken; over some of an image or all of it."""

from ... import _tonnage as _t
from ... import nn as _nn
from ..backend import standardize_data_format
from .base import Layer
from .spec import InputSpec


def _first(x):
    return _t.transpose(x, [0, x.ndim - 1, *range(1, x.ndim - 1)])


def _last(x):
    return _t.transpose(x, [0, *range(2, x.ndim), 1])


class _Pooling(Layer):
    rank = pool = None

    def __init__(self, pool_size=2, strides=None, padding="valid", data_format=None, **kwargs):
        super().__init__(**kwargs)
        self.pool_size = self._sizes(pool_size)
        self.strides = self.pool_size if strides is None else self._sizes(strides)
        if padding.lower() not in ("valid", "same"):
            raise ValueError(f"padding must be 'valid' or 'same'. Received: {padding!r}")
        self.padding = padding.lower()
        self.data_format = standardize_data_format(data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def _sizes(self, value):
        return [value] * self.rank if isinstance(value, int) else [int(v) for v in value]

    def call(self, inputs):
        """Computes."""
        x = _last(inputs) if self.data_format == "channels_first" else inputs
        made = type(self).pool(x, self.pool_size, self.strides, self.padding.upper())
        return _first(made) if self.data_format == "channels_first" else made


class _Global(Layer):
    rank = fold = None

    def __init__(self, data_format=None, keepdims=False, **kwargs):
        super().__init__(**kwargs)
        self.data_format, self.keepdims = standardize_data_format(data_format), keepdims
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs):
        """Computes."""
        start = 2 if self.data_format == "channels_first" else 1
        return type(self).fold(inputs, list(range(start, start + self.rank)), self.keepdims)


class GlobalAveragePooling1D(_Global):
    """The mean of each channel; of steps that a mask leaves, if there is one."""

    rank, supports_masking, _takes_floats = 1, True, True

    def call(self, inputs, mask=None):
        """Computes."""
        if mask is None:
            return _t.reduce_mean(inputs, [2 if self.data_format == "channels_first" else 1], self.keepdims)
        weight = _t.expand_dims(_t.cast(mask, inputs.dtype), 1 if self.data_format == "channels_first" else 2)
        axis = [2 if self.data_format == "channels_first" else 1]
        total, count = _t.reduce_sum(inputs * weight, axis, self.keepdims), _t.reduce_sum(weight, axis, self.keepdims)
        return total / count

    def compute_mask(self, inputs, mask=None):
        """None is left."""
        return None


def _made(base, name, rank, doc, **space):
    return type(name, (base,), {"rank": rank, "__doc__": doc, "__module__": __name__, **space})


_max, _mean = staticmethod(_nn.max_pool), staticmethod(_nn.avg_pool)
MaxPooling1D = _made(_Pooling, "MaxPooling1D", 1, "The largest element of each window of a sequence.", pool=_max)
MaxPooling2D = _made(_Pooling, "MaxPooling2D", 2, "The largest element of each window of images.", pool=_max)
MaxPooling3D = _made(_Pooling, "MaxPooling3D", 3, "The largest element of each window of volumes.", pool=_max)
AveragePooling1D = _made(_Pooling, "AveragePooling1D", 1, "The mean of each window of a sequence.", pool=_mean, _takes_floats=True)
AveragePooling2D = _made(_Pooling, "AveragePooling2D", 2, "The mean of each window of images.", pool=_mean, _takes_floats=True)
AveragePooling3D = _made(_Pooling, "AveragePooling3D", 3, "The mean of each window of volumes.", pool=_mean, _takes_floats=True)
_most, _average = staticmethod(_t.reduce_max), staticmethod(_t.reduce_mean)
GlobalMaxPooling1D = _made(_Global, "GlobalMaxPooling1D", 1, "The largest of each channel.", fold=_most)
GlobalMaxPooling2D = _made(_Global, "GlobalMaxPooling2D", 2, "The largest of each channel.", fold=_most)
GlobalMaxPooling3D = _made(_Global, "GlobalMaxPooling3D", 3, "The largest of each channel.", fold=_most)
GlobalAveragePooling2D = _made(_Global, "GlobalAveragePooling2D", 2, "The mean of each channel.", fold=_average, _takes_floats=True)
GlobalAveragePooling3D = _made(_Global, "GlobalAveragePooling3D", 3, "The mean of each channel.", fold=_average, _takes_floats=True)
MaxPool1D, MaxPool2D, MaxPool3D = MaxPooling1D, MaxPooling2D, MaxPooling3D
AvgPool1D, AvgPool2D, AvgPool3D = AveragePooling1D, AveragePooling2D, AveragePooling3D
GlobalAvgPool1D, GlobalAvgPool2D, GlobalAvgPool3D = GlobalAveragePooling1D, GlobalAveragePooling2D, GlobalAveragePooling3D
GlobalMaxPool1D, GlobalMaxPool2D, GlobalMaxPool3D = GlobalMaxPooling1D, GlobalMaxPooling2D, GlobalMaxPooling3D
