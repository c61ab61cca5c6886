"""How weights start. Random ones take no memory until they are written."""

import math as _math

from .. import _tonnage as _t
from .. import random as _random


class Initializer:
    """A callable that makes a first value of a shape."""

    def __call__(self, shape, dtype=None, **kwargs):
        raise NotImplementedError


class Zeros(Initializer):
    """Zeros."""

    def __call__(self, shape, dtype=None, **kwargs):
        return _t.fill(shape, 0, dtype or "float32")


class Ones(Initializer):
    """Ones."""

    def __call__(self, shape, dtype=None, **kwargs):
        return _t.fill(shape, 1, dtype or "float32")


class Constant(Initializer):
    """One number."""

    def __init__(self, value=0.0):
        self.value = value

    def __call__(self, shape, dtype=None, **kwargs):
        return _t.fill(shape, self.value, dtype or "float32")


class RandomNormal(Initializer):
    """Normal random numbers."""

    def __init__(self, mean=0.0, stddev=0.05, seed=None):
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def __call__(self, shape, dtype=None, **kwargs):
        return _random.normal(shape, self.mean, self.stddev, dtype or "float32", self.seed)


class TruncatedNormal(RandomNormal):
    """Normal random numbers, none further than two deviations away."""

    def __call__(self, shape, dtype=None, **kwargs):
        return _random.truncated_normal(shape, self.mean, self.stddev, dtype or "float32", self.seed)


class RandomUniform(Initializer):
    """Random numbers between two bounds."""

    def __init__(self, minval=-0.05, maxval=0.05, seed=None):
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def __call__(self, shape, dtype=None, **kwargs):
        return _random.uniform(shape, self.minval, self.maxval, dtype or "float32", self.seed)


def _fans(shape):
    shape = [int(n) for n in shape]
    if len(shape) < 2:
        return (shape[0], shape[0]) if shape else (1, 1)
    field = _math.prod(shape[:-2])
    return shape[-2] * field, shape[-1] * field


class VarianceScaling(Initializer):
    """Random numbers whose variance follows how many inputs and outputs there are."""

    def __init__(self, scale=1.0, mode="fan_in", distribution="truncated_normal", seed=None):
        self.scale, self.mode, self.distribution, self.seed = scale, mode, distribution, seed

    def __call__(self, shape, dtype=None, **kwargs):
        fan_in, fan_out = _fans(shape)
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, fan)
        dtype = dtype or "float32"
        if self.distribution == "uniform":
            limit = _math.sqrt(3.0 * variance)
            return _random.uniform(shape, -limit, limit, dtype, self.seed)
        deviation = _math.sqrt(variance)
        if self.distribution == "untruncated_normal":
            return _random.normal(shape, 0.0, deviation, dtype, self.seed)
        return _random.truncated_normal(shape, 0.0, deviation / 0.87962566103423978, dtype, self.seed)


class GlorotUniform(VarianceScaling):
    """As Glorot and Bengio say."""

    def __init__(self, seed=None):
        super().__init__(1.0, "fan_avg", "uniform", seed)


class GlorotNormal(VarianceScaling):
    """The same with normal numbers."""

    def __init__(self, seed=None):
        super().__init__(1.0, "fan_avg", "truncated_normal", seed)


class HeUniform(VarianceScaling):
    """As He and others say."""

    def __init__(self, seed=None):
        super().__init__(2.0, "fan_in", "uniform", seed)


class HeNormal(VarianceScaling):
    """The same with normal numbers."""

    def __init__(self, seed=None):
        super().__init__(2.0, "fan_in", "truncated_normal", seed)


zeros, ones, constant = Zeros, Ones, Constant
_BY_NAME = {
    "zeros": Zeros, "ones": Ones, "constant": Constant, "random_normal": RandomNormal,
    "random_uniform": RandomUniform, "truncated_normal": TruncatedNormal, "glorot_uniform": GlorotUniform,
    "glorot_normal": GlorotNormal, "he_uniform": HeUniform, "he_normal": HeNormal,
    "variance_scaling": VarianceScaling,
}


def get(identifier):
    """The initializer of that name; a callable is itself."""
    if isinstance(identifier, str):
        for name in (identifier, identifier.lower()):
            if name in _BY_NAME:
                return _BY_NAME[name]()
        if isinstance(globals().get(identifier), type):
            return globals()[identifier]()
        raise ValueError(f"Could not interpret initializer identifier: {identifier!r}")
    return identifier() if isinstance(identifier, type) else identifier
