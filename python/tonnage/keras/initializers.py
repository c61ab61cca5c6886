"""How weights start. Random ones take no memory until they are written."""

import math as _math

from .. import _tonnage as _t
from .backend import floatx as _floatx
from .saving import Configured as _Configured
from .saving import get as _get


class Initializer(_Configured):
    """A callable that makes a first value of a shape."""

    def __call__(self, shape, dtype=None, **kwargs):
        raise NotImplementedError

    def clone(self):
        """Another one of the same settings."""
        return type(self).from_config(self.get_config())


class Zeros(Initializer):
    """Zeros."""

    def __call__(self, shape, dtype=None, **kwargs):
        return _t.fill(shape, 0, dtype or _floatx())


class Ones(Initializer):
    """Ones."""

    def __call__(self, shape, dtype=None, **kwargs):
        return _t.fill(shape, 1, dtype or _floatx())


class Constant(Initializer):
    """One number, or an array of the weight's shape."""

    def __init__(self, value=0.0):
        self.value = value

    def __call__(self, shape, dtype=None, **kwargs):
        dtype = dtype or _floatx()
        if isinstance(self.value, (int, float)):
            return _t.fill(shape, self.value, dtype)
        return _t.broadcast_to(_t.cast(_t.to_tensor(self.value, None, None), dtype), shape)


def _normal(draw, shape, mean, deviation, dtype, seed):
    """Normal numbers; the same at each call where there is a seed."""
    made = draw(shape, dtype, seed) * float(deviation)
    return made + float(mean) if mean else made


class RandomNormal(Initializer):
    """Normal random numbers."""

    def __init__(self, mean=0.0, stddev=0.05, seed=None):
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def __call__(self, shape, dtype=None, **kwargs):
        return _normal(_t.random_normal, shape, self.mean, self.stddev, dtype or _floatx(), self.seed)


class TruncatedNormal(RandomNormal):
    """Normal random numbers, none further than two deviations away."""

    def __call__(self, shape, dtype=None, **kwargs):
        return _normal(_t.random_truncated_normal, shape, self.mean, self.stddev, dtype or _floatx(), self.seed)


class RandomUniform(Initializer):
    """Random numbers between two bounds."""

    def __init__(self, minval=-0.05, maxval=0.05, seed=None):
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def __call__(self, shape, dtype=None, **kwargs):
        return _t.random_uniform(float(self.minval), float(self.maxval), shape, dtype or _floatx(), self.seed)


def _fans(shape):
    shape = [int(n) for n in shape]
    if len(shape) < 2:
        return (shape[0], shape[0]) if shape else (1, 1)
    field = _math.prod(shape[:-2])
    return shape[-2] * field, shape[-1] * field


class VarianceScaling(Initializer):
    """Random numbers whose variance follows how many inputs and outputs there are."""

    def __init__(self, scale=1.0, mode="fan_in", distribution="truncated_normal", seed=None):
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"Invalid `mode` argument: {mode!r}. Please use one of 'fan_in', 'fan_out', 'fan_avg'.")
        if scale <= 0.0:
            raise ValueError(f"Argument `scale` must be positive float. Received: scale={scale}")
        self.scale, self.mode, self.distribution, self.seed = scale, mode, distribution, seed

    def __call__(self, shape, dtype=None, **kwargs):
        fan_in, fan_out = _fans(shape)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, fan)
        dtype = dtype or _floatx()
        if self.distribution == "uniform":
            limit = _math.sqrt(3.0 * variance)
            return _t.random_uniform(-limit, limit, shape, dtype, self.seed)
        deviation = _math.sqrt(variance)
        if self.distribution == "untruncated_normal":
            return _normal(_t.random_normal, shape, 0.0, deviation, dtype, self.seed)
        # Cut off at two deviations, the numbers have this share of the deviation that they had.
        return _normal(_t.random_truncated_normal, shape, 0.0, deviation / 0.87962566103423978, dtype, self.seed)


def _scaled(name, doc, scale, mode, distribution):
    def __init__(self, seed=None):
        VarianceScaling.__init__(self, scale, mode, distribution, seed)

    return type(name, (VarianceScaling,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})


GlorotUniform = _scaled("GlorotUniform", "As Glorot and Bengio say.", 1.0, "fan_avg", "uniform")
GlorotNormal = _scaled("GlorotNormal", "The same with normal numbers.", 1.0, "fan_avg", "truncated_normal")
HeUniform = _scaled("HeUniform", "As He and others say.", 2.0, "fan_in", "uniform")
HeNormal = _scaled("HeNormal", "The same with normal numbers.", 2.0, "fan_in", "truncated_normal")
LecunUniform = _scaled("LecunUniform", "As LeCun and others say.", 1.0, "fan_in", "uniform")
LecunNormal = _scaled("LecunNormal", "The same with normal numbers.", 1.0, "fan_in", "truncated_normal")


class Orthogonal(Initializer):
    """A matrix whose rows, or columns, are orthogonal and of one length."""

    def __init__(self, gain=1.0, seed=None):
        self.gain, self.seed = gain, seed

    def __call__(self, shape, dtype=None, **kwargs):
        shape = [int(n) for n in shape]
        if len(shape) < 2:
            raise ValueError(f"The tensor to initialize must be at least two-dimensional. Received: shape={shape} of rank "
                             f"{len(shape)}.")
        rows, columns = _math.prod(shape[:-1]), shape[-1]
        flat = _t.random_normal([max(rows, columns), min(rows, columns)], "float32", self.seed)
        q, r = _t.qr(flat)
        # Signs by the diagonal make it uniform among all such matrices.
        q = q * _t.Op("sign", "sign", ["x"])(_t.diag_part(r, 0))
        if rows < columns:
            q = _t.transpose(q, [1, 0])
        return _t.cast(_t.reshape(q, shape) * float(self.gain), dtype or _floatx())


class Identity(Initializer):
    """Ones on the diagonal of a matrix."""

    def __init__(self, gain=1.0):
        self.gain = gain

    def __call__(self, shape, dtype=None, **kwargs):
        if len(shape) != 2:
            raise ValueError(f"Identity matrix initializer can only be used for 2D matrices. Received: shape={shape} of "
                             f"rank {len(shape)}.")
        return _t.eye([int(shape[0]), int(shape[1])], dtype or _floatx()) * float(self.gain)


IdentityInitializer, OrthogonalInitializer = Identity, Orthogonal
zeros, ones, constant = Zeros, Ones, Constant
random_normal, random_uniform, truncated_normal = RandomNormal, RandomUniform, TruncatedNormal
variance_scaling, orthogonal, identity = VarianceScaling, Orthogonal, Identity
glorot_uniform, glorot_normal, he_uniform, he_normal = GlorotUniform, GlorotNormal, HeUniform, HeNormal
lecun_uniform, lecun_normal = LecunUniform, LecunNormal
uniform, normal = RandomUniform, RandomNormal


def serialize(initializer):
    """An initializer as plain data."""
    from .saving import serialize_keras_object

    return serialize_keras_object(initializer)


def deserialize(config, custom_objects=None):
    """An initializer from plain data."""
    from .saving import deserialize_keras_object

    return deserialize_keras_object(config, custom_objects)


def get(identifier):
    """The initializer of that name; a callable is itself, an array a constant."""
    if hasattr(identifier, "__array__"):
        return lambda shape, dtype=None: _t.cast(_t.to_tensor(identifier, None, None), dtype or _floatx())
    return _get(identifier, globals(), "initializer", Initializer)
