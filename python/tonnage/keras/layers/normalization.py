"""Layers that bring numbers to a common size."""

from ... import _replicas
from ... import _tonnage as _t
from ..._shape import TensorShape
from .. import constraints, initializers, regularizers
from ..backend import epsilon
from .base import Layer
from .spec import InputSpec

_rsqrt = _t.Op("rsqrt", "rsqrt", ["x"])


class _Scaled(Layer):
    """What they share: a scale and a bias, each if wanted."""

    supports_masking = True
    _takes_floats = True

    def __init__(self, axis, epsilon, center, scale, beta_initializer, gamma_initializer, beta_regularizer,
                 gamma_regularizer, beta_constraint, gamma_constraint, **kwargs):
        super().__init__(**kwargs)
        self.axis, self.epsilon, self.center, self.scale = axis, float(epsilon), center, scale
        self._beta_of = initializers.get(beta_initializer), regularizers.get(beta_regularizer), constraints.get(beta_constraint)
        self._gamma_of = (initializers.get(gamma_initializer), regularizers.get(gamma_regularizer),
                          constraints.get(gamma_constraint))
        self.gamma = self.beta = None

    def _add_scale(self, shape):
        for name, wanted, (first, regularizer, constraint) in (("gamma", self.scale, self._gamma_of),
                                                               ("beta", self.center, self._beta_of)):
            if wanted:
                made = self.add_weight(shape, first, name=name, regularizer=regularizer, constraint=constraint)
                setattr(self, name, made)

    def _both(self, shape, dtype):
        """Scale and bias as the ops take them: ones and zeros, which take no memory, where there are none."""
        gamma = _t.fill(shape, 1, dtype) if self.gamma is None else _t.reshape(_as(self.gamma, dtype), shape)
        beta = _t.fill(shape, 0, dtype) if self.beta is None else _t.reshape(_as(self.beta, dtype), shape)
        return gamma, beta


def _as(value, dtype):
    value = _t.to_tensor(value, None, None)
    return value if value.dtype == dtype else _t.cast(value, dtype)


def _last(x, axis):
    """An axis as the last one, and how to bring it back."""
    axis %= x.ndim
    if axis == x.ndim - 1:
        return x, lambda made: made
    order = [i for i in range(x.ndim) if i != axis] + [axis]
    back = [order.index(i) for i in range(x.ndim)]
    return _t.transpose(x, order), lambda made: _t.transpose(made, back)


class BatchNormalization(_Scaled):
    """Over the batch: each channel has a mean of 0 and a deviation of 1 in training; otherwise means over the batches that
    were seen take their place."""

    def __init__(self, axis=-1, momentum=0.99, epsilon=0.001, center=True, scale=True, beta_initializer="zeros",
                 gamma_initializer="ones", moving_mean_initializer="zeros", moving_variance_initializer="ones",
                 beta_regularizer=None, gamma_regularizer=None, beta_constraint=None, gamma_constraint=None,
                 synchronized=False, **kwargs):
        super().__init__(axis, epsilon, center, scale, beta_initializer, gamma_initializer, beta_regularizer,
                         gamma_regularizer, beta_constraint, gamma_constraint, **kwargs)
        self.momentum = float(momentum)
        self._moving_of = initializers.get(moving_mean_initializer), initializers.get(moving_variance_initializer)

    def build(self, input_shape):
        """Makes scale, bias and the means over batches."""
        shape = TensorShape(input_shape)
        channels = shape[self.axis]
        if channels is None:
            raise ValueError(f"Axis {self.axis} of the input of layer {self.name!r} should be defined: {tuple(shape)}")
        self._add_scale((channels,))
        mean, variance = self._moving_of
        self.moving_mean = self.add_weight((channels,), mean, trainable=False, name="moving_mean")
        self.moving_variance = self.add_weight((channels,), variance, trainable=False, name="moving_variance")
        self.input_spec = InputSpec(ndim=len(shape), axes={self.axis: channels})

    def call(self, inputs, training=None, mask=None):
        """Computes."""
        x, back = _last(inputs, self.axis)
        # Statistics of 16 bits would not add up.
        small = x.dtype.name in ("float16", "bfloat16")
        x = _t.cast(x, "float32") if small else x
        shape = [x.lengths[-1]]
        gamma, beta = self._both(shape, x.dtype)
        if not training or not self.trainable:
            made = _t.batch_norm_by(x, _as(self.moving_mean, x.dtype), _as(self.moving_variance, x.dtype), gamma, beta,
                                    self.epsilon)
        elif mask is not None:
            if mask.ndim != inputs.ndim - 1:
                raise ValueError(f"The mask provided should be one dimension less than the inputs. Received: "
                                 f"mask.shape={tuple(mask.shape)}, inputs.shape={tuple(inputs.shape)}")
            # A mask has all axes of the input but the last one, wherever the channels are.
            whole = _t.broadcast_to(_t.expand_dims(_t.cast(mask, "bool"), -1), inputs.lengths)
            made = self._masked(x, _last(whole, self.axis)[0], gamma, beta)
        else:
            made, mean, variance = _t.batch_norm(x, gamma, beta, self.epsilon)
            self._remember(mean, variance)
        return back(_t.cast(made, inputs.dtype) if small else made)

    def _masked(self, x, mask, gamma, beta):
        axes, zero = list(range(x.ndim - 1)), _t.zeros_like(x)
        count = _t.reduce_sum(_t.cast(mask, x.dtype), axes, False) + epsilon()
        mean = _t.reduce_sum(_t.where_(mask, x, zero), axes, False) / count
        off = _t.where_(mask, x - mean, zero)
        variance = _t.reduce_sum(off * off, axes, False) / count
        self._remember(mean, variance)
        return (x - mean) * (_rsqrt(variance + self.epsilon) * gamma) + beta

    def _remember(self, mean, variance):
        for variable, new in ((self.moving_mean, mean), (self.moving_variance, variance)):
            # The same on all replicas, which each see a part of the batch.
            new = _replicas.mean(_as(_t.stop_gradient(new), variable.dtype))
            variable.assign(variable * self.momentum + new * (1.0 - self.momentum))


class LayerNormalization(_Scaled):
    """A mean of 0 and a deviation of 1 along the last axis, or several."""

    def __init__(self, axis=-1, epsilon=0.001, center=True, scale=True, beta_initializer="zeros", gamma_initializer="ones",
                 beta_regularizer=None, gamma_regularizer=None, beta_constraint=None, gamma_constraint=None, **kwargs):
        super().__init__(axis, epsilon, center, scale, beta_initializer, gamma_initializer, beta_regularizer,
                         gamma_regularizer, beta_constraint, gamma_constraint, **kwargs)

    def _axes(self, rank):
        axes = [self.axis] if isinstance(self.axis, int) else list(self.axis)
        return sorted(axis % rank for axis in axes)

    def build(self, input_shape):
        """Makes scale and bias."""
        shape = TensorShape(input_shape)
        lengths = [shape[axis] for axis in self._axes(len(shape))]
        self._add_scale(lengths)
        self.input_spec = InputSpec(ndim=len(shape), axes=dict(zip(self._axes(len(shape)), lengths)))

    def call(self, inputs):
        """Computes."""
        axes = self._axes(inputs.ndim)
        if axes == [inputs.ndim - 1]:
            gamma, beta = self._both([inputs.lengths[-1]], inputs.dtype)
            return _t.layer_norm(inputs, gamma, beta, self.epsilon)
        mean = _t.reduce_mean(inputs, axes, True)
        off = inputs - mean
        variance = _t.reduce_mean(off * off, axes, True)
        gamma, beta = self._both([n if i in axes else 1 for i, n in enumerate(inputs.lengths)], inputs.dtype)
        return off * (_rsqrt(variance + self.epsilon) * gamma) + beta


class RMSNormalization(Layer):
    """A mean square of 1 along the last axis."""

    supports_masking = True
    _takes_floats = True

    def __init__(self, axis=-1, epsilon=1e-6, **kwargs):
        super().__init__(**kwargs)
        self.axis, self.epsilon = axis, float(epsilon)

    def build(self, input_shape):
        """Makes the scale."""
        self.scale = self.add_weight((TensorShape(input_shape)[self.axis],), "ones", name="scale")

    def call(self, inputs):
        """Computes."""
        x, back = _last(inputs, self.axis)
        return back(_t.rms_norm(x, _as(self.scale, x.dtype), self.epsilon))


class GroupNormalization(_Scaled):
    """A mean of 0 and a deviation of 1 over each group of channels of each row."""

    def __init__(self, groups=32, axis=-1, epsilon=1e-3, center=True, scale=True, beta_initializer="zeros",
                 gamma_initializer="ones", beta_regularizer=None, gamma_regularizer=None, beta_constraint=None,
                 gamma_constraint=None, **kwargs):
        super().__init__(axis, epsilon, center, scale, beta_initializer, gamma_initializer, beta_regularizer,
                         gamma_regularizer, beta_constraint, gamma_constraint, **kwargs)
        self.groups = groups

    def build(self, input_shape):
        """Makes scale and bias."""
        channels = TensorShape(input_shape)[self.axis]
        if self.groups == -1:
            self.groups = channels
        if channels < self.groups or channels % self.groups:
            raise ValueError(f"Number of groups ({self.groups}) must divide the number of channels ({channels}) of layer "
                             f"{self.name!r}; input shape {tuple(input_shape)}")
        self._add_scale((channels,))

    def call(self, inputs):
        """Computes."""
        x, back = _last(inputs, self.axis)
        gamma, beta = self._both([x.lengths[-1]], x.dtype)
        return back(_t.group_norm(x, self.groups, gamma, beta, self.epsilon))


class UnitNormalization(Layer):
    """A norm of 1 along an axis."""

    supports_masking = True
    _takes_floats = True

    def __init__(self, axis=-1, **kwargs):
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs):
        """Computes."""
        squares = _t.reduce_sum(inputs * inputs, list(self.axis) if isinstance(self.axis, tuple) else self.axis, True)
        least = _t.to_tensor(1e-24, squares.dtype, None)
        return inputs * _rsqrt(_t.Op("maximum", "maximum", ["x", "y"])(squares, least))
