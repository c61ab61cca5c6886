"""What weights are brought back to after each update."""

from .. import _tonnage as _t
from .. import nn as _nn
from .saving import Configured as _Configured
from .saving import get as _get


class Constraint(_Configured):
    """A callable from a weight to what it may be."""

    def __call__(self, w):
        return w


def _norms(w, axis):
    return _t.Op("sqrt", "sqrt", ["x"])(_t.reduce_sum(w * w, axis, True))


class MaxNorm(Constraint):
    """Norms along an axis of at most ``max_value``."""

    def __init__(self, max_value=2, axis=0):
        self.max_value, self.axis = max_value, axis

    def __call__(self, w):
        w = _t.to_tensor(w, None, None)
        norms = _norms(w, self.axis)
        low, high = (_t.to_tensor(float(v), w.dtype, None) for v in (0.0, self.max_value))
        return w * (_t.clip(norms, low, high) / (norms + 1e-7))


class NonNeg(Constraint):
    """Nothing negative."""

    def __call__(self, w):
        return _nn.relu(_t.to_tensor(w, None, None))


class UnitNorm(Constraint):
    """Norms along an axis of 1."""

    def __init__(self, axis=0):
        self.axis = axis

    def __call__(self, w):
        w = _t.to_tensor(w, None, None)
        return w / (_norms(w, self.axis) + 1e-7)


class MinMaxNorm(Constraint):
    """Norms along an axis between two bounds, drawn there at a rate."""

    def __init__(self, min_value=0.0, max_value=1.0, rate=1.0, axis=0):
        self.min_value, self.max_value, self.rate, self.axis = min_value, max_value, rate, axis

    def __call__(self, w):
        w = _t.to_tensor(w, None, None)
        norms = _norms(w, self.axis)
        low, high = (_t.to_tensor(float(v), w.dtype, None) for v in (self.min_value, self.max_value))
        wanted = self.rate * _t.clip(norms, low, high) + (1.0 - self.rate) * norms
        return w * (wanted / (norms + 1e-7))


max_norm, non_neg, unit_norm, min_max_norm = MaxNorm, NonNeg, UnitNorm, MinMaxNorm


def get(identifier):
    """The constraint of that name; a callable is itself."""
    return _get(identifier, globals(), "constraint", Constraint)
