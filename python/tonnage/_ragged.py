"""Ragged tensors: rows of different lengths, as the values of all rows in order and where each row begins. What splits strings gives them; loaded when it is touched.

A row is a part of the values, and what goes element by element goes over the values: no row is filled up.
"""

from . import _tonnage as _t
from ._shape import StandIn, TensorShape, TypeSpec
from .errors import InvalidArgumentError


class RaggedTensor(StandIn):
    """Rows of different lengths. ``values`` are those of all rows, and may be ragged again; row ``i`` has those from ``row_splits[i]`` up to, without,
    ``row_splits[i + 1]``.

    >>> x = tf.RaggedTensor.from_row_lengths([1, 2, 3], [2, 0, 1])
    >>> x.to_list()
    [[1, 2], [], [3]]
    """

    def __init__(self, values, row_splits, internal=False):
        if not internal:
            raise ValueError("RaggedTensor constructor is private; please use one of the factory methods instead (e.g., RaggedTensor.from_row_lengths())")
        self._values, self._row_splits = values, row_splits

    @classmethod
    def from_row_splits(cls, values, row_splits, name=None, validate=True):
        """Rows by where they begin, and where the last one ends."""
        values = values if isinstance(values, RaggedTensor) else _t.to_tensor(values, None, None)
        splits = _t.cast(_t.to_tensor(row_splits, None, None), "int64")
        if splits.ndim != 1 or splits.lengths[0] == 0:
            raise ValueError(f"row_splits may not be empty, and stand in one row: their shape is {splits.shape}")
        if validate and not splits.is_symbolic:
            starts, count = splits.numpy(), _length(values)
            if starts[0] != 0 or (starts[1:] < starts[:-1]).any() or (count is not None and starts[-1] != count):
                raise InvalidArgumentError(None, None, f"row splits begin with 0, are sorted, and end with the number of values, {count}; not {starts.tolist()}")
        return cls(values, splits, True)

    @classmethod
    def from_row_lengths(cls, values, row_lengths, name=None, validate=True):
        """Rows by their lengths."""
        lengths = _t.cast(_t.to_tensor(row_lengths, None, None), "int64")
        splits = _t.concat([_t.fill([1], 0, "int64"), _t.cumsum(lengths, 0, False, False)], 0)
        return cls.from_row_splits(values, splits, validate=validate)

    @property
    def values(self):
        """The values of all rows."""
        return self._values

    @property
    def flat_values(self):
        """The innermost values."""
        return self._values.flat_values if isinstance(self._values, RaggedTensor) else self._values

    @property
    def row_splits(self):
        """Where rows begin, and where the last one ends."""
        return self._row_splits

    @property
    def nested_row_splits(self):
        """The same of each level, the outermost first."""
        inner = self._values.nested_row_splits if isinstance(self._values, RaggedTensor) else ()
        return (self._row_splits, *inner)

    @property
    def ragged_rank(self):
        """How many levels there are."""
        return len(self.nested_row_splits)

    @property
    def dtype(self):
        """The dtype of the values."""
        return self._values.dtype

    @property
    def shape(self):
        """The shape; rows have an open length."""
        return TensorShape([None if self._row_splits.lengths[0] is None else self._row_splits.lengths[0] - 1, None, *self._values.shape[1:]])

    def get_shape(self):
        """The shape; rows have an open length."""
        return self.shape

    def nrows(self, out_type=None, name=None):
        """How many rows there are."""
        return _t.cast(_t.shape_of(self._row_splits, "int64")[0] - 1, out_type or "int64")

    def row_starts(self, name=None):
        """Where rows begin."""
        return self._row_splits[:-1]

    def row_limits(self, name=None):
        """Where rows end."""
        return self._row_splits[1:]

    def row_lengths(self, axis=1, name=None):
        """How long rows are; of an inner axis, in rows themselves."""
        if axis == 1:
            return self._row_splits[1:] - self._row_splits[:-1]
        return self.with_values(self._values.row_lengths(axis - 1))

    def value_rowids(self, name=None):
        """For each value the row that it is in."""
        places = _t.count(0, 1, [_length(self._values)], "int64")
        return _t.cast(_t.searchsorted(self._row_splits[1:], places, True), "int64")

    def with_values(self, new_values):
        """Other values in the same rows."""
        return RaggedTensor(new_values, self._row_splits, True)

    def with_flat_values(self, new_values):
        """Other innermost values in the same rows."""
        inner = self._values
        return self.with_values(inner.with_flat_values(new_values) if isinstance(inner, RaggedTensor) else new_values)

    def to_list(self):
        """Rows as lists."""
        splits = self._row_splits.numpy().tolist()
        values = self._values.to_list() if isinstance(self._values, RaggedTensor) else self._values.numpy().tolist()
        return [values[start:stop] for start, stop in zip(splits, splits[1:])]

    def to_tensor(self, default_value=None, name=None, shape=None):
        """Rows filled up to the longest, or to a shape.

        >>> tf.RaggedTensor.from_row_lengths([1, 2, 3], [2, 1]).to_tensor().numpy().tolist()
        [[1, 2], [3, 0]]
        """
        wanted = [None, *([None] * self.ragged_rank)] if shape is None else TensorShape(shape).as_list()
        values = self._values
        if isinstance(values, RaggedTensor):
            values = values.to_tensor(default_value, shape=[None, *wanted[2:]])
        lengths = self.row_lengths()
        count = _length(lengths)
        longest = wanted[1] if wanted[1] is not None else int(_t.reduce_max(lengths, None, False)) if count else 0
        fill = _t.to_tensor("" if values.dtype == "string" else 0, values.dtype, None) if default_value is None else _t.to_tensor(default_value, values.dtype, None)
        inner = values.lengths[1:]
        if not count or not longest or not values.lengths[0]:
            made = _t.broadcast_to(fill, [count, longest, *inner])
        else:
            places = _t.count(0, 1, [longest], "int64")
            at = _t.expand_dims(self.row_starts(), 1) + places
            rows = _t.gather(values, _t.clip(at, 0, values.lengths[0] - 1), 0, 0)
            inside = places < _t.expand_dims(lengths, 1)
            for _ in inner:
                inside = _t.expand_dims(inside, -1)
            made = _t.where_(inside, rows, fill)
        return made if wanted[0] is None else _rows_of(made, wanted[0], fill)

    def numpy(self):
        """Rows as an array of arrays; as one where all are of one length."""
        import numpy as np

        rows = [row.numpy() for row in self]
        if len({np.shape(row) for row in rows}) <= 1:
            return np.array(rows, object if self.dtype == "string" else self.dtype.as_numpy_dtype)
        made = np.empty(len(rows), object)
        made[:] = rows
        return made

    def __getitem__(self, key):
        if isinstance(key, tuple):
            return self[key[0]][key[1] if len(key) == 2 else key[1:]]
        if isinstance(key, slice):
            if key.step not in (None, 1):
                raise NotImplementedError("rows of a ragged tensor are taken one by one, or as a run of them without a step")
            start, stop, _ = key.indices(len(self))
            splits = self._row_splits[start:max(start, stop) + 1]
            first, last = int(splits[0]), int(splits[-1])
            return RaggedTensor(self._values[first:last], splits - first, True)
        at = int(key) + len(self) if int(key) < 0 else int(key)
        if not 0 <= at < len(self):
            raise InvalidArgumentError(None, None, f"row {key} of {len(self)}")
        return self._values[int(self._row_splits[at]):int(self._row_splits[at + 1])]

    def __len__(self):
        return self._row_splits.lengths[0] - 1

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def _tonnage_flatten(self):
        return [self._values, self._row_splits], lambda values, splits: RaggedTensor(values, splits, True)

    def __repr__(self):
        if self._row_splits.is_symbolic:
            return f"tf.RaggedTensor(values={self._values!r}, row_splits={self._row_splits!r})"
        return f"<tf.RaggedTensor {self.to_list()}>"


class RaggedTensorSpec(TypeSpec):
    """A dtype and a shape whose rows have an open length."""

    def __init__(self, shape=None, dtype="float32", ragged_rank=None, row_splits_dtype="int64"):
        self.shape, self.dtype = TensorShape(shape), _t.DType(dtype)
        self.ragged_rank = self.shape.rank - 1 if ragged_rank is None else ragged_rank
        self.row_splits_dtype = _t.DType(row_splits_dtype)

    def __eq__(self, other):
        if not isinstance(other, RaggedTensorSpec):
            return NotImplemented
        return (self.shape, self.dtype, self.ragged_rank) == (other.shape, other.dtype, other.ragged_rank)

    def __hash__(self):
        return hash((self.shape, self.dtype, self.ragged_rank))

    def __repr__(self):
        return f"RaggedTensorSpec({self.shape}, {self.dtype!r}, {self.ragged_rank}, {self.row_splits_dtype!r})"


def _length(values):
    """How many rows there are."""
    return len(values) if isinstance(values, RaggedTensor) else values.lengths[0]


def _rows_of(made, count, fill):
    """That many rows: without the last ones, or with others behind them."""
    if made.lengths[0] >= count:
        return made[:count]
    rest = _t.broadcast_to(fill, [count - made.lengths[0], *made.lengths[1:]])
    return _t.concat([made, rest], 0)


def of_rows(pieces, splits, shape):
    """The pieces of strings of a tensor of any shape, where those of each begin: without rows of a string alone."""
    if not shape:
        return pieces
    made = RaggedTensor(pieces, splits, True)
    for axis in range(len(shape) - 1, 0, -1):
        rows = 1
        for length in shape[:axis]:
            rows *= length
        made = RaggedTensor(made, _t.count(0, shape[axis], [rows + 1], "int64"), True)
    return made
