"""What ``compile`` says: losses and metrics for outputs that may be several, in a list or by name."""

import weakref

from ... import _replicas
from ... import _tonnage as _t
from .. import losses as _losses
from .. import metrics as _metrics


def _flat(value, names, what):
    """Something for each output: by name, in order, or one for all that there are."""
    if isinstance(value, dict):
        unknown = sorted(set(value) - set(names))
        if unknown:
            raise ValueError(f"{what} for outputs that the model has not: {unknown}; its outputs are {list(names)}")
        return [value.get(name) for name in names]
    if isinstance(value, (list, tuple)) and len(names) > 1:
        if len(value) != len(names):
            raise ValueError(f"For a model with multiple outputs, when providing the `{what}` argument as a list, it should have "
                             f"as many entries as the model has outputs. Received: {len(value)} entries for {len(names)} outputs "
                             f"{list(names)}")
        return list(value)
    if len(names) == 1 and what == "loss" and isinstance(value, (list, tuple)):
        if len(value) != 1:
            raise ValueError(f"{len(value)} losses for one output: {value}")
        return list(value)
    return [value] * len(names)


def outputs_of(y_pred, names=None):
    """The outputs as a list, with their names."""
    if isinstance(y_pred, dict):
        return list(y_pred.values()), list(y_pred)
    if isinstance(y_pred, (list, tuple)):
        names = names if names and len(names) == len(y_pred) else [f"output_{i}" for i in range(len(y_pred))]
        return list(y_pred), names
    return [y_pred], names[:1] if names else ["output"]


def targets_for(y, names, dict_outputs, what="targets"):
    """What belongs to each output, as a list."""
    if y is None:
        return [None] * len(names)
    if isinstance(y, dict):
        missing = [n for n in names if n not in y]
        if missing and what == "targets":
            raise ValueError(f"there are no {what} for the outputs {missing}; given are {list(y)}")
        return [y.get(n) for n in names]
    if isinstance(y, (list, tuple)):
        if len(y) != len(names):
            raise ValueError(f"The model has {len(names)} output(s) {list(names)}, but {len(y)} {what} were given")
        return list(y)
    if len(names) == 1 or what == "weights":
        return [y] * len(names)
    raise ValueError(f"The model has {len(names)} outputs {list(names)}, but one tensor of {what} was given")


def _by_shape(y_true, y_pred, binary, sparse, categorical):
    """The metric that fits labels and predictions of such shapes."""
    width = y_pred.lengths[-1] if y_pred.ndim else 1
    if width == 1 or y_pred.ndim == 1:
        return binary
    return sparse if y_true.ndim < y_pred.ndim or y_true.lengths[-1] == 1 else categorical


_ACCURACIES = _metrics.BinaryAccuracy, _metrics.SparseCategoricalAccuracy, _metrics.CategoricalAccuracy
_ENTROPIES = _metrics.BinaryCrossentropy, _metrics.SparseCategoricalCrossentropy, _metrics.CategoricalCrossentropy


def _metric(given, y_true, y_pred):
    if isinstance(given, _metrics.Metric):
        return given
    if isinstance(given, str) and given in ("accuracy", "acc"):
        return _by_shape(y_true, y_pred, *_ACCURACIES)(name=given)
    if isinstance(given, str) and given in ("crossentropy", "ce"):
        return _by_shape(y_true, y_pred, *_ENTROPIES)(name=given)
    made = _metrics.get(given)
    if isinstance(made, _metrics.Metric):
        if isinstance(given, str):
            made.name = given  # by the name that was asked for, as short as it is
        return made
    if isinstance(made, _losses.Loss):
        return _metrics.MeanMetricWrapper(made.call, made.name)
    return _metrics.MeanMetricWrapper(made, getattr(made, "__name__", None))


class _Asked(_metrics.Metric):
    """All metrics that were asked for, as one: what a training step of one's own updates with labels and predictions."""

    def __init__(self, compiled):
        super().__init__(name="compile_metrics")
        self._compiled = compiled

    @property
    def variables(self):
        """All that they remember."""
        return [v for _, _, metric in self._compiled()._metrics for v in metric.variables]

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch."""
        self._compiled().update(y_true, y_pred, sample_weight)

    def result(self):
        """All figures by their names."""
        return {name: metric.result() for name, metric in self._compiled().asked()}

    def reset_state(self):
        """Starts anew."""
        for _, _, metric in self._compiled()._metrics:
            metric.reset_state()


class Compiled:
    """Losses and metrics of a model, found out when the first outputs come. ``output_names`` gives the names of the outputs, where the
    model knows them."""

    def __init__(self, loss, loss_weights, metrics, weighted_metrics, output_names):
        self._output_names = output_names
        self._asked = _Asked(weakref.ref(self)) if metrics is not None or weighted_metrics is not None else None
        self.loss, self.loss_weights = loss, loss_weights
        self.given_metrics, self.given_weighted = metrics, weighted_metrics
        self.tracker = _metrics.Mean(name="loss")
        self.names = self._losses = self._weights = None
        self.per_output, self._metrics = [], []

    @property
    def metrics(self):
        """All metrics: the loss, then one for each output's loss, then those that were asked for, as one."""
        return [self.tracker, *self.per_output, *([self._asked] if self._asked is not None else [])]

    def asked(self):
        """The metrics that were asked for, under the names that logs have them by."""
        lead = [f"{name}_" for name in self.names] if self.names is not None and len(self.names) > 1 else [""]
        made, seen = [], {}
        for place, weighted, metric in self._metrics:
            name = f"{lead[place]}{metric.name}"
            if weighted and name in seen:
                name = f"{lead[place]}weighted_{metric.name}"
            # The same figure once more has a number.
            times = seen[name] = seen.get(name, -1) + 1
            made.append((f"{name}_{times}" if times else name, metric))
        return made

    def named(self):
        """All metrics under the names that logs have them by."""
        return [("loss", self.tracker), *((m.name, m) for m in self.per_output), *self.asked()]

    def _build_losses(self, names):
        if self._losses is not None:
            return
        self.names = names
        given = _flat(self.loss, names, "loss")
        self._losses = [None if one is None else _as_loss(one) for one in given]
        self._weights = [1.0 if w is None else float(w) for w in _flat(self.loss_weights, names, "loss_weights")]
        if sum(loss is not None for loss in self._losses) > 1:
            self.per_output = [_metrics.Mean(name=f"{n}_loss") for n, loss in zip(names, self._losses) if loss is not None]

    def total(self, y, y_pred, sample_weight):
        """The weighted sum of all losses; none where there are none."""
        outputs, names = outputs_of(y_pred, self._output_names())
        if self.loss is None:
            return None
        self._build_losses(names)
        targets = targets_for(y, names, isinstance(y_pred, dict))
        weights = targets_for(sample_weight, names, False, "weights")
        total, tracked = None, iter(self.per_output)
        for loss, target, output, weight, share in zip(self._losses, targets, outputs, weights, self._weights):
            if loss is None:
                continue
            if target is None:
                raise ValueError("a loss was given, but no targets `y` to compare predictions with")
            made = loss(target, output, weight)
            if self.per_output:
                next(tracked).update_state(_replicas.whole(made), _batch_weight(output))
            made = made if share == 1.0 else made * share
            made = made if made.dtype.name == "float32" else _t.cast(made, "float32")
            total = made if total is None else total + made
        return total

    def update(self, y, y_pred, sample_weight):
        """Adds a batch to the metrics."""
        if y is None or (self.given_metrics is None and self.given_weighted is None):
            return
        outputs, names = outputs_of(y_pred, self._output_names())
        self.names = self.names or names
        targets = targets_for(y, names, isinstance(y_pred, dict))
        weights = targets_for(sample_weight, names, False, "weights")
        if not self._metrics:
            self._build_metrics(names, targets, outputs)
        for place, weighted, metric in self._metrics:
            metric.update_state(targets[place], outputs[place], sample_weight=weights[place] if weighted else None)

    def _build_metrics(self, names, targets, outputs):
        for given, weighted in ((self.given_metrics, False), (self.given_weighted, True)):
            if given is None:
                continue
            nested = isinstance(given, dict) or (
                isinstance(given, (list, tuple)) and len(names) > 1 and any(isinstance(g, (list, tuple)) for g in given))
            if nested or len(names) == 1:
                each = _flat(given, names, "metrics") if nested else [given]
            elif isinstance(given, (list, tuple)) and len(given) == len(names):
                each = [[g] for g in given]
            else:
                raise ValueError(f"For a model with multiple outputs, when providing the `metrics` argument as a list, it should "
                                 f"have as many entries as the model has outputs. Received: {given} for {list(names)}")
            for place, some in enumerate(each):
                some = [] if some is None else list(some) if isinstance(some, (list, tuple)) else [some]
                for one in some:
                    made = _metric(one, _t.to_tensor(targets[place], None, None), outputs[place])
                    self._metrics.append((place, weighted, made))


def _batch_weight(output):
    return float(output.lengths[0] or 1) if output.ndim else 1.0


def _as_loss(given):
    made = _losses.get(given)
    return made if isinstance(made, _losses.Loss) else _losses.LossFunctionWrapper(made)
