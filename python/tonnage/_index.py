"""Indices: taking, scattering, masking and sorting, as they stand at the top level of TensorFlow."""

import builtins as _builtins
from collections import namedtuple as _namedtuple

from . import _tonnage as _t
from ._array import cast
from .debugging import _holds

Unique = _namedtuple("Unique", ["y", "idx"])
UniqueWithCounts = _namedtuple("UniqueWithCounts", ["y", "idx", "count"])


def gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None):
    """Rows of a tensor by their indices.

    >>> tf.gather([10, 20, 30], [2, 0]).numpy().tolist()
    [30, 10]
    """
    return _t.gather(params, indices, int(batch_dims if axis is None else axis), int(batch_dims))


def gather_nd(params, indices, batch_dims=0, name=None):
    """Parts of a tensor by indices of several axes."""
    return _t.gather_nd(params, indices, int(batch_dims))


def scatter_nd(indices, updates, shape, name=None):
    """Rows added into zeros at indices."""
    updates = _t.to_tensor(updates, None, None)
    if updates.dtype.is_bool:  # one that is true is enough
        return cast(scatter_nd(indices, cast(updates, "int32"), shape), "bool")
    if updates.dtype == "string":
        return _t.scatter_nd_update(_t.fill(shape, "", updates.dtype), indices, updates)
    return _t.scatter_nd_add(_t.fill(shape, 0, updates.dtype), indices, updates)


def _alike(tensor, indices, updates):
    """What is put into a tensor, in its dtype where it can be."""
    tensor = _t.to_tensor(tensor, None, None)
    return tensor, indices, _t.to_tensor(updates, None, tensor.dtype)


def tensor_scatter_nd_update(tensor, indices, updates, name=None):
    """A copy with other values at indices."""
    return _t.scatter_nd_update(*_alike(tensor, indices, updates))


def tensor_scatter_nd_add(tensor, indices, updates, name=None):
    """A copy with values added at indices."""
    return _t.scatter_nd_add(*_alike(tensor, indices, updates))


def tensor_scatter_nd_sub(tensor, indices, updates, name=None):
    """A copy with values taken away at indices."""
    tensor, indices, updates = _alike(tensor, indices, updates)
    return _t.scatter_nd_add(tensor, indices, -updates)


def tensor_scatter_nd_max(tensor, indices, updates, name=None):
    """A copy with the larger of both values at indices."""
    return _t.scatter_nd_max(*_alike(tensor, indices, updates))


def tensor_scatter_nd_min(tensor, indices, updates, name=None):
    """A copy with the smaller of both values at indices."""
    return _t.scatter_nd_min(*_alike(tensor, indices, updates))


def dynamic_partition(data, partitions, num_partitions, name=None):
    """Rows by the numbers of the parts that they belong to. The data decide how many each has.

    >>> [part.numpy().tolist() for part in tf.dynamic_partition([1, 2, 3], [0, 1, 0], 2)]
    [[1, 3], [2]]
    """
    data, partitions = _t.to_tensor(data, None, None), _t.to_tensor(partitions, None, None)
    _holds((partitions >= 0) & (partitions < int(num_partitions)), "dynamic_partition",
           f"partitions must be from 0 up to, without, {int(num_partitions)}", partitions)
    return [boolean_mask(data, partitions == number) for number in _builtins.range(int(num_partitions))]


def boolean_mask(tensor, mask, axis=None, name="boolean_mask"):
    """The rows at which a mask is true: of the leading axes, or of those from ``axis`` on.

    >>> tf.boolean_mask([1, 2, 3], [True, False, True]).numpy().tolist()
    [1, 3]
    """
    if not axis:
        return _t.boolean_mask(tensor, mask)
    tensor, mask = _t.to_tensor(tensor, None, None), _t.to_tensor(mask, None, None)
    first = int(axis) + tensor.ndim if int(axis) < 0 else int(axis)
    masked = [*_builtins.range(first, first + mask.ndim)]
    if first < 0 or first + mask.ndim > tensor.ndim:
        raise ValueError(f"boolean_mask: a mask of rank {mask.ndim} does not fit a tensor of rank {tensor.ndim} from axis "
                         f"{axis} on")
    order = masked + [i for i in _builtins.range(tensor.ndim) if i not in masked]
    made = _t.boolean_mask(_t.transpose(tensor, order), mask)
    # One axis is left of those; it goes where they were.
    return _t.transpose(made, [*_builtins.range(1, first + 1), 0, *_builtins.range(first + 1, made.ndim)])


def where(condition, x=None, y=None, name=None):
    """``x`` where the condition holds and ``y`` elsewhere; without them, the indices at which it holds.

    >>> tf.where([True, False], [1, 1], [2, 2]).numpy().tolist()
    [1, 2]
    """
    condition = _t.to_tensor(condition, None, None)
    if x is None and y is None:
        return cast(_t.nonzero(condition), "int64")
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    if isinstance(x, (bool, int, float)) and not isinstance(y, (bool, int, float)):
        y = _t.to_tensor(y, None, None)
        x = _t.to_tensor(x, None, y.dtype)
    else:
        x = _t.to_tensor(x, None, getattr(y, "dtype", None) if isinstance(y, (_t.Tensor, _t.Variable)) else None)
        y = _t.to_tensor(y, None, x.dtype)
    return _t.where_(condition, x, y)


def one_hot(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None):
    """For each index a row with a one at it. Takes no memory until it is written.

    >>> tf.one_hot([2], 3).numpy().tolist()
    [[0.0, 0.0, 1.0]]
    """
    on, off = 1 if on_value is None else on_value, 0 if off_value is None else off_value
    if dtype is None:
        given = on_value if on_value is not None else off_value
        dtype = "float32" if given is None else _t.to_tensor(given, None, None).dtype
    made = _t.one_hot(indices, int(depth), dtype, on, off)
    if axis is not None and not -1 <= int(axis) < made.ndim:
        raise ValueError(f"one_hot: axis is from -1 to {made.ndim - 1}, not {axis}")
    if axis in (None, -1, made.ndim - 1):
        return made
    order = [*_builtins.range(made.ndim - 1)]
    order.insert(axis, made.ndim - 1)
    return _t.transpose(made, order)


def sort(values, axis=-1, direction="ASCENDING", name=None):
    """The values in order along an axis."""
    return _t.sort(values, int(axis), _descending(direction))


def histogram_fixed_width(values, value_range, nbins=100, dtype="int32", name=None):
    """How many values fall into each of so many equal parts of a range; those outside count at its ends.

    >>> tf.histogram_fixed_width([1.0, 2.0, 9.0], [0.0, 10.0], 5).numpy().tolist()
    [1, 1, 0, 0, 1]
    """
    from .math import bincount

    values = _t.cast(_t.reshape(values, [-1]), "float64")
    low, high = (_t.cast(_t.to_tensor(v, None, None), "float64") for v in (value_range[0], value_range[1]))
    # Kept within the range before they are integers, which may not have numbers as large.
    at = _t.clip((values - low) / ((high - low) / float(nbins)), 0.0, float(nbins) - 1.0)
    return cast(bincount(_t.cast(at, "int32"), minlength=int(nbins), maxlength=int(nbins)), dtype)


def argsort(values, axis=-1, direction="ASCENDING", stable=False, name=None):
    """Where the values in order stand along an axis."""
    return cast(_t.argsort(values, int(axis), _descending(direction)), "int32")


def _descending(direction):
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"Argument `direction` should be one of 'ASCENDING' or 'DESCENDING'. Received: {direction}")
    return direction == "DESCENDING"


def searchsorted(sorted_sequence, values, side="left", out_type="int32", name=None):
    """Where values belong among sorted ones."""
    if side not in ("left", "right"):
        raise ValueError(f"Argument `side` must be either 'right' or 'left'. Received: `side` = {side!r}.")
    return cast(_t.searchsorted(sorted_sequence, values, side == "right"), out_type)


def unique(x, out_idx="int32", name=None):
    """The values that occur, in the order of their first, and for each element which it is.

    >>> tf.unique([4, 4, 2]).y.numpy().tolist()
    [4, 2]
    """
    values, places = _t.unique(x)
    return Unique(values, cast(places, out_idx))


def unique_with_counts(x, out_idx="int32", name=None):
    """The same, and how often each occurs."""
    values, places, counts = _t.unique_with_counts(x)
    return UniqueWithCounts(values, cast(places, out_idx), cast(counts, out_idx))


def meshgrid(*args, indexing="xy", name=None):
    """The coordinates of a grid."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Argument `indexing` must be 'xy' or 'ij'. Received: {indexing}")
    args = [_t.reshape(x, [-1]) for x in args]
    if indexing == "ij" or len(args) < 2:
        return _t.meshgrid(list(args))
    made = _t.meshgrid([args[1], args[0], *args[2:]])
    return [made[1], made[0], *made[2:]]


def sequence_mask(lengths, maxlen=None, dtype="bool", name=None):
    """True at the positions below each length."""
    lengths = _t.to_tensor(lengths, None, None)
    if maxlen is None:
        maxlen = max(0, int(_t.reduce_max(lengths, None, False))) if lengths.shape.num_elements() != 0 else 0
    positions = _t.count(0, 1, [int(maxlen)], lengths.dtype)
    return cast(positions < _t.expand_dims(lengths, -1), dtype)
