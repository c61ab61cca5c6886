"""``tf.lookup``: tables from numbers to numbers.

A table is two tensors, of keys in order and of their values: looking up is a search, in functions too. There are no tensors of strings, so no
tables of them.
"""

import numpy as _np

from . import _tonnage as _t
from .errors import DataDecideError as _DataDecideError, FailedPreconditionError as _FailedPreconditionError
from .errors import InvalidArgumentError as _InvalidArgumentError


class _Keyed:
    """Keys and values, each of one dtype."""

    @property
    def key_dtype(self):
        """The dtype of the keys."""
        return self._keys.dtype

    @property
    def value_dtype(self):
        """The dtype of the values."""
        return self._values.dtype


class KeyValueTensorInitializer(_Keyed):
    """What a table begins with: a value for each key."""

    def __init__(self, keys, values, key_dtype=None, value_dtype=None, name=None):
        self._keys, self._values = _t.to_tensor(keys, key_dtype, None), _t.to_tensor(values, value_dtype, None)

    def initialize(self, table):
        """Puts them into a table."""
        table._begin(self._keys, self._values)


class TextFileIndex:
    """What of a line is a key or a value: all of it, its number, or a column."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TextFileInitializer(KeyValueTensorInitializer):
    """The same, of the lines of a file of whole numbers."""

    def __init__(self, filename, key_dtype, key_index, value_dtype, value_index, vocab_size=None, delimiter="\t", name=None,
                 value_index_offset=0):
        with open(filename, encoding="utf-8") as file:
            lines = file.read().splitlines()[:vocab_size]

        def column(index, offset):
            if index == TextFileIndex.LINE_NUMBER:
                return [i + offset for i in range(len(lines))]
            return [int(line if index == TextFileIndex.WHOLE_LINE else line.split(delimiter)[index]) for line in lines]

        numbers_are_keys = key_index == TextFileIndex.LINE_NUMBER
        super().__init__(_np.array(column(key_index, value_index_offset if numbers_are_keys else 0), "int64"),
                         _np.array(column(value_index, 0 if numbers_are_keys else value_index_offset), "int64"), key_dtype, value_dtype)


class _Table(_Keyed):
    """Keys in order, and their values."""

    def __init__(self, key_dtype, value_dtype, default_value):
        self._keys, self._values = _t.fill([0], 0, key_dtype), _t.fill([0], 0, value_dtype)
        self._default_value = _t.to_tensor(default_value, value_dtype, None)

    @property
    def default_value(self):
        """The value of keys that are not there."""
        return self._default_value

    def size(self, name=None):
        """How many keys there are."""
        return _t.to_tensor(self._keys.lengths[0], "int64", None)

    def export(self, name=None):
        """All keys, and their values."""
        return self._keys, self._values

    def _found(self, keys):
        """The values of keys, and the default where one is not there."""
        from .sparse import SparseTensor

        if isinstance(keys, SparseTensor):
            return keys.with_values(self._found(keys.values))
        keys = _t.to_tensor(keys, None, None)
        if keys.dtype != self.key_dtype:
            raise TypeError(f"Dtype of argument `keys` must be {self.key_dtype!r}, received: {keys.dtype!r}")
        if self._keys.lengths[0] == 0:
            return _t.broadcast_to(self._default_value, _t.shape_of(keys, "int32"))
        flat = _t.reshape(keys, [-1])
        at = _t.Op("minimum", "minimum", ["x", "y"])(_t.searchsorted(self._keys, flat, False), self._keys.lengths[0] - 1)
        found = _t.where_(_t.gather(self._keys, at, 0, 0) == flat, _t.gather(self._values, at, 0, 0), self._default_value)
        return _t.reshape(found, _t.shape_of(keys, "int32"))

    def __getitem__(self, keys):
        return self.lookup(keys)

    def _begin(self, keys, values):
        keys, values = (_np.ravel(tensor.numpy()) for tensor in (keys, values))
        if len(keys) != len(values):
            raise ValueError(f"a table needs a value for each key, not {len(values)} for {len(keys)}")
        kept, first, which = _np.unique(keys, return_index=True, return_inverse=True)
        if not _np.array_equal(values[first][which], values):
            raise _FailedPreconditionError(None, None, "a table has one value for a key, but two were given for one")
        self._keep(kept, values[first])

    def _keep(self, keys, values):
        self._keys, self._values = _t.to_tensor(keys, self.key_dtype, None), _t.to_tensor(values, self.value_dtype, None)


class StaticHashTable(_Table):
    """A table that stays as it is.

    >>> table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([30, 10], [1, 2]), default_value=-1)
    >>> table.lookup(tf.constant([10, 20, 30])).numpy().tolist()
    [2, -1, 1]
    """

    def __init__(self, initializer, default_value, name=None, experimental_is_anonymous=False):
        super().__init__(initializer.key_dtype, initializer.value_dtype, default_value)
        initializer.initialize(self)

    def lookup(self, keys, name=None):
        """The values of keys, and the default where one is not there."""
        return self._found(keys)


class _MutableHashTable(_Table):
    """A table that is written to, outside of functions.

    >>> table = tf.lookup.experimental.MutableHashTable("int64", "int64", default_value=0)
    >>> table.insert(tf.constant([5, 3], "int64"), tf.constant([1, 2], "int64"))
    >>> table.lookup(tf.constant([3, 4, 5], "int64")).numpy().tolist()
    [2, 0, 1]
    """

    def __init__(self, key_dtype, value_dtype, default_value, name="MutableHashTable", checkpoint=True, experimental_is_anonymous=False):
        super().__init__(key_dtype, value_dtype, default_value)

    def lookup(self, keys, dynamic_default_values=None, name=None):
        """The values of keys, and the default where one is not there."""
        if dynamic_default_values is not None:
            raise _InvalidArgumentError(None, None, "lookup: defaults of single keys are not there; take those of the table")
        if _t.is_symbolic():
            raise _DataDecideError("what a table that is written to holds")
        return self._found(keys)

    def insert(self, keys, values, name=None):
        """Gives keys values; the last one holds."""
        held = self._dictionary()
        held.update(zip(_flat(keys, self.key_dtype), _flat(values, self.value_dtype), strict=True))
        self._hold(held)

    def remove(self, keys, name=None):
        """Takes keys away; those that are not there are ignored."""
        gone = set(_flat(keys, self.key_dtype))
        self._hold({key: value for key, value in self._dictionary().items() if key not in gone})

    def _dictionary(self):
        return dict(zip(self._keys.numpy().tolist(), self._values.numpy().tolist()))

    def _hold(self, held):
        keys = sorted(held)
        self._keep(_np.array(keys, self.key_dtype.as_numpy_dtype), _np.array([held[key] for key in keys], self.value_dtype.as_numpy_dtype))


def _flat(values, dtype):
    return _np.ravel(_t.to_tensor(values, None, dtype).numpy()).tolist()


class experimental:
    """What TensorFlow keeps under ``experimental``."""

    MutableHashTable = _MutableHashTable


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
