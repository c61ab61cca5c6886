"""Layers that move elements without computing."""

from ... import _tonnage as _t
from ..backend import standardize_data_format
from .base import Layer
from .spec import InputSpec, of_rank


class Flatten(Layer):
    """All axes but the first as one."""

    def __init__(self, data_format=None, **kwargs):
        super().__init__(**kwargs)
        self.data_format = standardize_data_format(data_format)
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs):
        """Computes."""
        if self.data_format == "channels_first" and inputs.ndim > 2:
            inputs = _t.transpose(inputs, [0, *range(2, inputs.ndim), 1])
        if None not in inputs.lengths[1:]:
            size = 1
            for n in inputs.lengths[1:]:
                size *= n
            return _t.reshape(inputs, [-1, size])
        return _t.reshape(inputs, [_t.shape_of(inputs, "int32")[0], -1])


class Reshape(Layer):
    """Another shape, the first axis apart."""

    def __init__(self, target_shape, **kwargs):
        super().__init__(**kwargs)
        self.target_shape = tuple(target_shape)

    def call(self, inputs):
        """Computes."""
        have, want = inputs.lengths[1:], self.target_shape
        if None not in have and -1 not in want and _size(have) != _size(want):
            raise ValueError(f"The total size of the tensor must be unchanged. Received: input_shape={tuple(inputs.shape)}, "
                             f"target_shape={want} in layer {self.name!r}")
        first = inputs.lengths[0]
        if first is None:
            first = _t.shape_of(inputs, "int32")[0]
        return _t.reshape(inputs, [first, *want])


def _size(lengths):
    size = 1
    for n in lengths:
        size *= n
    return size


class Permute(Layer):
    """Axes in another order; the first is 1, the batch's stays."""

    def __init__(self, dims, **kwargs):
        super().__init__(**kwargs)
        self.dims = tuple(dims)
        if sorted(self.dims) != list(range(1, len(self.dims) + 1)):
            raise ValueError(f"Invalid permutation argument `dims` for Permute Layer. The set of indices in `dims` must be "
                             f"consecutive and start from 1. Received dims={dims}")
        self.input_spec = InputSpec(ndim=len(self.dims) + 1)

    def call(self, inputs):
        """Computes."""
        return _t.transpose(inputs, [0, *self.dims])


class RepeatVector(Layer):
    """A row ``n`` times."""

    def __init__(self, n, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(n, int):
            raise TypeError(f"Expected an integer value for `n`, got {type(n)}.")
        self.n = n
        self.input_spec = InputSpec(ndim=2)

    def call(self, inputs):
        """Computes."""
        return _t.repeat(_t.expand_dims(inputs, 1), self.n, 1)


def _pairs(value, count, what):
    if isinstance(value, int):
        return [(value, value)] * count
    value = list(value)
    if count == 1 and len(value) == 2 and all(isinstance(v, int) for v in value):
        return [tuple(value)]
    if len(value) != count:
        raise ValueError(f"`{what}` should have {count} elements. Received: {value}")
    return [(v, v) if isinstance(v, int) else tuple(v) for v in value]


class _Spatial(Layer):
    rank = None

    def __init__(self, data_format, **kwargs):
        super().__init__(**kwargs)
        self.data_format = standardize_data_format(data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def _first_axis(self):
        return 2 if self.data_format == "channels_first" else 1


class _FromTwoAxes(_Spatial):
    """Layers that have no data format where there is one axis: its channels are last."""

    def __init__(self, data_format, **kwargs):
        if self.rank == 1 and data_format is not None:
            raise ValueError(f"Unrecognized keyword arguments passed to {type(self).__name__}: {{'data_format': {data_format!r}}}")
        super().__init__("channels_last" if self.rank == 1 else data_format, **kwargs)


class _ZeroPadding(_Spatial):
    def __init__(self, padding=1, data_format=None, **kwargs):
        super().__init__(data_format, **kwargs)
        self.padding = _pairs(padding, self.rank, "padding")

    def call(self, inputs):
        """Computes."""
        start = self._first_axis()
        widths = [[0, 0]] * start + [list(p) for p in self.padding]
        return _t.pad(inputs, widths + [[0, 0]] * (inputs.ndim - len(widths)), 0)


class _Cropping(_FromTwoAxes):
    def __init__(self, cropping=None, data_format=None, **kwargs):
        super().__init__(data_format, **kwargs)
        if cropping is None:
            cropping = 0 if self.rank == 2 else 1  # as Keras has it
        self.cropping = _pairs(cropping, self.rank, "cropping")

    def call(self, inputs):
        """Computes."""
        start = self._first_axis()
        keys = [slice(None)] * start
        for (a, b), n in zip(self.cropping, inputs.lengths[start:]):
            if n is not None and a + b >= n:
                raise ValueError(f"`cropping` of {(a, b)} leaves nothing of a length of {n}: input shape "
                                 f"{tuple(inputs.shape)} in layer {self.name!r}")
            keys.append(slice(a, None if b == 0 else -b))
        return inputs[tuple(keys)]


class _UpSampling(_FromTwoAxes):
    def __init__(self, size=2, data_format=None, interpolation="nearest", **kwargs):
        super().__init__(data_format, **kwargs)
        self.size = [size] * self.rank if isinstance(size, int) else list(size)
        if interpolation not in ("nearest", "bilinear"):
            raise ValueError(f"interpolation must be 'nearest' or 'bilinear'. Received: {interpolation!r}")
        self.interpolation = interpolation

    def call(self, inputs):
        """Computes."""
        first = self._first_axis()
        if self.interpolation == "bilinear":
            x = _t.transpose(inputs, [0, 2, 3, 1]) if first == 2 else inputs
            made = _t.resize(x, [n * s for n, s in zip(x.lengths[1:3], self.size)], False)
            return _t.transpose(made, [0, 3, 1, 2]) if first == 2 else made
        for axis, size in enumerate(self.size):
            inputs = _t.repeat(inputs, size, first + axis)
        return inputs


ZeroPadding1D = of_rank(__name__, _ZeroPadding, "ZeroPadding1D", 1, "Zeros around a sequence.")
ZeroPadding2D = of_rank(__name__, _ZeroPadding, "ZeroPadding2D", 2, "Zeros around images.")
ZeroPadding3D = of_rank(__name__, _ZeroPadding, "ZeroPadding3D", 3, "Zeros around volumes.")
Cropping1D = of_rank(__name__, _Cropping, "Cropping1D", 1, "A sequence without its ends.")
Cropping2D = of_rank(__name__, _Cropping, "Cropping2D", 2, "Images without their edges.")
Cropping3D = of_rank(__name__, _Cropping, "Cropping3D", 3, "Volumes without their edges.")
UpSampling1D = of_rank(__name__, _UpSampling, "UpSampling1D", 1, "Each step several times.")
UpSampling2D = of_rank(__name__, _UpSampling, "UpSampling2D", 2, "Larger images.")
UpSampling3D = of_rank(__name__, _UpSampling, "UpSampling3D", 3, "Larger volumes.")
