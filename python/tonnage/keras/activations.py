"""Activations by name."""

from .. import _tonnage as _t
from .. import nn as _nn
from .saving import get as _get

_exp = _t.Op("exp", "exp", ["x"])
_hard_sigmoid = _t.Op("hard_sigmoid", "hard_sigmoid", ["x"])


def linear(x):
    """The same values."""
    return x


def softmax(x, axis=-1):
    """Exponentials along an axis, scaled to a sum of 1."""
    return _nn.softmax(x, axis)


def log_softmax(x, axis=-1):
    """The logarithm of that."""
    return _nn.log_softmax(x, axis)


def relu(x, negative_slope=0.0, max_value=None, threshold=0.0):
    """The positive part; or what is above a threshold, up to a most, with a slope below."""
    x = _t.to_tensor(x, None, None)
    if negative_slope and not threshold and max_value is None:
        return _nn.leaky_relu(x, negative_slope)
    at = _t.to_tensor(threshold, x.dtype, None) if threshold else None
    if at is not None:
        made = _t.where_(x > at, x, _t.zeros_like(x))
    else:
        made = _nn.relu6(x) if max_value == 6 else _nn.relu(x)
    if max_value is not None and not (at is None and max_value == 6):
        made = _t.clip(made, _t.to_tensor(0, x.dtype, None), _t.to_tensor(max_value, x.dtype, None))
    if negative_slope:
        made = made - negative_slope * _nn.relu(-x if at is None else at - x)
    return made


def exponential(x):
    """The exponential."""
    return _exp(x)


def hard_sigmoid(x):
    """A sigmoid of straight lines: ``relu6(x + 3) / 6``."""
    return _hard_sigmoid(x)


def hard_silu(x):
    """``x`` times that."""
    x = _t.to_tensor(x, None, None)
    return x * _hard_sigmoid(x)


def mish(x):
    """``x * tanh(softplus(x))``."""
    x = _t.to_tensor(x, None, None)
    return x * _nn.tanh(_nn.softplus(x))


def glu(x, axis=-1):
    """One half times the sigmoid of the other."""
    first, second = _t.split_evenly(_t.to_tensor(x, None, None), 2, axis)
    return first * _nn.sigmoid(second)


def sigmoid(x):
    """``1 / (1 + exp(-x))``."""
    return _nn.sigmoid(x)


def log_sigmoid(x):
    """The logarithm of that."""
    return -_nn.softplus(-_t.to_tensor(x, None, None))


def tanh(x):
    """The hyperbolic tangent."""
    return _nn.tanh(x)


def softplus(x):
    """``log(1 + exp(x))``."""
    return _nn.softplus(x)


def softsign(x):
    """``x / (1 + abs(x))``."""
    return _nn.softsign(x)


def elu(x, alpha=1.0):
    """``alpha * (exp(x) - 1)`` where it is negative."""
    return _nn.elu(x, alpha)


def selu(x):
    """That, scaled so that means and deviations stay."""
    return _nn.selu(x)


def relu6(x):
    """The positive part, up to 6."""
    return _nn.relu6(x)


def leaky_relu(x, negative_slope=0.2):
    """The element, or a share of it where it is negative."""
    return _nn.leaky_relu(x, negative_slope)


def gelu(x, approximate=False):
    """The Gaussian error linear unit."""
    return _nn.gelu(x, approximate)


def silu(x):
    """``x * sigmoid(x)``."""
    return _nn.silu(x)


swish, hard_swish = silu, hard_silu


def serialize(activation):
    """An activation as plain data."""
    name = getattr(activation, "__name__", None)
    if name in globals() and globals()[name] is activation:
        return name
    from .saving import serialize_keras_object

    return serialize_keras_object(activation)


def deserialize(config, custom_objects=None):
    """An activation from plain data."""
    from .saving import deserialize_keras_object

    return get(deserialize_keras_object(config, custom_objects))


def get(identifier):
    """The activation of that name; a callable is itself."""
    if identifier is None:
        return linear
    return _get(identifier, globals(), "activation function")
