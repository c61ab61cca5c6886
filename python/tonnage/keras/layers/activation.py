"""Activations as layers."""

from ... import _tonnage as _t
from ..._shape import TensorShape
from .. import activations, constraints, initializers, regularizers
from .base import Layer


class Activation(Layer):
    """An activation by its name, or a function."""

    supports_masking = True

    def __init__(self, activation, **kwargs):
        super().__init__(**kwargs)
        self.activation = activations.get(activation)

    def call(self, inputs):
        """Computes."""
        return self.activation(inputs)


class ReLU(Layer):
    """The positive part."""

    supports_masking = True

    def __init__(self, max_value=None, negative_slope=0.0, threshold=0.0, **kwargs):
        super().__init__(**kwargs)
        for what, value in (("max_value", max_value), ("negative_slope", negative_slope), ("threshold", threshold)):
            if value is not None and value < 0:
                raise ValueError(f"{what} of a ReLU layer cannot be a negative value. Received: {what}={value}")
        self.max_value, self.negative_slope, self.threshold = max_value, negative_slope or 0.0, threshold or 0.0

    def call(self, inputs):
        """Computes."""
        return activations.relu(inputs, self.negative_slope, self.max_value, self.threshold)


class LeakyReLU(Layer):
    """The element, or a share of it where it is negative."""

    supports_masking = True
    _takes_floats = True

    def __init__(self, negative_slope=0.3, **kwargs):
        negative_slope = kwargs.pop("alpha", negative_slope)
        super().__init__(**kwargs)
        if negative_slope is None or negative_slope < 0:
            raise ValueError(f"The negative_slope value of a Leaky ReLU layer cannot be None or negative. Received: "
                             f"negative_slope={negative_slope}")
        self.negative_slope = float(negative_slope)

    def call(self, inputs):
        """Computes."""
        return activations.leaky_relu(inputs, self.negative_slope)


class PReLU(Layer):
    """The element, or a share of it, which is learned, where it is negative."""

    supports_masking = True
    _takes_floats = True

    def __init__(self, alpha_initializer="zeros", alpha_regularizer=None, alpha_constraint=None, shared_axes=None, **kwargs):
        super().__init__(**kwargs)
        self.shared_axes = [shared_axes] if isinstance(shared_axes, int) else list(shared_axes or [])
        self._of = initializers.get(alpha_initializer), regularizers.get(alpha_regularizer), constraints.get(alpha_constraint)

    def build(self, input_shape):
        """Makes the shares."""
        shape = TensorShape(input_shape).as_list()[1:]
        for axis in self.shared_axes:
            shape[axis - 1] = 1
        first, regularizer, constraint = self._of
        self.alpha = self.add_weight(shape, first, name="alpha", regularizer=regularizer, constraint=constraint)

    def call(self, inputs):
        """Computes."""
        return activations.relu(inputs) - self.alpha * activations.relu(-inputs)


class ELU(Layer):
    """``alpha * (exp(x) - 1)`` where it is negative."""

    supports_masking = True
    _takes_floats = True

    def __init__(self, alpha=1.0, **kwargs):
        super().__init__(**kwargs)
        self.alpha = float(alpha)

    def call(self, inputs):
        """Computes."""
        return activations.elu(inputs, self.alpha)


def low(dtype):
    """A score so low that its exponential is 0 beside any other."""
    return _t.to_tensor(-3e4 if dtype.name == "float16" else -1e9, dtype, None)


class Softmax(Layer):
    """Exponentials along an axis, scaled to a sum of 1."""

    supports_masking = True
    _takes_floats = True

    def __init__(self, axis=-1, **kwargs):
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs, mask=None):
        """Computes; what a mask leaves out gets nothing, also where it leaves out all."""
        if mask is None:
            return self._along(inputs)
        mask = mask if mask.dtype.name == "bool" else mask > 0.5
        made = self._along(_t.where_(mask, inputs, low(inputs.dtype)))
        return _t.where_(mask, made, _t.zeros_like(made))

    def _along(self, inputs):
        axes = list(self.axis) if isinstance(self.axis, (list, tuple)) else [self.axis]
        if len(axes) == 1:
            return activations.softmax(inputs, axes[0])
        # Relative to the largest: beside a large number the logarithm of the sum would lose its digits.
        inputs = inputs - _t.stop_gradient(_t.reduce_max(inputs, axes, True))
        return _t.Op("exp", "exp", ["x"])(inputs - _t.reduce_logsumexp(inputs, axes, True))
