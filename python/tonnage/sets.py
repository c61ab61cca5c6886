"""``tf.sets``: what rows of sparse tensors have in common. A row is the last axis, as a set of values."""

from . import _tonnage as _t
from .sparse import SparseTensor as _SparseTensor, from_dense as _from_dense


def intersection(a, b, validate_indices=True):
    """The values that are in the rows of both, in order.

    >>> a = tf.SparseTensor([[0, 0], [0, 1]], [3, 5], [1, 2])
    >>> tf.sets.intersection(a, a).values.numpy().tolist()
    [3, 5]
    """
    a, b = (x if isinstance(x, _SparseTensor) else _from_dense(x) for x in (a, b))
    rows = a.shape.as_list()[:-1]
    found = sorted(_members(a) & _members(b))
    indices, values, most, count, last = [], [], 0, 0, None
    for row, value in found:
        count = count + 1 if row == last else 0
        last, most = row, max(most, count + 1)
        indices.append([*row, count])
        values.append(value)
    if not values:
        return _SparseTensor(_t.fill([0, len(rows) + 1], 0, "int64"), _t.fill([0], 0, a.dtype), [*rows, 0])
    return _SparseTensor(_t.to_tensor(indices, "int64", None), _t.to_tensor(values, a.dtype, None), [*rows, most])


def _members(x):
    return {(tuple(row[:-1]), value) for row, value in zip(x.indices.numpy().tolist(), x.values.numpy().tolist())}


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
