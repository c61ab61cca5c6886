"""Losses: as functions, one number a row; as objects, the mean of those over the batch."""

import inspect as _inspect
import math as _math

from .. import _replicas
from .. import _tonnage as _t
from .. import nn as _nn
from ..math import reduce_mean as _reduce_mean
from .backend import epsilon as _epsilon
from .backend import floatx as _floatx
from .saving import Configured as _Configured
from .saving import get as _get

_log, _log1p = _t.Op("log", "log", ["x"]), _t.Op("log1p", "log1p", ["x"])
_maximum = _t.Op("maximum", "maximum", ["x", "y"])
_quotient = _t.Op("divide_no_nan", "divide_no_nan", ["x", "y"])


def _as(value, dtype):
    """A tensor of that dtype."""
    value = _t.to_tensor(value, None, dtype)
    return value if value.dtype == dtype else _t.cast(value, dtype)


def _floats(value):
    """A tensor of floats: a mean of integers is no integer."""
    value = _t.to_tensor(value, None, None)
    return value if value.dtype.is_floating else _t.cast(value, _floatx())


def _pair(y_true, y_pred):
    """Labels and predictions as floats of one dtype and one rank."""
    y_pred = _floats(y_pred)
    return _same_rank(_as(y_true, y_pred.dtype), y_pred)


def _same_rank(first, second):
    """Both of one rank, where one has a last axis of length 1 too many: a vector beside it gets such an axis too, of a larger
    rank that axis is dropped."""
    if first.ndim == second.ndim + 1 and first.lengths[-1] == 1:
        return (first, _t.expand_dims(second, -1)) if second.ndim == 1 else (_t.squeeze(first, [-1]), second)
    if second.ndim == first.ndim + 1 and second.lengths[-1] == 1:
        return (_t.expand_dims(first, -1), second) if first.ndim == 1 else (first, _t.squeeze(second, [-1]))
    return first, second


def _least(like):
    """The small number that keeps divisors and logarithms away from 0."""
    return _t.to_tensor(_epsilon(), like.dtype, None)


def _clipped(p, high=None):
    return _t.clip(p, _least(p), _t.to_tensor(1.0 - _epsilon() if high is None else high, p.dtype, None))


def mean_squared_error(y_true, y_pred):
    """The mean of squared differences along the last axis."""
    y_true, y_pred = _pair(y_true, y_pred)
    off = y_pred - y_true
    return _reduce_mean(off * off, -1)


def mean_absolute_error(y_true, y_pred):
    """The mean of differences along the last axis."""
    y_true, y_pred = _pair(y_true, y_pred)
    return _reduce_mean(abs(y_pred - y_true), -1)


def mean_absolute_percentage_error(y_true, y_pred):
    """The same in hundredths of the truth."""
    y_true, y_pred = _pair(y_true, y_pred)
    return 100.0 * _reduce_mean(abs((y_true - y_pred) / _maximum(abs(y_true), _least(y_true))), -1)


def mean_squared_logarithmic_error(y_true, y_pred):
    """The mean of squared differences of logarithms."""
    y_true, y_pred = _pair(y_true, y_pred)
    least = _least(y_true)
    off = _log1p(_maximum(y_pred, least)) - _log1p(_maximum(y_true, least))
    return _reduce_mean(off * off, -1)


def huber(y_true, y_pred, delta=1.0):
    """Squares of small differences, sizes of large ones."""
    y_true, y_pred = _pair(y_true, y_pred)
    off = abs(y_pred - y_true)
    near = off <= _t.to_tensor(float(delta), off.dtype, None)
    return _reduce_mean(_t.where_(near, 0.5 * off * off, delta * off - 0.5 * delta * delta), -1)


def log_cosh(y_true, y_pred):
    """The logarithm of the hyperbolic cosine of differences."""
    y_true, y_pred = _pair(y_true, y_pred)
    off = y_pred - y_true
    return _reduce_mean(off + _nn.softplus(-2.0 * off) - _math.log(2.0), -1)


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
    y_pred = _floats(y_pred)
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
        return _reduce_mean(_nn.sigmoid_cross_entropy_with_logits(y_true, y_pred), axis)
    y_pred = _clipped(y_pred)
    return -_reduce_mean(y_true * _log(y_pred) + (1.0 - y_true) * _log(1.0 - y_pred), axis)


def binary_focal_crossentropy(y_true, y_pred, apply_class_balancing=False, alpha=0.25, gamma=2.0, from_logits=False,
                              label_smoothing=0.0, axis=-1):
    """The cross entropy of yes and no, less of what is easy."""
    y_true, y_pred = _pair(y_true, y_pred)
    if label_smoothing:
        y_true = y_true * (1.0 - label_smoothing) + 0.5 * label_smoothing
    p = _nn.sigmoid(y_pred) if from_logits else y_pred
    held = _clipped(p)
    entropy = -(y_true * _log(held) + (1.0 - y_true) * _log(1.0 - held))
    hit = y_true * p + (1.0 - y_true) * (1.0 - p)
    made = (1.0 - hit) ** gamma * entropy
    if apply_class_balancing:
        made = (y_true * alpha + (1.0 - y_true) * (1.0 - alpha)) * made
    return _reduce_mean(made, axis)


def kl_divergence(y_true, y_pred):
    """How far one distribution is from another."""
    y_true, y_pred = (_clipped(v, 1.0) for v in _pair(y_true, y_pred))
    return _t.reduce_sum(y_true * _log(y_true / y_pred), -1, False)


def poisson(y_true, y_pred):
    """The loss of counts."""
    y_true, y_pred = _pair(y_true, y_pred)
    return _reduce_mean(y_pred - y_true * _log(y_pred + _epsilon()), -1)


def _signs(y_true):
    """Labels of 0 and 1 as -1 and 1; others as they are. Whether they are the former, only the data tell."""
    binary = _t.reduce_all((y_true == 0.0) | (y_true == 1.0), None, False)
    return _t.where_(binary, 2.0 * y_true - 1.0, y_true)


def hinge(y_true, y_pred):
    """How much is missing to a margin of 1."""
    y_true, y_pred = _pair(y_true, y_pred)
    return _reduce_mean(_nn.relu(1.0 - _signs(y_true) * y_pred), -1)


def squared_hinge(y_true, y_pred):
    """The square of that."""
    y_true, y_pred = _pair(y_true, y_pred)
    off = _nn.relu(1.0 - _signs(y_true) * y_pred)
    return _reduce_mean(off * off, -1)


def categorical_hinge(y_true, y_pred):
    """The same of the right class and the best of the others."""
    y_true, y_pred = _pair(y_true, y_pred)
    right = _t.reduce_sum(y_true * y_pred, -1, False)
    other = _t.reduce_max((1.0 - y_true) * y_pred, -1, False)
    return _nn.relu(other - right + 1.0)


def cosine_similarity(y_true, y_pred, axis=-1):
    """Minus the cosine of the angle: -1 where both point the same way."""
    return -cosine(y_true, y_pred, axis)


def cosine(y_true, y_pred, axis=-1):
    """The cosine of the angle: 1 where both point the same way."""
    y_true, y_pred = _pair(y_true, y_pred)
    least = _epsilon() ** 2  # of the sum of squares, where Keras' is of the norm
    return _t.reduce_sum(_t.l2_normalize(y_true, axis, least) * _t.l2_normalize(y_pred, axis, least), axis, False)


MSE = mse = mean_squared_error
MAE = mae = mean_absolute_error
MAPE = mape = mean_absolute_percentage_error
MSLE = msle = mean_squared_logarithmic_error
KLD = kld = kullback_leibler_divergence = kl_divergence
bce, logcosh = binary_crossentropy, log_cosh


def _masked(weight, mask, dtype, spread=False):
    """Weights times a mask, either of which may be ``None``. ``spread``: what is left out makes the rest weigh more, so that a
    mean over all is the mean over what is left."""
    if mask is None:
        return weight
    mask = _as(mask, dtype)
    if spread:
        kept, total = _t.reduce_sum(mask, None, False), _t.reduce_sum(_t.ones_like(mask), None, False)
        mask = mask * _quotient(total, kept)
    if weight is None:
        return mask
    mask, weight = _same_rank(mask, _as(weight, dtype))
    return mask * _along(weight, mask)


class Reduction:
    """How the losses of rows become one, by TensorFlow's names."""

    AUTO, NONE, SUM, SUM_OVER_BATCH_SIZE = "auto", "none", "sum", "sum_over_batch_size"


def _along(weight, values):
    """Weights of rows, with axes behind them up to the rank of the values."""
    while 0 < weight.ndim < values.ndim:
        weight = _t.expand_dims(weight, -1)
    return weight


def reduced(values, sample_weight, reduction, mask=None):
    """Losses a row as one number: weighted, then the mean over all of them, the sum, or as they are."""
    weight = _masked(sample_weight, mask, values.dtype, reduction not in (None, "none", "sum", "mean_with_sample_weight"))
    if weight is not None:
        values, weight = _same_rank(values, _as(weight, values.dtype))
        values = values * _along(weight, values)
    if reduction in (None, "none") or values.ndim == 0:
        return values
    if reduction == "sum":
        return _t.reduce_sum(values, None, False)
    if reduction == "mean_with_sample_weight" and weight is not None:
        return _replicas.share(_quotient(_t.reduce_sum(values, None, False), _t.reduce_sum(weight, None, False)))
    # A replica without rows has nothing to add.
    return _replicas.share(_t.reduce_sum(values, None, False) if 0 in values.lengths else _reduce_mean(values))


def _converted(value, dtype):
    """A tensor, or tensors nested in any way, of that dtype."""
    if isinstance(value, dict):
        return {key: _converted(part, dtype) for key, part in value.items()}
    if isinstance(value, (list, tuple)) and any(isinstance(part, (_t.Tensor, _t.Variable, dict)) for part in value):
        return type(value)(_converted(part, dtype) for part in value)
    return _as(value, dtype)


class Loss(_Configured):
    """A loss as an object: the mean over the batch, unless told otherwise. Computes in ``dtype``, which is ``floatx()`` unless
    given."""

    def __init__(self, name=None, reduction="sum_over_batch_size", dtype=None):
        if reduction not in (None, "none", "sum", "sum_over_batch_size", "mean", "mean_with_sample_weight", "auto"):
            raise ValueError(f"Invalid value for argument `reduction`: {reduction!r}. Expected one of 'sum_over_batch_size', "
                             "'sum', 'mean', 'mean_with_sample_weight', 'none' or None.")
        self.name = name or _snake(type(self).__name__)
        self.reduction = reduction
        self._dtype = _t.DType(dtype or _floatx())

    @property
    def dtype(self):
        """The dtype that it computes in."""
        return self._dtype.name

    def call(self, y_true, y_pred):
        """One number a row."""
        raise NotImplementedError

    def __call__(self, y_true, y_pred, sample_weight=None):
        given = getattr(y_pred, "_keras_mask", None)
        made = _as(self.call(_converted(y_true, self._dtype), _converted(y_pred, self._dtype)), self._dtype)
        own = getattr(made, "_keras_mask", None)
        return reduced(made, sample_weight, self.reduction, given & own if None not in (given, own) else
                       own if given is None else given)


def _snake(name):
    from ..module import camel_to_snake

    return camel_to_snake(name)


class LossFunctionWrapper(Loss):
    """A function as a loss object."""

    def __init__(self, fn, reduction="sum_over_batch_size", name=None, dtype=None, **kwargs):
        super().__init__(name or getattr(fn, "__name__", None), reduction, dtype)
        self.fn, self._fn_kwargs = fn, kwargs

    def call(self, y_true, y_pred):
        """One number a row."""
        if isinstance(y_true, _t.Tensor) and isinstance(y_pred, _t.Tensor):
            y_true, y_pred = _same_rank(y_true, y_pred)
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
        super().__init__(name, reduction, dtype)
        self.axis = axis

    def call(self, y_true, y_pred):
        """One number a row."""
        return cosine_similarity(y_true, y_pred, self.axis)


def get(identifier):
    """The loss of that name; a callable is itself."""
    return _get(identifier, globals(), "loss function", Loss)
