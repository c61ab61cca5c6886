"""Losses: as functions, one number a row; as objects, the mean of those over the batch."""

import inspect as _inspect
import math as _math

from .. import _tonnage as _t
from .. import nn as _nn
from ..math import reduce_mean
from .saving import Configured as _Configured
from .saving import get as _get
from .._notices import ignores

_log, _log1p = _t.Op("log", "log", ["x"]), _t.Op("log1p", "log1p", ["x"])
_maximum = _t.Op("maximum", "maximum", ["x", "y"])


def _pair(y_true, y_pred):
    y_pred = _t.to_tensor(y_pred, None, None)
    y_true = _t.to_tensor(y_true, None, y_pred.dtype)
    y_true = y_true if y_true.dtype == y_pred.dtype else _t.cast(y_true, y_pred.dtype)
    return _squeezed(y_true, y_pred)


def _squeezed(y_true, y_pred):
    """Both of one rank, where one has a last axis of length 1 too many."""
    if y_pred.ndim == y_true.ndim + 1 and y_pred.lengths[-1] == 1:
        y_true = _t.expand_dims(y_true, -1)
    elif y_true.ndim == y_pred.ndim + 1 and y_true.lengths[-1] == 1:
        y_true = _t.squeeze(y_true, [-1])
    return y_true, y_pred


def _clipped(p, low=1e-7, high=1.0 - 1e-7):
    return _t.clip(p, *(_t.to_tensor(v, p.dtype, None) for v in (low, high)))


def mean_squared_error(y_true, y_pred):
    """The mean of squared differences along the last axis."""
    y_true, y_pred = _pair(y_true, y_pred)
    off = y_pred - y_true
    return reduce_mean(off * off, -1)


def mean_absolute_error(y_true, y_pred):
    """The mean of differences along the last axis."""
    y_true, y_pred = _pair(y_true, y_pred)
    return reduce_mean(abs(y_pred - y_true), -1)


def mean_absolute_percentage_error(y_true, y_pred):
    """The same in hundredths of the truth."""
    y_true, y_pred = _pair(y_true, y_pred)
    least = _t.to_tensor(1e-7, y_true.dtype, None)
    return 100.0 * reduce_mean(abs((y_true - y_pred) / _maximum(abs(y_true), least)), -1)


def mean_squared_logarithmic_error(y_true, y_pred):
    """The mean of squared differences of logarithms."""
    y_true, y_pred = _pair(y_true, y_pred)
    least = _t.to_tensor(1e-7, y_true.dtype, None)
    off = _log1p(_maximum(y_pred, least)) - _log1p(_maximum(y_true, least))
    return reduce_mean(off * off, -1)


def huber(y_true, y_pred, delta=1.0):
    """Squares of small differences, sizes of large ones."""
    y_true, y_pred = _pair(y_true, y_pred)
    off = abs(y_pred - y_true)
    near = off <= _t.to_tensor(float(delta), off.dtype, None)
    return reduce_mean(_t.where_(near, 0.5 * off * off, delta * off - 0.5 * delta * delta), -1)


def log_cosh(y_true, y_pred):
    """The logarithm of the hyperbolic cosine of differences."""
    y_true, y_pred = _pair(y_true, y_pred)
    off = y_pred - y_true
    return reduce_mean(off + _nn.softplus(-2.0 * off) - _math.log(2.0), -1)


def categorical_crossentropy(y_true, y_pred, from_logits=False, label_smoothing=0.0, axis=-1):
    """The cross entropy with labels as probabilities."""
    y_true, y_pred = _pair(y_true, y_pred)
    _same_shape("categorical_crossentropy", y_true, y_pred)
    if axis not in (-1, y_pred.ndim - 1):
        y_true, y_pred = _last(y_true, axis), _last(y_pred, axis)
    if from_logits:
        return _t.cross_entropy(y_pred, y_true, float(label_smoothing))
    if label_smoothing:
        y_true = y_true * (1.0 - label_smoothing) + label_smoothing / y_pred.lengths[-1]
    logs = _log(_clipped(y_pred / _t.reduce_sum(y_pred, -1, True)))
    return -_t.reduce_sum(y_true * logs, -1, False)


def _last(x, axis):
    axis %= x.ndim
    return _t.transpose(x, [*(i for i in range(x.ndim) if i != axis), axis])


def _same_shape(name, y_true, y_pred):
    fit = y_true.ndim == y_pred.ndim and all(a is None or b is None or a == b
                                             for a, b in zip(y_true.lengths, y_pred.lengths))
    if not fit:
        raise ValueError(f"Arguments `target` and `output` must have the same shape. Received: "
                         f"target.shape={tuple(y_true.shape)}, output.shape={tuple(y_pred.shape)} ({name})")


def sparse_categorical_crossentropy(y_true, y_pred, from_logits=False, ignore_class=None, axis=-1):
    """The cross entropy with labels as numbers of classes."""
    y_pred = _t.to_tensor(y_pred, None, None)
    y_true = _t.to_tensor(y_true, None, None)
    if not y_true.dtype.is_integer:
        y_true = _t.cast(y_true, "int32")
    if axis not in (-1, y_pred.ndim - 1):
        y_pred = _last(y_pred, axis)
    if y_true.ndim == y_pred.ndim and y_true.lengths[-1] == 1:
        y_true = _t.squeeze(y_true, [-1])
    if y_true.ndim != y_pred.ndim - 1:
        raise ValueError(f"Argument `output` must have rank (ndim) `target.ndim + 1`. Received: "
                         f"target.shape={tuple(y_true.shape)}, output.shape={tuple(y_pred.shape)}")
    kept = None
    if ignore_class is not None:
        kept = y_true != _t.to_tensor(ignore_class, y_true.dtype, None)
        y_true = _t.where_(kept, y_true, _t.zeros_like(y_true))
    if not from_logits:
        # The softmax of logarithms of probabilities is those scaled to a sum of 1.
        y_pred = _log(_clipped(y_pred))
    made = _nn.sparse_softmax_cross_entropy_with_logits(y_true, y_pred)
    if kept is None:
        return made
    made = _t.where_(kept, made, _t.zeros_like(made))
    made._keras_mask = kept  # the mean is over what is left
    return made


def binary_crossentropy(y_true, y_pred, from_logits=False, label_smoothing=0.0, axis=-1):
    """The mean cross entropy of yes and no."""
    y_true, y_pred = _pair(y_true, y_pred)
    _same_shape("binary_crossentropy", y_true, y_pred)
    if label_smoothing:
        y_true = y_true * (1.0 - label_smoothing) + 0.5 * label_smoothing
    if from_logits:
        return reduce_mean(_nn.sigmoid_cross_entropy_with_logits(y_true, y_pred), axis)
    y_pred = _clipped(y_pred)
    return -reduce_mean(y_true * _log(y_pred) + (1.0 - y_true) * _log(1.0 - y_pred), axis)


def binary_focal_crossentropy(y_true, y_pred, apply_class_balancing=False, alpha=0.25, gamma=2.0, from_logits=False,
                              label_smoothing=0.0, axis=-1):
    """The cross entropy of yes and no, less of what is easy."""
    y_true, y_pred = _pair(y_true, y_pred)
    if label_smoothing:
        y_true = y_true * (1.0 - label_smoothing) + 0.5 * label_smoothing
    p = _nn.sigmoid(y_pred) if from_logits else y_pred
    p = _clipped(p)
    entropy = -(y_true * _log(p) + (1.0 - y_true) * _log(1.0 - p))
    hit = y_true * p + (1.0 - y_true) * (1.0 - p)
    made = (1.0 - hit) ** gamma * entropy
    if apply_class_balancing:
        made = (y_true * alpha + (1.0 - y_true) * (1.0 - alpha)) * made
    return reduce_mean(made, axis)


def kl_divergence(y_true, y_pred):
    """How far one distribution is from another."""
    y_true, y_pred = (_clipped(v, 1e-7, 1.0) for v in _pair(y_true, y_pred))
    return _t.reduce_sum(y_true * _log(y_true / y_pred), -1, False)


def poisson(y_true, y_pred):
    """The loss of counts."""
    y_true, y_pred = _pair(y_true, y_pred)
    return reduce_mean(y_pred - y_true * _log(y_pred + 1e-7), -1)


def _signs(y_true):
    """Labels of 0 and 1 as -1 and 1; others as they are. Whether they are the former, only the data tell."""
    binary = _t.reduce_all((y_true == 0.0) | (y_true == 1.0), None, False)
    return _t.where_(binary, 2.0 * y_true - 1.0, y_true)


def hinge(y_true, y_pred):
    """How much is missing to a margin of 1."""
    y_true, y_pred = _pair(y_true, y_pred)
    return reduce_mean(_nn.relu(1.0 - _signs(y_true) * y_pred), -1)


def squared_hinge(y_true, y_pred):
    """The square of that."""
    y_true, y_pred = _pair(y_true, y_pred)
    off = _nn.relu(1.0 - _signs(y_true) * y_pred)
    return reduce_mean(off * off, -1)


def categorical_hinge(y_true, y_pred):
    """The same of the right class and the best of the others."""
    y_true, y_pred = _pair(y_true, y_pred)
    right = _t.reduce_sum(y_true * y_pred, -1, False)
    other = _t.reduce_max((1.0 - y_true) * y_pred, -1, False)
    return _nn.relu(other - right + 1.0)


def cosine_similarity(y_true, y_pred, axis=-1):
    """The cosine of the angle: 1 where both point the same way."""
    y_true, y_pred = _pair(y_true, y_pred)
    return _t.reduce_sum(_t.l2_normalize(y_true, axis, 1e-12) * _t.l2_normalize(y_pred, axis, 1e-12), axis, False)


MSE = mse = mean_squared_error
MAE = mae = mean_absolute_error
MAPE = mape = mean_absolute_percentage_error
MSLE = msle = mean_squared_logarithmic_error
KLD = kld = kullback_leibler_divergence = kl_divergence
bce, logcosh = binary_crossentropy, log_cosh


def reduced(values, sample_weight, reduction, mask=None):
    """Losses a row as one number: weighted, then the mean over all of them, the sum, or as they are."""
    weight = None
    if mask is not None:
        # Rows that are left out count neither above nor below the line.
        mask = _t.cast(_t.to_tensor(mask, None, None), values.dtype)
        if mask.ndim > values.ndim and mask.lengths[-1] == 1:
            mask = _t.squeeze(mask, [-1])
        count, total = _t.reduce_sum(mask, None, False), _t.reduce_sum(_t.ones_like(mask), None, False)
        weight = mask * (total / _maximum(count, _t.to_tensor(1e-7, values.dtype, None)))
    if sample_weight is not None:
        given = _t.to_tensor(sample_weight, None, values.dtype)
        given = given if given.dtype == values.dtype else _t.cast(given, values.dtype)
        if given.ndim == values.ndim + 1 and given.lengths[-1] == 1:
            given = _t.squeeze(given, [-1])
        while given.ndim < values.ndim:
            given = _t.expand_dims(given, -1)
        weight = given if weight is None else weight * given
    weighted = values if weight is None else values * weight
    if reduction in (None, "none"):
        return weighted
    if reduction == "sum":
        return _t.reduce_sum(weighted, None, False)
    if reduction == "mean_with_sample_weight" and sample_weight is not None:
        total = _t.reduce_sum(_t.broadcast_to(weight, values.lengths), None, False)
        return _t.reduce_sum(weighted, None, False) / total
    return reduce_mean(weighted)


class Loss(_Configured):
    """A loss as an object: the mean over the batch, unless told otherwise."""

    @ignores("Loss", "dtype")
    def __init__(self, name=None, reduction="sum_over_batch_size", dtype=None):
        if reduction not in (None, "none", "sum", "sum_over_batch_size", "mean", "mean_with_sample_weight", "auto"):
            raise ValueError(f"Invalid value for argument `reduction`: {reduction!r}. Expected one of 'sum_over_batch_size', "
                             "'sum', 'mean', 'mean_with_sample_weight', 'none' or None.")
        self.name = name or _snake(type(self).__name__)
        self.reduction = reduction

    def call(self, y_true, y_pred):
        """One number a row."""
        raise NotImplementedError

    def __call__(self, y_true, y_pred, sample_weight=None):
        made = _t.to_tensor(self.call(y_true, y_pred), None, None)
        masks = [m for m in (getattr(y_pred, "_keras_mask", None), getattr(made, "_keras_mask", None)) if m is not None]
        mask = masks[0] & masks[1] if len(masks) == 2 else masks[0] if masks else None
        return reduced(made, sample_weight, self.reduction, mask)


def _snake(name):
    from ..module import camel_to_snake

    return camel_to_snake(name)


class LossFunctionWrapper(Loss):
    """A function as a loss object."""

    def __init__(self, fn, reduction="sum_over_batch_size", name=None, dtype=None, **kwargs):
        super().__init__(name or getattr(fn, "__name__", None), reduction)
        self.fn, self._fn_kwargs = fn, kwargs

    def call(self, y_true, y_pred):
        """One number a row."""
        return self.fn(y_true, y_pred, **self._fn_kwargs)


def _wrapped(name, function, doc, *, of=(), named=None):
    """The class of a loss function; ``of`` are its settings and their usual values."""
    keys = [key for key, _ in of]
    usual = [*of, ("reduction", "sum_over_batch_size"), ("name", named or _snake(name)), ("dtype", None)]
    positional = _inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = _inspect.Signature([_inspect.Parameter("self", positional),
                                    *(_inspect.Parameter(key, positional, default=value) for key, value in usual)])

    def __init__(self, *args, **kwargs):
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        Loss.__init__(self, *(bound.arguments[key] for key in ("name", "reduction", "dtype")))
        for key in keys:
            setattr(self, key, bound.arguments[key])

    def call(self, y_true, y_pred):
        """One number a row."""
        return function(y_true, y_pred, **{key: getattr(self, key) for key in keys})

    __init__.__signature__ = signature
    return type(name, (Loss,), {"__init__": __init__, "call": call, "__doc__": doc, "__module__": __name__})


_LOGITS = (("from_logits", False), ("label_smoothing", 0.0), ("axis", -1))
MeanSquaredError = _wrapped("MeanSquaredError", mean_squared_error, "The mean of squared differences.")
MeanAbsoluteError = _wrapped("MeanAbsoluteError", mean_absolute_error, "The mean of differences.")
MeanAbsolutePercentageError = _wrapped("MeanAbsolutePercentageError", mean_absolute_percentage_error,
                                       "The mean of differences in hundredths of the truth.")
MeanSquaredLogarithmicError = _wrapped("MeanSquaredLogarithmicError", mean_squared_logarithmic_error,
                                       "The mean of squared differences of logarithms.")
Huber = _wrapped("Huber", huber, "Squares of small differences, sizes of large ones.", of=(("delta", 1.0),),
                 named="huber_loss")
LogCosh = _wrapped("LogCosh", log_cosh, "The logarithm of the hyperbolic cosine of differences.")
CategoricalCrossentropy = _wrapped("CategoricalCrossentropy", categorical_crossentropy,
                                   "The cross entropy with labels as probabilities.", of=_LOGITS)
BinaryCrossentropy = _wrapped("BinaryCrossentropy", binary_crossentropy, "The cross entropy of yes and no.", of=_LOGITS)
SparseCategoricalCrossentropy = _wrapped(
    "SparseCategoricalCrossentropy", sparse_categorical_crossentropy, "The cross entropy with labels as numbers of classes.",
    of=(("from_logits", False), ("ignore_class", None), ("axis", -1)))
BinaryFocalCrossentropy = _wrapped(
    "BinaryFocalCrossentropy", binary_focal_crossentropy, "The cross entropy of yes and no, less of what is easy.",
    of=(("apply_class_balancing", False), ("alpha", 0.25), ("gamma", 2.0), *_LOGITS))
KLDivergence = _wrapped("KLDivergence", kl_divergence, "How far one distribution is from another.", named="kl_divergence")
Poisson = _wrapped("Poisson", poisson, "The loss of counts.")
Hinge = _wrapped("Hinge", hinge, "How much is missing to a margin of 1.")
SquaredHinge = _wrapped("SquaredHinge", squared_hinge, "The square of that.")
CategoricalHinge = _wrapped("CategoricalHinge", categorical_hinge, "That of the right class and the best of the others.")


class CosineSimilarity(Loss):
    """Minus the cosine of the angle between labels and predictions."""

    def __init__(self, axis=-1, reduction="sum_over_batch_size", name="cosine_similarity", dtype=None):
        super().__init__(name, reduction)
        self.axis = axis

    def call(self, y_true, y_pred):
        """One number a row."""
        return -cosine_similarity(y_true, y_pred, self.axis)


def get(identifier):
    """The loss of that name; a callable is itself."""
    return _get(identifier, globals(), "loss function", Loss)
