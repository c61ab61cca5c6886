"""Activations by name."""

from .. import nn as _nn
from .. import _tonnage as _t


def linear(x):
    """The same values."""
    return x


def softmax(x, axis=-1):
    """Exponentials along an axis, scaled to a sum of 1."""
    return _nn.softmax(x, axis)


def relu(x, negative_slope=0.0, max_value=None, threshold=0.0):
    """The positive part."""
    made = _nn.leaky_relu(x, negative_slope) if negative_slope else _nn.relu(x)
    return made if max_value is None else _t.Op("minimum", "minimum", ["x", "y"])(made, max_value)


def exponential(x):
    """The exponential."""
    return _t.Op("exp", "exp", ["x"])(x)


def hard_sigmoid(x):
    """A sigmoid of straight lines."""
    return _t.Op("hard_sigmoid", "hard_sigmoid", ["x"])(x)


sigmoid, tanh, softplus, softsign = _nn.sigmoid, _nn.tanh, _nn.softplus, _nn.softsign
elu, selu, gelu, relu6, leaky_relu = _nn.elu, _nn.selu, _nn.gelu, _nn.relu6, _nn.leaky_relu
silu = swish = _nn.silu


def get(identifier):
    """The activation of that name; a callable is itself."""
    if identifier is None:
        return linear
    if callable(identifier):
        return identifier
    found = globals().get(identifier)
    if not isinstance(identifier, str) or found is None or identifier.startswith("_"):
        raise ValueError(f"Could not interpret activation function identifier: {identifier!r}")
    return found
