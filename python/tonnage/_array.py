"""Making tensors, and their shapes: what stands at the top level of TensorFlow."""

import builtins as _builtins
from collections import namedtuple as _namedtuple

from . import _tonnage as _t
from ._shape import TensorShape
from ._notices import ignores

Unique = _namedtuple("Unique", ["y", "idx"])
UniqueWithCounts = _namedtuple("UniqueWithCounts", ["y", "idx", "count"])


def constant(value, dtype=None, shape=None, name="Const"):
    """A tensor of these values; with a shape, one number stands everywhere and takes no memory.

    >>> tf.constant(1.0, shape=[1000, 1000, 1000]).is_recipe
    True
    """
    if shape is None:
        return _t.to_tensor(value, dtype, None)
    if isinstance(value, (bool, int, float)):
        scalar = _t.to_tensor(value, dtype, None)
        return _t.fill(TensorShape(shape), value, scalar.dtype)
    tensor = _t.to_tensor(value, dtype, None)
    wanted = TensorShape(shape)
    if tensor.shape == wanted:
        return tensor
    count = tensor.shape.num_elements()
    if count == 1:
        return _t.broadcast_to(_t.reshape(tensor, []), wanted)
    if count != wanted.num_elements():
        raise TypeError(f"Eager execution of tf.constant with unsupported shape. Tensor {value!r:.60} "
                        f"has {count} elements, but got `shape` {wanted} with {wanted.num_elements()} elements")
    return _t.reshape(tensor, wanted)


def convert_to_tensor(value, dtype=None, dtype_hint=None, name=None):
    """Anything that can be a tensor, as one."""
    return _t.to_tensor(value, dtype, dtype_hint)


def zeros(shape, dtype="float32", name=None):
    """Zeros. Takes no memory until it is written."""
    return _t.fill(shape, 0, _t.DType(dtype))


def ones(shape, dtype="float32", name=None):
    """Ones. Takes no memory until it is written."""
    return _t.fill(shape, 1, _t.DType(dtype))


def fill(dims, value, name=None):
    """One number everywhere. Takes no memory until it is written."""
    if isinstance(value, _t.Tensor) and value.is_symbolic:
        return _t.broadcast_to(value, dims)
    scalar = _t.to_tensor(value, None, None)
    return _t.fill(dims, value if isinstance(value, (bool, int, float)) else scalar, scalar.dtype)


def zeros_like(input, dtype=None, name=None):
    """Zeros of a tensor's shape, and dtype unless another is given."""
    made = _t.zeros_like(input)
    return made if dtype is None else _t.cast(made, dtype)


def ones_like(input, dtype=None, name=None):
    """Ones of a tensor's shape, and dtype unless another is given."""
    made = _t.ones_like(input)
    return made if dtype is None else _t.cast(made, dtype)


def eye(num_rows, num_columns=None, batch_shape=None, dtype="float32", name=None):
    """A matrix with ones on the diagonal. Takes no memory."""
    made = _t.eye(int(num_rows), int(num_rows if num_columns is None else num_columns), dtype)
    if batch_shape is None:
        return made
    return _t.broadcast_to(made, list(TensorShape(batch_shape)) + made.shape.as_list())


def range(start, limit=None, delta=1, dtype=None, name="range"):
    """Counting from ``start`` up or down to, without, ``limit``. Takes no memory.

    >>> tf.range(2, 10, 3).numpy().tolist()
    [2, 5, 8]
    """
    if limit is None:
        start, limit = 0, start
    known = getattr(limit, "known_lengths", None)
    if dtype is None:
        dtype = _together([start, limit, delta])
    dtype = _t.DType(dtype)
    if known is not None and limit.is_symbolic and _is_plain(start, 0) and _is_plain(delta, 1):
        return _t.count(0, 1, [limit], dtype)
    if any(isinstance(x, _t.Tensor) and x.is_symbolic for x in (start, limit, delta)):
        from .errors import DataDecideError

        raise DataDecideError("the length of a range")
    start, limit, delta = (_plain(x) for x in (start, limit, delta))
    if delta == 0:
        raise ValueError("Requires delta != 0")
    if dtype.is_floating:
        import math

        length = max(0, math.ceil((limit - start) / delta))
    else:
        start, limit, delta = int(start), int(limit), int(delta)
        length = max(0, -((start - limit) // delta))
    return _t.count(start, delta, [length], dtype)


def _is_plain(value, number):
    return isinstance(value, (int, float)) and value == number


def _plain(value):
    if isinstance(value, (_t.Tensor, _t.Variable)):
        return _t.to_tensor(value, None, None).item()
    return value.item() if hasattr(value, "item") else value


def _together(values):
    """The dtype of several numbers: float where one is."""
    found = [_t.to_tensor(v, None, None).dtype for v in values]
    order = ["int32", "int64", "float32", "float64"]
    return max(found, key=lambda d: order.index(d.name) if d.name in order else 0)


def linspace(start, stop, num, name=None, axis=0):
    """Numbers at even distances, both ends included. Takes no memory."""
    dtype = _t.to_tensor(start, None, None).dtype
    if not dtype.is_floating:
        dtype = _t.DType("float64")
    if _t.to_tensor(start, None, None).ndim == 0 and _t.to_tensor(stop, None, None).ndim == 0:
        return _t.linspace(float(start), float(stop), int(num), dtype)
    steps = _t.linspace(0.0, 1.0, int(num), dtype)
    start, stop = _t.expand_dims(start, axis), _t.expand_dims(stop, axis)
    lengths = [1] * start.ndim
    lengths[axis] = int(num)
    return start + (stop - start) * _t.reshape(steps, lengths)


def identity(input, name=None):
    """The same values. In a deferred graph the name is one that they are found by."""
    made = _t.identity(input)
    if name is not None and made.is_symbolic:
        from ._variable import deferred_graph

        graph = deferred_graph()
        return made if graph is None else graph.give_name(made, name)
    return made


def cast(x, dtype, name=None):
    """The values in another dtype."""
    x = _t.to_tensor(x, None, None)
    return x if x.dtype == dtype else _t.cast(x, dtype)


def saturate_cast(value, dtype, name=None):
    """The values in another dtype, kept within its range."""
    return _t.cast(value, dtype)


def reshape(tensor, shape, name=None):
    """The same elements in another shape; one length may be -1. Takes no memory.

    >>> tf.reshape(tf.range(6), [2, -1]).shape
    TensorShape([2, 3])
    """
    return _t.reshape(tensor, shape)


def shape(input, out_type="int32", name=None):
    """The lengths of a tensor, as a tensor."""
    return _t.shape_of(input, out_type)


def rank(input, name=None):
    """How many axes."""
    return _t.to_tensor(_t.to_tensor(input, None, None).ndim, "int32", None)


def size(input, out_type="int32", name=None):
    """How many elements."""
    lengths = _t.shape_of(input, out_type)
    return _t.reduce_prod(lengths, None, False)


def expand_dims(input, axis, name=None):
    """The same elements with an axis of length 1 more."""
    return _t.expand_dims(input, int(axis))


def squeeze(input, axis=None, name=None):
    """The same elements without axes of length 1."""
    if isinstance(axis, (list, tuple)) and not axis:
        axis = None
    return _t.squeeze(input, axis)


def transpose(a, perm=None, conjugate=False, name=None):
    """The axes in another order; reversed where none is given. Takes no memory."""
    a = _t.to_tensor(a, None, None)
    if perm is None:
        perm = list(reversed([*_builtins.range(a.ndim)]))
    return _t.transpose(a, [int(p) for p in perm])


def concat(values, axis, name="concat"):
    """Tensors one after the other along an axis.

    >>> tf.concat([[1, 2], [3]], 0).numpy().tolist()
    [1, 2, 3]
    """
    if isinstance(values, _t.Tensor):
        values = list(values)
    return _t.concat(values, int(axis))


def stack(values, axis=0, name="stack"):
    """Tensors beside each other along a new axis."""
    return _t.stack(values, int(axis))


def unstack(value, num=None, axis=0, name="unstack"):
    """The parts of a tensor along an axis, without it."""
    value = _t.to_tensor(value, None, None)
    if num is not None and value.ndim and value.lengths[int(axis)] != int(num):
        raise ValueError(f"unstack: num is {num}, but axis {axis} of shape {value.shape} has another length")
    return _t.unstack(value, int(axis))


def split(value, num_or_size_splits, axis=0, num=None, name="split"):
    """A tensor cut along an axis: into so many equal parts, or parts of these lengths."""
    value = _t.to_tensor(value, None, None)
    if isinstance(num_or_size_splits, int):
        return _t.split_evenly(value, num_or_size_splits, int(axis))
    lengths = [int(n) for n in num_or_size_splits]
    if -1 in lengths:
        rest = value.lengths[axis] - sum(n for n in lengths if n >= 0)
        lengths = [rest if n == -1 else n for n in lengths]
    return _t.split(value, lengths, int(axis))


def tile(input, multiples, name=None):
    """A tensor again and again along its axes."""
    return _t.tile(input, [int(n) for n in multiples])


def repeat(input, repeats, axis=None, name=None):
    """Every element so often."""
    input = _t.to_tensor(input, None, None)
    if axis is None:
        input, axis = _t.reshape(input, [-1]), 0
    if isinstance(repeats, (list, tuple)) or getattr(repeats, "ndim", 0):
        counts = [int(n) for n in repeats]
        if len(counts) == 1:
            return _t.repeat(input, counts[0], axis)
        places = [i for i, n in enumerate(counts) for _ in _builtins.range(n)]
        return _t.gather(input, _t.to_tensor(places, "int32", None), axis, 0)
    return _t.repeat(input, int(repeats), axis)


def reverse(tensor, axis, name=None):
    """A tensor backwards along axes."""
    return _t.reverse(tensor, axis)


def roll(input, shift, axis, name=None):
    """A tensor moved along axes, what falls off coming in at the other end."""
    pairs = [(shift, axis)] if isinstance(axis, int) else zip(shift, axis)
    for by, along in pairs:
        input = _t.roll(input, int(by), int(along))
    return input


def pad(tensor, paddings, mode="CONSTANT", constant_values=0, name=None):
    """Elements around a tensor.

    >>> tf.pad([1, 2], [[1, 0]]).numpy().tolist()
    [0, 1, 2]
    """
    widths = [[int(a), int(b)] for a, b in paddings]
    mode = mode.upper()
    if mode == "CONSTANT":
        return _t.pad(tensor, widths, constant_values)
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise ValueError(f"Unknown padding mode: {mode}")
    return _t.pad_mirrored(tensor, widths, mode == "SYMMETRIC")


def broadcast_to(input, shape, name=None):
    """A tensor stretched to a shape. Takes no memory."""
    return _t.broadcast_to(input, shape)


def broadcast_static_shape(shape_x, shape_y):
    """The shape that two broadcast to."""
    x, y = list(TensorShape(shape_x)), list(TensorShape(shape_y))
    rank = max(len(x), len(y))
    x, y = [1] * (rank - len(x)) + x, [1] * (rank - len(y)) + y
    if any(a != b and 1 not in (a, b) for a, b in zip(x, y)):
        raise ValueError(f"Incompatible shapes for broadcasting: {shape_x} and {shape_y}")
    return TensorShape([b if a == 1 else a for a, b in zip(x, y)])


def slice(input_, begin, size, name=None):
    """A part of every axis: from ``begin``, ``size`` long, or to the end where that is -1."""
    input_ = _t.to_tensor(input_, None, None)
    begin_tensor = _t.to_tensor(begin, None, None)
    if begin_tensor.is_symbolic:
        lengths = [n if s == -1 else int(s) for s, n in zip(size, input_.lengths)]
        return _t.dynamic_slice(input_, begin_tensor, lengths)
    pairs = zip([int(b) for b in begin], [int(s) for s in size])
    key = tuple(_builtins.slice(b, None if s == -1 else b + s) for b, s in pairs)
    return input_[key] if key else input_


@ignores("strided_slice", "var")
def strided_slice(input_, begin, end, strides=None, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0,
                  shrink_axis_mask=0, var=None, name=None):
    """A part of every axis, as ``x[begin:end:stride]`` is."""
    keys = []
    for i, (b, e) in enumerate(zip(begin, end)):
        step = 1 if strides is None else int(strides[i])
        if ellipsis_mask >> i & 1:
            keys.append(Ellipsis)
        elif new_axis_mask >> i & 1:
            keys.append(None)
        elif shrink_axis_mask >> i & 1:
            keys.append(int(b))
        else:
            start = None if begin_mask >> i & 1 else int(b)
            stop = None if end_mask >> i & 1 else int(e)
            keys.append(_builtins.slice(start, stop, step))
    return _t.to_tensor(input_, None, None)[tuple(keys)]


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
    return _t.scatter_nd_add(_t.fill(shape, 0, updates.dtype), indices, updates)


def tensor_scatter_nd_update(tensor, indices, updates, name=None):
    """A copy with other values at indices."""
    return _t.scatter_nd_update(tensor, indices, updates)


def tensor_scatter_nd_add(tensor, indices, updates, name=None):
    """A copy with values added at indices."""
    return _t.scatter_nd_add(tensor, indices, updates)


def tensor_scatter_nd_sub(tensor, indices, updates, name=None):
    """A copy with values taken away at indices."""
    return _t.scatter_nd_add(tensor, indices, -_t.to_tensor(updates, None, None))


def tensor_scatter_nd_max(tensor, indices, updates, name=None):
    """A copy with the larger of both values at indices."""
    return _t.scatter_nd_max(tensor, indices, updates)


def tensor_scatter_nd_min(tensor, indices, updates, name=None):
    """A copy with the smaller of both values at indices."""
    return _t.scatter_nd_min(tensor, indices, updates)


def boolean_mask(tensor, mask, axis=None, name="boolean_mask"):
    """The rows at which a mask is true.

    >>> tf.boolean_mask([1, 2, 3], [True, False, True]).numpy().tolist()
    [1, 3]
    """
    if axis:
        tensor = _t.to_tensor(tensor, None, None)
        order = [axis] + [i for i in _builtins.range(tensor.ndim) if i != axis]
        back = [order.index(i) for i in _builtins.range(tensor.ndim)]
        return _t.transpose(_t.boolean_mask(_t.transpose(tensor, order), mask), back)
    return _t.boolean_mask(tensor, mask)


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
    if isinstance(x, (_t.Tensor, _t.Variable)):
        y = _t.to_tensor(y, None, x.dtype)
    else:
        y = _t.to_tensor(y, None, None)
        x = _t.to_tensor(x, None, y.dtype)
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
    if axis in (None, -1, made.ndim - 1):
        return made
    order = [*_builtins.range(made.ndim - 1)]
    order.insert(axis, made.ndim - 1)
    return _t.transpose(made, order)


def sort(values, axis=-1, direction="ASCENDING", name=None):
    """The values in order along an axis."""
    return _t.sort(values, int(axis), _descending(direction))


def ensure_shape(x, shape, name=None):
    """The tensor; raises where its shape is not as said.

    >>> tf.ensure_shape(tf.ones([2, 3]), [None, 3]).shape
    TensorShape([2, 3])
    """
    from .errors import InvalidArgumentError

    x, shape = _t.to_tensor(x, None, None), TensorShape(shape)
    if not shape.is_compatible_with(x.shape):
        kind = ValueError if x.is_symbolic else lambda text: InvalidArgumentError(None, None, text)
        raise kind(f"Shape of tensor {x.shape} is not compatible with expected shape {shape}")
    return x


def histogram_fixed_width(values, value_range, nbins=100, dtype="int32", name=None):
    """How many values fall into each of so many equal parts of a range; those outside count at its ends.

    >>> tf.histogram_fixed_width([1.0, 2.0, 9.0], [0.0, 10.0], 5).numpy().tolist()
    [1, 1, 0, 0, 1]
    """
    from .math import bincount

    values = _t.reshape(_t.to_tensor(values, None, None), [-1])
    low, high = (_t.cast(_t.to_tensor(v, None, None), values.dtype) for v in (value_range[0], value_range[1]))
    at = _t.cast((values - low) * float(nbins) / (high - low), "int32")
    return cast(bincount(_t.clip(at, 0, int(nbins) - 1), minlength=int(nbins), maxlength=int(nbins)), dtype)


def argsort(values, axis=-1, direction="ASCENDING", stable=False, name=None):
    """Where the values in order stand along an axis."""
    return cast(_t.argsort(values, int(axis), _descending(direction)), "int32")


def _descending(direction):
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"Argument `direction` should be one of 'ASCENDING' or 'DESCENDING'. Received: {direction}")
    return direction == "DESCENDING"


def searchsorted(sorted_sequence, values, side="left", out_type="int32", name=None):
    """Where values belong among sorted ones."""
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
    if indexing == "ij" or len(args) < 2:
        return _t.meshgrid(list(args))
    made = _t.meshgrid([args[1], args[0], *args[2:]])
    return [made[1], made[0], *made[2:]]


def sequence_mask(lengths, maxlen=None, dtype="bool", name=None):
    """True at the positions below each length."""
    lengths = _t.to_tensor(lengths, None, None)
    if maxlen is None:
        maxlen = int(_t.reduce_max(lengths, None, False))
    positions = _t.count(0, 1, [int(maxlen)], lengths.dtype)
    return cast(positions < _t.expand_dims(lengths, -1), dtype)
