"""Means of functions of labels and predictions: accuracies, errors, entropies; and overlaps of classes."""

import inspect

from ... import _tonnage as _t
from .. import losses
from ..backend import floatx
from ..losses import _as, _floats, _pair, _same_rank
from .base import Mean, MeanMetricWrapper, Metric, _quotient

_sqrt, _is_finite, _is_inf = (_t.Op(n, n, ["x"]) for n in ("sqrt", "is_finite", "is_inf"))


def _hits(condition):
    return _t.cast(condition, floatx())


def accuracy(y_true, y_pred):
    """1 where both are the same. Integers are compared as integers: floats do not tell all of them apart."""
    y_pred = _t.to_tensor(y_pred, None, None)
    y_true, y_pred = _same_rank(_as(y_true, y_pred.dtype), y_pred)
    return _hits(y_true == y_pred)


def binary_accuracy(y_true, y_pred, threshold=0.5):
    """1 where a prediction over the threshold is a yes."""
    y_true, y_pred = _pair(y_true, y_pred)
    yes = _t.cast(y_pred > _t.to_tensor(float(threshold), y_pred.dtype, None), y_true.dtype)
    return _hits(y_true == yes)


def categorical_accuracy(y_true, y_pred):
    """1 where the largest is where the label's largest is."""
    return _hits(_t.argmax(_floats(y_true), -1) == _t.argmax(_floats(y_pred), -1))


def _classes(y_true, y_pred):
    y_true, y_pred = _t.to_tensor(y_true, None, None), _floats(y_pred)
    if y_true.ndim == y_pred.ndim and y_true.lengths[-1] == 1:
        y_true = _t.squeeze(y_true, [-1])
    return _t.cast(y_true, "int64"), y_pred


def sparse_categorical_accuracy(y_true, y_pred):
    """1 where the largest is that of the label's number."""
    y_true, y_pred = _classes(y_true, y_pred)
    return _hits(y_true == _t.cast(_t.argmax(y_pred, -1), "int64"))


def sparse_top_k_categorical_accuracy(y_true, y_pred, k=5):
    """1 where fewer than ``k`` classes are larger than the label's. Classes as large as that do not push it out; where one is not
    finite, nothing can be said."""
    y_true, y_pred = _classes(y_true, y_pred)
    classes = y_pred.lengths[-1]
    own = _t.one_hot(y_true, classes, "bool", True, False)
    score = _t.reduce_sum(_t.where_(own, y_pred, _t.zeros_like(y_pred)), -1, True)
    larger = _t.reduce_sum(_t.cast(y_pred > score, "int32"), -1, False)
    known = _t.reduce_all(_is_finite(y_pred), -1, False) & _t.reduce_any(own, -1, False)
    return _hits((larger < int(k)) & known)


def top_k_categorical_accuracy(y_true, y_pred, k=5):
    """The same with labels as probabilities."""
    return sparse_top_k_categorical_accuracy(_t.argmax(_floats(y_true), -1), y_pred, k)


def _mean_of(name, function, doc, of=(), named=None):
    """The class of the mean of a function; ``of`` are its settings and their usual values."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    usual = [("name", named or losses._snake(name)), ("dtype", None)]
    usual = [*of, *usual] if named == "first" else [*usual, *of]
    parameters = [inspect.Parameter("self", kind), *(inspect.Parameter(k, kind, default=v) for k, v in usual)]
    signature = inspect.Signature(parameters)

    def __init__(self, *args, **kwargs):
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        del given["self"]
        MeanMetricWrapper.__init__(self, function, given.pop("name"), given.pop("dtype"), **given)

    __init__.__signature__ = signature
    return type(name, (MeanMetricWrapper,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})


_LOGITS = (("from_logits", False), ("label_smoothing", 0.0))
Accuracy = _mean_of("Accuracy", accuracy, "How often predictions are the labels.")
BinaryAccuracy = _mean_of("BinaryAccuracy", binary_accuracy, "How often yes and no are right.", (("threshold", 0.5),))
CategoricalAccuracy = _mean_of("CategoricalAccuracy", categorical_accuracy, "How often the class is right.")
SparseCategoricalAccuracy = _mean_of("SparseCategoricalAccuracy", sparse_categorical_accuracy,
                                     "How often the class is right, with labels as numbers.")


class TopKCategoricalAccuracy(MeanMetricWrapper):
    """How often the class is among the ``k`` largest."""

    def __init__(self, k=5, name="top_k_categorical_accuracy", dtype=None):
        super().__init__(top_k_categorical_accuracy, name, dtype, k=k)


class SparseTopKCategoricalAccuracy(MeanMetricWrapper):
    """The same with labels as numbers."""

    def __init__(self, k=5, name="sparse_top_k_categorical_accuracy", dtype=None):
        super().__init__(sparse_top_k_categorical_accuracy, name, dtype, k=k)


MeanSquaredError = _mean_of("MeanSquaredError", losses.mean_squared_error, "The mean of squared differences.")
MeanAbsoluteError = _mean_of("MeanAbsoluteError", losses.mean_absolute_error, "The mean of differences.")
MeanAbsolutePercentageError = _mean_of("MeanAbsolutePercentageError", losses.mean_absolute_percentage_error,
                                       "The mean of differences in hundredths of the truth.")
MeanSquaredLogarithmicError = _mean_of("MeanSquaredLogarithmicError", losses.mean_squared_logarithmic_error,
                                       "The mean of squared differences of logarithms.")
LogCoshError = _mean_of("LogCoshError", losses.log_cosh, "The logarithm of the hyperbolic cosine.", named="logcosh")
CosineSimilarity = _mean_of("CosineSimilarity", losses.cosine, "The cosine of the angle.", (("axis", -1),))
KLDivergence = _mean_of("KLDivergence", losses.kl_divergence, "How far distributions are apart.", named="kl_divergence")
Poisson = _mean_of("Poisson", losses.poisson, "The loss of counts.")
Hinge = _mean_of("Hinge", losses.hinge, "What is missing to a margin of 1.")
SquaredHinge = _mean_of("SquaredHinge", losses.squared_hinge, "The square of that.")
CategoricalHinge = _mean_of("CategoricalHinge", losses.categorical_hinge, "That of the right class and the best other.")
BinaryCrossentropy = _mean_of("BinaryCrossentropy", losses.binary_crossentropy, "The cross entropy of yes and no.", _LOGITS)
CategoricalCrossentropy = _mean_of("CategoricalCrossentropy", losses.categorical_crossentropy,
                                   "The cross entropy with labels as probabilities.", (*_LOGITS, ("axis", -1)))
SparseCategoricalCrossentropy = _mean_of(
    "SparseCategoricalCrossentropy", losses.sparse_categorical_crossentropy, "The cross entropy with labels as numbers.",
    (("from_logits", False), ("axis", -1)))


class RootMeanSquaredError(Mean):
    """The root of the mean of squared differences. A mask of the predictions does not count, as in Keras."""

    def __init__(self, name="root_mean_squared_error", dtype=None):
        super().__init__(name, dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch."""
        y_true, y_pred = _same_rank(_as(y_true, self._dtype), _as(y_pred, self._dtype))
        off = y_pred - y_true
        super().update_state(off * off, sample_weight)

    def result(self):
        """The figure over all batches since the start."""
        return _sqrt(super().result())


class R2Score(Metric):
    """The share of the variance that predictions explain, the mean over outputs."""

    def __init__(self, class_aggregation="uniform_average", num_regressors=0, name="r2_score", dtype=None):
        super().__init__(dtype, name)
        if class_aggregation not in (None, "uniform_average", "variance_weighted_average"):
            raise ValueError(f"Invalid value for argument `class_aggregation`: {class_aggregation!r}")
        if num_regressors:
            raise ValueError("num_regressors is not there: the score is not adjusted")
        self.class_aggregation = class_aggregation
        self._sums = None

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch."""
        y_true, y_pred = _same_rank(_as(y_true, self._dtype), _as(y_pred, self._dtype))
        if y_true.ndim != 2 or y_pred.ndim != 2:
            raise ValueError(f"R2Score expects 2D inputs with shape (batch_size, output_dim). Received input shapes: "
                             f"y_pred.shape={tuple(y_pred.shape)} and y_true.shape={tuple(y_true.shape)}.")
        if self._sums is None:
            width = y_true.lengths[-1]
            self._sums = [self.add_variable((width,), name=n) for n in ("squares", "sum", "residual", "count")]
        weight = _t.ones_like(y_true)
        if sample_weight is not None:
            given = _as(sample_weight, self._dtype)
            weight = weight * (_t.expand_dims(given, 1) if given.ndim == 1 else given)
        off = y_true - y_pred
        for variable, value in zip(self._sums, (y_true * y_true, y_true, off * off, _t.ones_like(y_true))):
            variable.assign_add(_t.reduce_sum(value * weight, 0, False))

    def result(self):
        """The figure over all batches since the start."""
        squares, total, residual, count = (v.read_value() for v in self._sums)
        spread = squares - total * (total / count)
        score = 1.0 - residual / spread
        # Labels that are all the same have no variance to explain: such an output counts as 0, as in Keras.
        score = _t.where_(_is_inf(score), _t.zeros_like(score), score)
        if self.class_aggregation == "uniform_average":
            return _t.reduce_mean(score, None, False)
        if self.class_aggregation is None:
            return score
        return _t.reduce_sum(score * spread, None, False) / _t.reduce_sum(spread, None, False)


class IoU(Metric):
    """The mean over classes of how much predictions and labels overlap: what both have, over what either has."""

    def __init__(self, num_classes, target_class_ids, name=None, dtype=None, ignore_class=None, sparse_y_true=True,
                 sparse_y_pred=True, axis=-1):
        super().__init__(dtype, name)
        self.num_classes, self.target_class_ids = int(num_classes), list(target_class_ids)
        self.ignore_class, self.axis = ignore_class, axis
        self._sparse = sparse_y_true, sparse_y_pred
        self.total_cm = self.add_variable((self.num_classes, self.num_classes), name="total_confusion_matrix")

    def _numbers(self, y, sparse):
        y = _t.to_tensor(y, None, None)
        y = y if sparse else _t.argmax(y, self.axis)
        return _t.reshape(_t.cast(y, "int32"), [-1])

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch."""
        y_true, y_pred = (self._numbers(y, sparse) for y, sparse in zip((y_true, y_pred), self._sparse))
        weight = _t.ones_like(_t.cast(y_true, self._dtype))
        if sample_weight is not None:
            given = _as(sample_weight, self._dtype)
            weight = weight * (_t.reshape(given, [-1]) if given.ndim else given)
        # A class beyond those that there are would be counted in the cell of another one.
        kept = (y_true >= 0) & (y_true < self.num_classes) & (y_pred >= 0) & (y_pred < self.num_classes)
        if self.ignore_class is not None:
            kept = kept & (y_true != _t.to_tensor(self.ignore_class, y_true.dtype, None))
        weight = weight * _t.cast(kept, self._dtype)
        y_true, y_pred = (_t.where_(kept, y, _t.zeros_like(y)) for y in (y_true, y_pred))
        cells = y_true * self.num_classes + y_pred
        counts = _t.segment_sum(weight, cells, self.num_classes * self.num_classes)
        self.total_cm.assign_add(_t.reshape(counts, [self.num_classes, self.num_classes]))

    def result(self):
        """The figure over all batches since the start."""
        counts = self.total_cm.read_value()
        both = _t.diag_part(counts, 0)
        either = _t.reduce_sum(counts, 0, False) + _t.reduce_sum(counts, 1, False) - both
        chosen = _t.to_tensor(self.target_class_ids, "int32", None)
        both, either = _t.gather(both, chosen, 0, 0), _t.gather(either, chosen, 0, 0)
        there = _t.cast(either > 0.0, self._dtype)
        return _quotient(_t.reduce_sum(_quotient(both, either), None, False), _t.reduce_sum(there, None, False))


class BinaryIoU(IoU):
    """The same of yes and no by a threshold."""

    def __init__(self, target_class_ids=(0, 1), threshold=0.5, name=None, dtype=None):
        super().__init__(2, target_class_ids, name, dtype)
        self.threshold = float(threshold)

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch."""
        y_pred = _t.to_tensor(y_pred, None, None) >= self.threshold
        super().update_state(y_true, _t.cast(y_pred, "int32"), sample_weight)


class MeanIoU(IoU):
    """The mean over all classes."""

    def __init__(self, num_classes, name=None, dtype=None, ignore_class=None, sparse_y_true=True, sparse_y_pred=True,
                 axis=-1):
        super().__init__(num_classes, range(num_classes), name, dtype, ignore_class, sparse_y_true, sparse_y_pred, axis)


class OneHotMeanIoU(MeanIoU):
    """The same with labels as probabilities."""

    def __init__(self, num_classes, name=None, dtype=None, ignore_class=None, sparse_y_pred=False, axis=-1):
        super().__init__(num_classes, name, dtype, ignore_class, False, sparse_y_pred, axis)
