"""Figures of yes and no: counts of right and wrong at thresholds, and what is made of them."""

from ... import _tonnage as _t
from ..backend import epsilon
from ..losses import _along, _as, _same_rank
from .base import Metric, _quotient


def _thresholds(thresholds, usual=0.5):
    made = [usual] if thresholds is None else thresholds
    made = list(made) if isinstance(made, (list, tuple)) else [made]
    if any(t is None or not 0 <= t <= 1 for t in made):
        raise ValueError(f"Threshold values must be in [0, 1]. Received: {thresholds}")
    return made


class _Counts(Metric):
    """Counts of what is right and wrong, yes and no, at each threshold: the variables that ``counted`` names."""

    counted = ("tp", "fp", "tn", "fn")

    def __init__(self, thresholds, name, dtype, top_k=None, class_id=None):
        super().__init__(dtype, name)
        self._many = isinstance(thresholds, (list, tuple))
        self.thresholds, self.top_k, self.class_id = _thresholds(thresholds), top_k, class_id
        last = len(self.thresholds) - 1
        self._even = last > 1 and all(abs(t - i / last) <= epsilon() for i, t in enumerate(self.thresholds))
        for key in self.counted:
            setattr(self, key, self.add_variable((len(self.thresholds),), name=key))

    def _predictions(self, y_true, y_pred):
        if self.top_k is not None:
            _, places = _t.top_k(y_pred, int(self.top_k))
            hot = _t.one_hot(places, y_pred.lengths[-1], y_pred.dtype, 1, 0)
            y_pred = y_pred * _t.reduce_max(hot, -2, False)
        if self.class_id is not None:
            one = slice(self.class_id, self.class_id + 1)  # the axis stays, for weights that have it
            y_true, y_pred = y_true[..., one], y_pred[..., one]
        return y_true, y_pred

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch."""
        y_true, y_pred = self._predictions(*_same_rank(_as(y_true, self._dtype), _as(y_pred, self._dtype)))
        weight = _t.ones_like(y_pred)
        if sample_weight is not None:
            weight = weight * _along(_as(sample_weight, self._dtype), y_pred)
        # Whatever is not 0 is a yes, and counts once.
        y_true = _t.cast(_t.cast(y_true, "bool"), self._dtype)
        y_true, y_pred, weight = (_t.reshape(v, [-1]) for v in (y_true, y_pred, weight))
        if self._even:
            # Even thresholds are the borders of bins over [0, 1]: what is beyond counts in the last one, as in Keras.
            y_pred = _t.clip(y_pred, *(_t.to_tensor(v, self._dtype, None) for v in (0.0, 1.0)))
        limits = _t.reshape(_t.to_tensor([float(t) for t in self.thresholds], self._dtype, None), [-1, 1])
        over = _t.cast(_t.expand_dims(y_pred, 0) > limits, self._dtype)
        yes, no = y_true * weight, (1.0 - y_true) * weight
        found = {"tp": lambda: over * yes, "fp": lambda: over * no, "fn": lambda: (1.0 - over) * yes,
                 "tn": lambda: (1.0 - over) * no}
        for key in self.counted:
            getattr(self, key).assign_add(_t.reduce_sum(found[key](), 1, False))

    def _shown(self, made):
        return made if self._many else made[0]


def _count(name, key, doc):
    def __init__(self, thresholds=None, name=None, dtype=None):
        _Counts.__init__(self, thresholds, name, dtype)

    def result(self):
        """The figure over all batches since the start."""
        return self._shown(getattr(self, key).read_value())

    space = {"__init__": __init__, "result": result, "counted": (key,), "__doc__": doc, "__module__": __name__}
    return type(name, (_Counts,), space)


TruePositives = _count("TruePositives", "tp", "How many yes are right.")
FalsePositives = _count("FalsePositives", "fp", "How many yes are wrong.")
TrueNegatives = _count("TrueNegatives", "tn", "How many no are right.")
FalseNegatives = _count("FalseNegatives", "fn", "How many no are wrong.")


class Precision(_Counts):
    """How many of the predicted yes are right."""

    counted = ("tp", "fp")

    def __init__(self, thresholds=None, top_k=None, class_id=None, name=None, dtype=None):
        super().__init__(0.0 if thresholds is None and top_k is not None else thresholds, name, dtype, top_k, class_id)

    def result(self):
        """The figure over all batches since the start."""
        tp, fp = self.tp.read_value(), self.fp.read_value()
        return self._shown(_quotient(tp, tp + fp))


class Recall(_Counts):
    """How many of the true yes are found."""

    counted = ("tp", "fn")

    def __init__(self, thresholds=None, top_k=None, class_id=None, name=None, dtype=None):
        super().__init__(0.0 if thresholds is None and top_k is not None else thresholds, name, dtype, top_k, class_id)

    def result(self):
        """The figure over all batches since the start."""
        tp, fn = self.tp.read_value(), self.fn.read_value()
        return self._shown(_quotient(tp, tp + fn))


def _spread(count):
    """Thresholds over all of [0, 1], with one beyond each end; a single one is in the middle."""
    if count == 1:
        return [0.5]
    inner = [(i + 1) / (count - 1) for i in range(count - 2)]
    return [-1e-7, *inner, 1.0 + 1e-7]


class _Curve(_Counts):
    """Counts at many thresholds."""

    fewest = 1

    def __init__(self, num_thresholds, name, dtype):
        self.num_thresholds = int(num_thresholds)
        if self.num_thresholds < self.fewest:
            raise ValueError(f"Argument `num_thresholds` must be an integer > {self.fewest - 1}. Received: {num_thresholds}")
        super().__init__([0.0] * self.num_thresholds, name, dtype)
        self.thresholds, self._even = _spread(self.num_thresholds), self.num_thresholds > 1

    def _rates(self):
        tp, fp, tn, fn = (getattr(self, key).read_value() for key in ("tp", "fp", "tn", "fn"))
        return {"recall": _quotient(tp, tp + fn), "precision": _quotient(tp, tp + fp),
                "specificity": _quotient(tn, tn + fp), "miss": _quotient(fp, fp + tn), "tp": tp, "fp": fp, "fn": fn}


class AUC(_Curve):
    """The area under a curve: of recall over false alarms, or of precision over recall."""

    fewest = 2

    def __init__(self, num_thresholds=200, curve="ROC", summation_method="interpolation", name=None, dtype=None,
                 from_logits=False):
        if curve not in ("ROC", "PR") or summation_method not in ("interpolation", "minoring", "majoring"):
            raise ValueError(f"Invalid `curve` or `summation_method`: {curve!r}, {summation_method!r}")
        super().__init__(num_thresholds, name, dtype)
        self.curve, self.summation_method, self.from_logits = curve, summation_method, from_logits

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch."""
        if self.from_logits:
            y_pred = _t.Op("sigmoid", "sigmoid", ["x"])(_t.to_tensor(y_pred, None, None))
        super().update_state(y_true, y_pred, sample_weight)

    def result(self):
        """The figure over all batches since the start."""
        rates = self._rates()
        if self.curve == "PR" and self.summation_method == "interpolation":
            return self._interpolated(rates)
        x, y = (rates["miss"], rates["recall"]) if self.curve == "ROC" else (rates["recall"], rates["precision"])
        left, right = y[:-1], y[1:]
        if self.summation_method == "interpolation":
            height = (left + right) / 2.0
        else:
            row = "minimum" if self.summation_method == "minoring" else "maximum"
            height = _t.Op(row, row, ["x", "y"])(left, right)
        return _t.reduce_sum((x[:-1] - x[1:]) * height, None, False)

    def _interpolated(self, rates):
        """Precision between two thresholds is interpolated by counts (Davis and Goadrich 2006), not on a straight line."""
        tp, fp, fn = rates["tp"], rates["fp"], rates["fn"]
        relu, log = _t.Op("relu", "relu", ["x"]), _t.Op("log", "log", ["x"])
        rise = tp[:-1] - tp[1:]
        all_rise = (tp[:-1] + fp[:-1]) - (tp[1:] + fp[1:])
        slope = _quotient(rise, relu(all_rise))
        start = tp[1:] - slope * (tp[1:] + fp[1:])
        before, after = tp[:-1] + fp[:-1], tp[1:] + fp[1:]
        both = (before > 0.0) & (after > 0.0)
        one = _t.ones_like(before)
        ratio = _t.where_(both, _quotient(before, relu(after)), one)
        area = slope * (rise + start * log(ratio))
        return _t.reduce_sum(_quotient(area, relu(tp[1:] + fn[1:])), None, False)


class _BestAt(_Curve):
    """The best of one rate where another is at least so much."""

    of = held = None

    def __init__(self, value, num_thresholds, name, dtype):
        if not 0 <= value <= 1:
            raise ValueError(f"Argument must be in the range [0, 1]. Received: {value}")
        super().__init__(num_thresholds, name, dtype)
        self.value = float(value)

    def result(self):
        """The figure over all batches since the start."""
        rates = self._rates()
        fits = rates[self.held] >= self.value
        return _t.reduce_max(_t.where_(fits, rates[self.of], _t.zeros_like(rates[self.of])), None, False)


class SensitivityAtSpecificity(_BestAt):
    """The best recall where the specificity is at least so much."""

    of, held = "recall", "specificity"

    def __init__(self, specificity, num_thresholds=200, name=None, dtype=None):
        super().__init__(specificity, num_thresholds, name, dtype)


class SpecificityAtSensitivity(_BestAt):
    """The best specificity where the recall is at least so much."""

    of, held = "specificity", "recall"

    def __init__(self, sensitivity, num_thresholds=200, name=None, dtype=None):
        super().__init__(sensitivity, num_thresholds, name, dtype)


class PrecisionAtRecall(_BestAt):
    """The best precision where the recall is at least so much."""

    of, held = "precision", "recall"

    def __init__(self, recall, num_thresholds=200, name=None, dtype=None):
        super().__init__(recall, num_thresholds, name, dtype)


class RecallAtPrecision(_BestAt):
    """The best recall where the precision is at least so much."""

    of, held = "recall", "precision"

    def __init__(self, precision, num_thresholds=200, name=None, dtype=None):
        super().__init__(precision, num_thresholds, name, dtype)


class FBetaScore(Metric):
    """The weighted harmonic mean of precision and recall, for each class or averaged."""

    def __init__(self, average=None, beta=1.0, threshold=None, name="fbeta_score", dtype=None):
        super().__init__(dtype, name)
        if average not in (None, "micro", "macro", "weighted"):
            raise ValueError(f"Invalid `average` argument value. Expected one of: None, 'micro', 'macro', 'weighted'. "
                             f"Received: average={average}")
        self.average, self.beta, self.threshold = average, float(beta), threshold
        self._sums = None

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch."""
        y_true, y_pred = _as(y_true, self._dtype), _as(y_pred, self._dtype)
        if y_true.ndim != 2 or y_pred.ndim != 2:
            raise ValueError(f"FBetaScore expects 2D inputs with shape (batch_size, output_dim). Received input shapes: "
                             f"y_pred.shape={tuple(y_pred.shape)} and y_true.shape={tuple(y_true.shape)}.")
        if self._sums is None:
            shape = () if self.average == "micro" else (y_pred.lengths[-1],)
            self._sums = [self.add_variable(shape, name=n) for n in ("tp", "fp", "fn", "weights")]
        if self.threshold is None:
            # All that are the largest; a row of zeros predicts nothing.
            chosen = (y_pred >= _t.reduce_max(y_pred, -1, True)) & (abs(y_pred) > 1e-9)
        else:
            chosen = y_pred > float(self.threshold)
        y_pred = _t.cast(chosen, self._dtype)
        weight = _t.ones_like(y_true)
        if sample_weight is not None:
            weight = weight * _t.reshape(_as(sample_weight, self._dtype), [-1, 1])
        axes = None if self.average == "micro" else 0
        all_of = (y_true * y_pred, (1.0 - y_true) * y_pred, y_true * (1.0 - y_pred), y_true)
        for variable, value in zip(self._sums, all_of):
            variable.assign_add(_t.reduce_sum(value * weight, axes, False))

    def result(self):
        """The figure over all batches since the start."""
        tp, fp, fn, weights = (v.read_value() for v in self._sums)
        precision, recall = tp / (tp + fp + epsilon()), tp / (tp + fn + epsilon())
        squared = self.beta**2
        score = (1.0 + squared) * (precision * recall / (squared * precision + recall + epsilon()))
        if self.average == "weighted":
            return _t.reduce_sum(score * (weights / (_t.reduce_sum(weights, None, False) + epsilon())), None, False)
        return _t.reduce_mean(score, None, False) if self.average == "macro" else score


class F1Score(FBetaScore):
    """The harmonic mean of precision and recall."""

    def __init__(self, average=None, threshold=None, name="f1_score", dtype=None):
        super().__init__(average, 1.0, threshold, name, dtype)
