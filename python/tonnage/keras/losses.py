"""Losses: one number a row, as Keras' functions give them."""

from .. import _tonnage as _t
from .. import nn as _nn
from ..math import reduce_mean


def _pair(y_true, y_pred):
    y_pred = _t.to_tensor(y_pred, None, None)
    y_true = _t.to_tensor(y_true, None, y_pred.dtype)
    return (y_true if y_true.dtype == y_pred.dtype else _t.cast(y_true, y_pred.dtype)), y_pred


def mean_squared_error(y_true, y_pred):
    """The mean of squared differences along the last axis."""
    y_true, y_pred = _pair(y_true, y_pred)
    off = y_pred - y_true
    return reduce_mean(off * off, -1)


def mean_absolute_error(y_true, y_pred):
    """The mean of differences along the last axis."""
    y_true, y_pred = _pair(y_true, y_pred)
    return reduce_mean(abs(y_pred - y_true), -1)


def categorical_crossentropy(y_true, y_pred, from_logits=False, label_smoothing=0.0, axis=-1):
    """The cross entropy with labels as probabilities."""
    y_true, y_pred = _pair(y_true, y_pred)
    if from_logits:
        return _t.cross_entropy(y_pred, y_true, float(label_smoothing))
    logs = _t.Op("log", "log", ["x"])(_clipped(y_pred / _t.reduce_sum(y_pred, -1, True)))
    return -_t.reduce_sum(y_true * logs, -1, False)


def sparse_categorical_crossentropy(y_true, y_pred, from_logits=False, ignore_class=None, axis=-1):
    """The cross entropy with labels as numbers of classes."""
    y_pred = _t.to_tensor(y_pred, None, None)
    y_true = _t.to_tensor(y_true, None, None)
    if not y_true.dtype.is_integer:
        y_true = _t.cast(y_true, "int32")
    if not from_logits:
        y_pred = _t.Op("log", "log", ["x"])(_clipped(y_pred))
    return _nn.sparse_softmax_cross_entropy_with_logits(y_true, y_pred)


def binary_crossentropy(y_true, y_pred, from_logits=False, label_smoothing=0.0, axis=-1):
    """The mean cross entropy of yes and no."""
    y_true, y_pred = _pair(y_true, y_pred)
    if from_logits:
        return reduce_mean(_nn.sigmoid_cross_entropy_with_logits(y_true, y_pred), -1)
    log = _t.Op("log", "log", ["x"])
    y_pred = _clipped(y_pred)
    return -reduce_mean(y_true * log(y_pred) + (1.0 - y_true) * log(1.0 - y_pred), -1)


def _clipped(p):
    low, high = (_t.to_tensor(v, None, p.dtype) for v in (1e-7, 1.0 - 1e-7))
    return _t.clip(p, low, high)


MSE = mse = mean_squared_error
MAE = mae = mean_absolute_error


class Loss:
    """A loss as an object: the mean over the batch, unless told otherwise."""

    def __init__(self, reduction="sum_over_batch_size", name=None):
        self.reduction, self.name = reduction, name

    def call(self, y_true, y_pred):
        """One number a row."""
        raise NotImplementedError

    def __call__(self, y_true, y_pred, sample_weight=None):
        made = self.call(y_true, y_pred)
        if sample_weight is not None:
            made = made * sample_weight
        if self.reduction in (None, "none"):
            return made
        if self.reduction == "sum":
            return _t.reduce_sum(made, None, False)
        return reduce_mean(made)


class MeanSquaredError(Loss):
    """The mean of squared differences."""

    def call(self, y_true, y_pred):
        """One number a row."""
        return mean_squared_error(y_true, y_pred)


class MeanAbsoluteError(Loss):
    """The mean of differences."""

    def call(self, y_true, y_pred):
        """One number a row."""
        return mean_absolute_error(y_true, y_pred)


class _FromLogits(Loss):
    def __init__(self, from_logits=False, reduction="sum_over_batch_size", name=None, **_):
        super().__init__(reduction, name)
        self.from_logits = from_logits


class CategoricalCrossentropy(_FromLogits):
    """The cross entropy with labels as probabilities."""

    def call(self, y_true, y_pred):
        """One number a row."""
        return categorical_crossentropy(y_true, y_pred, self.from_logits)


class SparseCategoricalCrossentropy(_FromLogits):
    """The cross entropy with labels as numbers of classes."""

    def call(self, y_true, y_pred):
        """One number a row."""
        return sparse_categorical_crossentropy(y_true, y_pred, self.from_logits)


class BinaryCrossentropy(_FromLogits):
    """The cross entropy of yes and no."""

    def call(self, y_true, y_pred):
        """One number a row."""
        return binary_crossentropy(y_true, y_pred, self.from_logits)
