"""What metrics share: state in variables, and means."""

from ... import _tonnage as _t
from ..._variable import Variable
from .. import initializers
from ..backend import eagerly, floatx, name_of
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

    def __init__(self, dtype=None, name=None):
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


def weighted(values, sample_weight, dtype):
    """Values times weights, and the weights, each of the values' rank; weights are ``None`` where there are none."""
    values = _t.to_tensor(values, None, None)
    values = values if values.dtype == dtype else _t.cast(values, dtype)
    if sample_weight is None:
        return values, None
    weight = _t.to_tensor(sample_weight, None, dtype)
    weight = weight if weight.dtype == dtype else _t.cast(weight, dtype)
    while weight.ndim > values.ndim and weight.lengths[-1] == 1:
        weight = _t.squeeze(weight, [-1])
    if weight.ndim > values.ndim:
        # Values are one a row where weights are one an element: what a row weighs is the mean.
        raise ValueError(f"weights of shape {tuple(weight.shape)} for values of shape {tuple(values.shape)}")
    if weight.ndim < values.ndim:
        # One weight a row: what a row has is averaged first, so that each row counts once.
        axes = list(range(weight.ndim, values.ndim))
        values = _t.reduce_mean(values, axes, False)
    return values * weight, weight


class Sum(Metric):
    """The sum of all values."""

    def __init__(self, name="sum", dtype=None):
        super().__init__(dtype, name)
        self.total = self.add_variable((), name="total")

    def update_state(self, values, sample_weight=None):
        """Adds a batch."""
        values, _ = weighted(values, sample_weight, self._dtype)
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
        values, weight = weighted(values, sample_weight, self._dtype)
        weight = _t.ones_like(values) if weight is None else weight
        self.total.assign_add(_t.reduce_sum(values, None, False))
        self.count.assign_add(_t.reduce_sum(weight, None, False))

    def result(self):
        """The figure over all batches since the start; 0 before the first."""
        return _quotient(self.total.read_value(), self.count.read_value())


_quotient = _t.Op("divide_no_nan", "divide_no_nan", ["x", "y"])


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
        mask = getattr(y_pred, "_keras_mask", None)
        if mask is not None:
            mask = _t.cast(mask, self._dtype)
            if sample_weight is None:
                sample_weight = mask
            else:
                given = _t.cast(_t.to_tensor(sample_weight, None, None), self._dtype)
                while given.ndim < mask.ndim:
                    given = _t.expand_dims(given, -1)
                sample_weight = given * mask
        super().update_state(self._fn(y_true, y_pred, **self._fn_kwargs), sample_weight)
