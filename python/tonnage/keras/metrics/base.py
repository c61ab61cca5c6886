"""What metrics share: state in variables, and means."""

import functools

from ... import _replicas
from ... import _tonnage as _t
from ..._variable import Variable
from .. import initializers
from ..backend import eagerly, floatx, name_of
from ..losses import _as, _masked, _quotient, _same_rank
from ..saving import Configured
from ..._notices import ignores


class Metric(Configured):
    """A figure over batches: ``update_state`` adds a batch, ``result`` reads it, ``reset_state`` starts anew.

    >>> class Total(tf.keras.metrics.Metric):
    ...     def __init__(self, name="total", **kwargs):
    ...         super().__init__(name=name, **kwargs)
    ...         self.total = self.add_weight(name="total", initializer="zeros")
    ...     def update_state(self, y_true, y_pred, sample_weight=None):
    ...         self.total.assign_add(tf.reduce_sum(y_pred))
    ...     def result(self):
    ...         return self.total
    >>> float(Total()([0.0, 0.0], [1.0, 2.0]))
    3.0
    """

    _ranks = None
    """The ranks that add to it, where they are several."""

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "result" in vars(cls):
            cls.result = _of_all_ranks(vars(cls)["result"])

    def __init__(self, dtype=None, name=None):
        self._ranks = _replicas.several()
        self.name = name or name_of(type(self))
        self._dtype = _t.DType(dtype or floatx())

    @property
    def dtype(self):
        """The dtype of what it remembers."""
        return self._dtype.name

    @ignores("Metric.add_variable", "aggregation")
    def add_variable(self, shape=(), initializer="zeros", dtype=None, name=None, aggregation=None):
        """Something that it remembers."""
        first = initializers.get(initializer)
        dtype = _t.DType(dtype) if dtype is not None else self._dtype

        def make():
            value = first([int(n) for n in shape], dtype=dtype)
            return Variable(value, trainable=False, name=f"{self.name}/{name or 'state'}", dtype=dtype)

        made = eagerly(make)
        vars(self).setdefault("_own", []).append((made, lambda: first([int(n) for n in shape], dtype=dtype)))
        return made

    @ignores("Metric.add_weight", "trainable")
    def add_weight(self, shape=(), initializer="zeros", dtype=None, name=None, trainable=False):
        """Something that it remembers; older programs give the name first."""
        if isinstance(shape, str):
            shape, name = (), shape
        return self.add_variable(shape, initializer, dtype, name)

    @property
    def variables(self):
        """All that it remembers."""
        own = [variable for variable, _ in vars(self).get("_own", [])]
        inner = [value for value in vars(self).values() if isinstance(value, Metric)]
        return own + [variable for metric in inner for variable in metric.variables]

    def update_state(self, *args, **kwargs):
        """Adds a batch."""
        raise NotImplementedError

    def result(self):
        """The figure over all batches since the start."""
        raise NotImplementedError

    def reset_state(self):
        """Starts anew."""
        for variable, first in vars(self).get("_own", []):
            variable.assign(first())
        for value in vars(self).values():
            if isinstance(value, Metric):
                value.reset_state()

    reset_states = reset_state

    def __call__(self, *args, **kwargs):
        self.update_state(*args, **kwargs)
        return self.result()

    def __repr__(self):
        return f"<{type(self).__name__} name={self.name}>"


def _of_all_ranks(result):
    """A figure over what all replicas have added, for who asks outside of them."""
    @functools.wraps(result)
    def call(self):
        if self._ranks is None or _t.in_replica():
            return result(self)
        with _replicas.summed(self._ranks, self.variables):
            return result(self)

    return call


def by_row(values, sample_weight, dtype, fold):
    """One value a row, and the weights of rows, ``None`` where there are none. What a row has besides is folded, by
    ``reduce_mean`` or ``reduce_sum``: each row counts once, whatever its length. A scalar weight makes one value of all."""
    mask = getattr(values, "_keras_mask", None)
    values = _as(values, dtype)
    if sample_weight is None:
        return _folded(values, 1, fold), None
    values, weight = _same_rank(values, _as(_masked(sample_weight, mask, dtype), dtype))
    values = _folded(values, weight.ndim, fold)
    weight = weight * _t.ones_like(values)
    return _folded(values * weight, 1, fold), _folded(weight, 1, fold)


def _folded(values, rank, fold):
    """The values with all axes from this one on folded."""
    return fold(values, list(range(rank, values.ndim)), False) if values.ndim > rank else values


class Sum(Metric):
    """The sum of all values."""

    def __init__(self, name="sum", dtype=None):
        super().__init__(dtype, name)
        self.total = self.add_variable((), name="total")

    def update_state(self, values, sample_weight=None):
        """Adds a batch."""
        values, _ = by_row(values, sample_weight, self._dtype, _t.reduce_sum)
        self.total.assign_add(_t.reduce_sum(values, None, False))

    def result(self):
        """The figure over all batches since the start."""
        return self.total.read_value()


class Mean(Metric):
    """The mean of all values, each by its weight."""

    def __init__(self, name="mean", dtype=None):
        super().__init__(dtype, name)
        self.total = self.add_variable((), name="total")
        self.count = self.add_variable((), name="count")

    def update_state(self, values, sample_weight=None):
        """Adds a batch."""
        values, weight = by_row(values, sample_weight, self._dtype, _t.reduce_mean)
        weight = _t.ones_like(values) if weight is None else weight
        self.total.assign_add(_t.reduce_sum(values, None, False))
        self.count.assign_add(_t.reduce_sum(weight, None, False))

    def result(self):
        """The figure over all batches since the start; 0 before the first."""
        return _quotient(self.total.read_value(), self.count.read_value())


class MeanTensor(Metric):
    """The mean of each element over batches."""

    def __init__(self, name="mean_tensor", dtype=None, shape=None):
        super().__init__(dtype, name)
        self.total = None
        if shape is not None:
            self._build(shape)

    def _build(self, shape):
        self.total = self.add_variable(shape, name="total")
        self.count = self.add_variable(shape, name="count")

    def update_state(self, values, sample_weight=None):
        """Adds a batch."""
        values = _t.cast(_t.to_tensor(values, None, None), self._dtype)
        if self.total is None:
            self._build(values.lengths)
        weight = _t.ones_like(values)
        if sample_weight is not None:
            weight = weight * _t.cast(_t.to_tensor(sample_weight, None, None), self._dtype)
        self.total.assign_add(values * weight)
        self.count.assign_add(weight)

    def result(self):
        """The figure over all batches since the start."""
        return _quotient(self.total.read_value(), self.count.read_value())


class MeanMetricWrapper(Mean):
    """The mean of a function of labels and predictions."""

    def __init__(self, fn, name=None, dtype=None, **kwargs):
        super().__init__(name or getattr(fn, "__name__", None), dtype)
        self._fn, self._fn_kwargs = fn, kwargs

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Adds a batch."""
        weight = _masked(sample_weight, getattr(y_pred, "_keras_mask", None), self._dtype)
        super().update_state(self._fn(y_true, y_pred, **self._fn_kwargs), weight)
