"""Layers that prepare inputs."""

import numpy as np

from ... import _tonnage as _t
from ..._shape import TensorShape
from ..backend import floatx
from .base import Layer
from ..._notices import ignores

_maximum = _t.Op("maximum", "maximum", ["x", "y"])
_sqrt = _t.Op("sqrt", "sqrt", ["x"])


class Rescaling(Layer):
    """``inputs * scale + offset``."""

    def __init__(self, scale, offset=0.0, **kwargs):
        super().__init__(**kwargs)
        self.scale, self.offset = scale, offset

    def call(self, inputs):
        """Computes."""
        x = inputs if inputs.dtype.is_floating else _t.cast(inputs, self.compute_dtype)
        scale, offset = (_t.to_tensor(v, None, x.dtype) for v in (self.scale, self.offset))
        return x * scale + offset


class Normalization(Layer):
    """A mean of 0 and a deviation of 1 for each feature, over data that :meth:`adapt` saw, or as given."""

    def __init__(self, axis=-1, mean=None, variance=None, invert=False, **kwargs):
        super().__init__(**kwargs)
        if (mean is None) != (variance is None):
            raise ValueError("When setting values directly, both `mean` and `variance` must be set. Received: "
                             f"mean={mean} and variance={variance}")
        self.axis, self.invert = axis, invert
        self._given = mean, variance

    def _axes(self, rank):
        axes = [] if self.axis is None else [self.axis] if isinstance(self.axis, int) else list(self.axis)
        return sorted(axis % rank for axis in axes)

    def build(self, input_shape):
        """Makes the mean and the variance."""
        shape = TensorShape(input_shape)
        kept = self._axes(len(shape))
        self._broadcast = [shape[i] if i in kept else 1 for i in range(len(shape))]
        lengths = [shape[i] for i in kept]
        if any(n is None for n in lengths):
            raise ValueError(f"All `axis` values to be kept must have a known shape. Received axis={self.axis}, "
                             f"inputs.shape={tuple(shape)}")
        mean, variance = self._given
        if mean is None:
            self.adapt_mean = self.add_weight(lengths, "zeros", name="mean", trainable=False)
            self.adapt_variance = self.add_weight(lengths, "ones", name="variance", trainable=False)
        else:
            self.adapt_mean, self.adapt_variance = (
                _t.to_tensor(np.broadcast_to(np.asarray(v, "float32"), lengths), None, None) for v in (mean, variance))

    mean = property(lambda self: _t.reshape(self.adapt_mean, self._broadcast))
    variance = property(lambda self: _t.reshape(self.adapt_variance, self._broadcast))

    @ignores("Normalization.adapt", "batch_size")
    def adapt(self, data, batch_size=None, steps=None):
        """Takes mean and variance from data: an array, or a dataset of batches. Sums are in float64."""
        if self._given[0] is not None:
            raise ValueError("Cannot `adapt` a Normalization layer that is initialized with static `mean` and `variance`")
        # A list of arrays are batches; one of numbers is an array.
        whole = hasattr(data, "shape") or isinstance(data, (list, tuple)) and not any(hasattr(part, "shape") for part in data)
        batches = [data] if whole else data
        count, total, squares = 0, 0.0, 0.0
        for i, batch in enumerate(batches):
            if steps is not None and i >= steps:
                break
            batch = np.asarray(batch.numpy() if hasattr(batch, "numpy") else batch, "float64")
            if batch.ndim == 1 and self.axis is not None:
                batch = batch[:, None]
            if not self.built:
                self.build(TensorShape([None, *batch.shape[1:]]))
            rest = tuple(i for i in range(batch.ndim) if i not in self._axes(batch.ndim))
            count += int(np.prod([batch.shape[i] for i in rest]))
            total, squares = total + batch.sum(rest), squares + (batch * batch).sum(rest)
        if not count:
            raise ValueError("adapt needs data")
        mean = total / count
        self.adapt_mean.assign(np.asarray(mean, "float32"))
        self.adapt_variance.assign(np.asarray(np.maximum(squares / count - mean * mean, 0.0), "float32"))

    def call(self, inputs):
        """Computes."""
        x = inputs if inputs.dtype.is_floating else _t.cast(inputs, self.compute_dtype)
        if x.ndim == 1 and self.axis is not None:
            x = _t.expand_dims(x, 1)
        deviation = _maximum(_sqrt(_t.cast(self.variance, x.dtype)), _t.to_tensor(1e-7, x.dtype, None))
        mean = _t.cast(self.mean, x.dtype)
        return x * deviation + mean if self.invert else (x - mean) / deviation


class Resizing(Layer):
    """Images of another size."""

    def __init__(self, height, width, interpolation="bilinear", **kwargs):
        super().__init__(**kwargs)
        if interpolation not in ("bilinear", "nearest"):
            raise ValueError(f"interpolation must be 'bilinear' or 'nearest'. Received: {interpolation!r}")
        self.height, self.width, self.interpolation = int(height), int(width), interpolation

    def call(self, inputs):
        """Computes."""
        whole = inputs if inputs.dtype.is_floating else _t.cast(inputs, self.compute_dtype)
        whole = whole if inputs.ndim == 4 else _t.expand_dims(whole, 0)
        made = _t.resize(whole, [self.height, self.width], self.interpolation == "nearest")
        made = made if inputs.dtype.is_floating else _t.cast(_t.Op("round", "round", ["x"])(made), inputs.dtype)
        return made if inputs.ndim == 4 else _t.squeeze(made, [0])


class CenterCrop(Layer):
    """The middle of images."""

    def __init__(self, height, width, **kwargs):
        super().__init__(**kwargs)
        self.height, self.width = int(height), int(width)

    def call(self, inputs):
        """Computes."""
        height, width = inputs.lengths[-3:-1]
        if height < self.height or width < self.width:
            raise ValueError(f"a crop of {(self.height, self.width)} from images of {(height, width)} in layer {self.name!r}")
        top, left = (height - self.height) // 2, (width - self.width) // 2
        return inputs[..., top:top + self.height, left:left + self.width, :]


class RandomFlip(Layer):
    """Images turned over at random in training."""

    def __init__(self, mode="horizontal_and_vertical", seed=None, **kwargs):
        super().__init__(**kwargs)
        if mode not in ("horizontal", "vertical", "horizontal_and_vertical"):
            raise ValueError(f"RandomFlip layer received an unknown mode={mode!r}")
        from .core import _seed

        self.mode, self.seed = mode, _seed(seed)

    def call(self, inputs, training=None):
        """Computes."""
        if not training:
            return inputs
        axes = {"horizontal": [-2], "vertical": [-3]}.get(self.mode, [-2, -3])
        for axis in axes:
            shape = [inputs.lengths[0], *[1] * (inputs.ndim - 1)]
            turned = _t.random_uniform(0.0, 1.0, shape, "float32", None) < 0.5
            inputs = _t.where_(turned, _t.reverse(inputs, [axis % inputs.ndim]), inputs)
        return inputs


class CategoryEncoding(Layer):
    """Numbers of classes as ones among zeros, for each or together."""

    def __init__(self, num_tokens=None, output_mode="multi_hot", **kwargs):
        super().__init__(**kwargs)
        if num_tokens is None or output_mode not in ("multi_hot", "one_hot", "count"):
            raise ValueError(f"num_tokens must be set, and output_mode one of 'multi_hot', 'one_hot', 'count'. Received: "
                             f"num_tokens={num_tokens}, output_mode={output_mode!r}")
        self.num_tokens, self.output_mode, self.autocast = int(num_tokens), output_mode, False

    def _hint(self):
        return "int32"

    def call(self, inputs):
        """Computes."""
        numbers = inputs if inputs.dtype.is_integer else _t.cast(inputs, "int32")
        numbers = numbers if numbers.ndim else _t.expand_dims(numbers, 0)
        hot = _t.one_hot(numbers, self.num_tokens, self.compute_dtype, 1, 0)
        if self.output_mode == "one_hot":
            return _t.squeeze(hot, [-2]) if numbers.ndim > 1 and numbers.lengths[-1] == 1 else hot
        fold = _t.reduce_sum if self.output_mode == "count" else _t.reduce_max
        return fold(hot, -2, False)


class Discretization(Layer):
    """Numbers as the number of the bin that they are in."""

    def __init__(self, bin_boundaries=None, **kwargs):
        super().__init__(**kwargs)
        if bin_boundaries is None:
            raise ValueError("Discretization needs bin_boundaries")
        self.bin_boundaries, self.autocast = [float(b) for b in bin_boundaries], False

    def call(self, inputs):
        """Computes."""
        x = inputs if inputs.dtype.is_floating else _t.cast(inputs, floatx())
        made = _t.searchsorted(_t.to_tensor(self.bin_boundaries, x.dtype, None), _t.reshape(x, [-1]), True)
        return _t.reshape(_t.cast(made, "int32"), inputs.lengths)
