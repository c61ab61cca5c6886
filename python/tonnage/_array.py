"""Making tensors, and their shapes: what stands at the top level of TensorFlow."""

import builtins as _builtins

from . import _tonnage as _t
from ._complex import Complex as _Complex
from ._shape import StandIn, TensorShape
from ._notices import ignores as _ignores
from .errors import DataDecideError as _DataDecideError, InvalidArgumentError as _InvalidArgumentError


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
    if isinstance(value, StandIn) and hasattr(value, "dense_shape") and not hasattr(value, "__tf_tensor__"):
        return value if dtype is None else cast(value, dtype)  # what is sparse stays so
    if isinstance(value, bool) and dtype is not None:
        return cast(value, dtype)
    if isinstance(value, (list, tuple)) and dtype is not None and any(isinstance(part, _t.Tensor) for part in value):
        return cast(_t.to_tensor(value, None, dtype), dtype)
    return _t.to_tensor(value, dtype, dtype_hint)


def zeros(shape, dtype="float32", name=None):
    """Zeros. Takes no memory until it is written."""
    return _t.fill(shape, 0, _t.DType(dtype))


def ones(shape, dtype="float32", name=None):
    """Ones. Takes no memory until it is written."""
    return _t.fill(shape, 1, _t.DType(dtype))


def fill(dims, value, name=None):
    """One number everywhere. Takes no memory until it is written."""
    if isinstance(value, (_t.Tensor, _t.Variable)):
        # A view of it, which gradients go back through.
        scalar = _t.to_tensor(value, None, None)
        if scalar.ndim != 0:
            raise ValueError(f"fill: value must be a scalar, but its shape is {scalar.shape}")
        return _t.broadcast_to(scalar, dims)
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
    lengths = [n if isinstance(n, _t.Tensor) else int(n) for n in (num_rows, num_rows if num_columns is None else num_columns)]
    if any(isinstance(n, int) and n < 0 for n in lengths):
        raise _InvalidArgumentError(None, None, f"eye: a matrix cannot have {lengths[0]} rows and {lengths[1]} columns")
    made = _t.eye(lengths, dtype)
    return made if batch_shape is None else _t.broadcast_to(made, list(TensorShape(batch_shape)) + lengths)


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
        found = _t.known_value(value)
        if found is None:
            from .errors import DataDecideError

            raise DataDecideError("the length of a range")
        return found.item()
    return value.item() if hasattr(value, "item") else value


def _together(values):
    """The dtype of several numbers: float where one is."""
    found = [_t.to_tensor(v, None, None).dtype for v in values]
    order = ["int32", "int64", "float32", "float64"]
    return max(found, key=lambda d: order.index(d.name) if d.name in order else 0)


def linspace(start, stop, num, name=None, axis=0):
    """Numbers at even distances, both ends included. Takes no memory where the ends are Python's numbers."""
    dtype = _t.to_tensor(start, None, None).dtype
    if not dtype.is_floating:
        dtype = _t.DType("float64")
    if isinstance(start, (int, float)) and isinstance(stop, (int, float)):
        return _t.linspace(float(start), float(stop), int(num), dtype)
    start, stop = (cast(_t.to_tensor(x, None, None), dtype) for x in (start, stop))
    # As many axes on both sides: the axis is counted in what they are broadcast to.
    rank = max(start.ndim, stop.ndim)
    for _ in range(rank - start.ndim):
        start = _t.expand_dims(start, 0)
    for _ in range(rank - stop.ndim):
        stop = _t.expand_dims(stop, 0)
    steps = _t.linspace(0.0, 1.0, int(num), dtype)
    start, stop = _t.expand_dims(start, axis), _t.expand_dims(stop, axis)
    lengths = [1] * start.ndim
    lengths[axis] = int(num)
    steps = _t.reshape(steps, lengths)
    # Both ends are as they were given, whatever the difference of the two is.
    inner = start + (stop - start) * steps
    return _t.where_(steps == 0.0, start, _t.where_(steps == 1.0, stop, inner))


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
    if isinstance(x, StandIn) and hasattr(x, "with_values"):  # rows stay rows, and what is sparse stays so
        return x.with_values(cast(x.values, dtype))
    x = _t.to_tensor(x, None, None)
    return x if x.dtype == dtype else _t.cast(x, dtype)


def bitcast(input, type, name=None):
    """The same bits as elements of another dtype: a wider one is made of the last axis, a narrower one has such an axis more.

    >>> int(tf.bitcast(1.0, tf.int32)) == 0x3F800000
    True
    >>> tf.bitcast(tf.constant([1], tf.int16), tf.uint8).numpy().tolist()
    [[1, 0]]
    """
    x, dtype = _t.to_tensor(input, None, None), _t.DType(type)
    if x.dtype.size == dtype.size:
        return x if x.dtype == dtype else _t.bitcast(x, dtype)
    narrow, wide = sorted((x.dtype.size, dtype.size))
    count, whole = wide // narrow, f"uint{8 * wide}"
    shifts = _t.count(0, 8 * narrow, [count], whole)
    shift = _t.Op("shift_right" if x.dtype.size == wide else "shift_left", "shift", ["x", "y"])
    if x.dtype.size == wide:
        parts = _t.cast(shift(_t.expand_dims(bitcast(x, whole), -1), shifts), f"uint{8 * narrow}")
        return bitcast(parts, dtype)
    if not x.ndim or x.lengths[-1] != count:
        raise _InvalidArgumentError(None, None, f"bitcast: from {x.dtype.name} to {dtype.name} the last axis has {count} elements, so the shape "
                                                f"is not {x.shape}")
    parts = shift(_t.cast(bitcast(x, f"uint{8 * narrow}"), whole), shifts)
    return bitcast(_t.reduce_sum(parts, -1, False), dtype)


def saturate_cast(value, dtype, name=None):
    """The values in another dtype, kept within its range.

    >>> tf.saturate_cast([300, -1], tf.uint8).numpy().tolist()
    [255, 0]
    """
    value, dtype = _t.to_tensor(value, None, None), _t.DType(dtype)
    given = value.dtype
    # Floats that become integers are kept within the range by the cast itself, and truth values have none.
    if given.is_bool or dtype.is_bool or (given.is_floating and dtype.is_integer):
        return _t.cast(value, dtype)
    number = float if given.is_floating else int
    limits = (number(max(given.min, dtype.min)), number(min(given.max, dtype.max)))
    return _t.cast(_t.clip(value, *(_t.to_tensor(n, given, None) for n in limits)), dtype)


def reshape(tensor, shape, name=None):
    """The same elements in another shape; one length may be -1. Takes no memory.

    >>> tf.reshape(tf.range(6), [2, -1]).shape
    TensorShape([2, 3])
    """
    return _t.reshape(tensor, shape)


def shape(input, out_type="int32", name=None):
    """The lengths of a tensor, as a tensor."""
    if isinstance(input, StandIn) and not hasattr(input, "__tf_tensor__"):
        return _t.cast(input.dense_shape, out_type)
    input = input.real if isinstance(input, _Complex) else input
    return _t.shape_of(input, out_type)


def rank(input, name=None):
    """How many axes."""
    return _t.to_tensor(_t.to_tensor(input, None, None).ndim, "int32", None)


def size(input, out_type="int32", name=None):
    """How many elements."""
    if isinstance(input, StandIn) and hasattr(input, "indices"):
        input = input.values  # as in TensorFlow: of what is sparse, what is stored
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


def _length(what, tensor, axis):
    """How long an axis is, open lengths being None; an axis that is not there is an error."""
    if not -tensor.ndim <= axis < tensor.ndim:
        raise _InvalidArgumentError(None, None, f"{what}: axis {axis} is out of range for shape {tensor.shape}")
    return tensor.lengths[axis]


def _listed(value):
    """A number alone as a list of one."""
    return list(value) if hasattr(value, "__iter__") and getattr(value, "ndim", 1) else [value]


def unstack(value, num=None, axis=0, name="unstack"):
    """The parts of a tensor along an axis, without it."""
    value = _t.to_tensor(value, None, None)
    if num is not None and _length("unstack", value, int(axis)) != int(num):
        raise ValueError(f"unstack: num is {num}, but axis {axis} of shape {value.shape} has another length")
    return _t.unstack(value, int(axis))


def split(value, num_or_size_splits, axis=0, num=None, name="split"):
    """A tensor cut along an axis: into so many equal parts, or parts of these lengths."""
    value = _t.to_tensor(value, None, None)
    if isinstance(num_or_size_splits, int):
        return _t.split_evenly(value, num_or_size_splits, int(axis))
    lengths = [int(n) for n in num_or_size_splits]
    if -1 in lengths:
        rest = _length("split", value, int(axis)) - sum(n for n in lengths if n >= 0)
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
        counts = _t.to_tensor(repeats, None, None)
        if counts.ndim != 1:
            raise _InvalidArgumentError(None, None, f"repeat: counts stand in one row, not as {repeats}")
        if counts.is_symbolic:
            from .errors import DataDecideError

            raise DataDecideError("how often `repeat` repeats")
        counts = [int(n) for n in counts.numpy()]
        if min(counts, default=0) < 0:
            raise _InvalidArgumentError(None, None, f"repeat: counts of at least 0 are needed, not {counts}")
        length = _length("repeat", input, int(axis))
        if len(counts) == 1:
            return _t.repeat(input, counts[0], axis)
        if length is not None and len(counts) != length:
            raise _InvalidArgumentError(None, None, f"repeat: one count, or one for each of {length} elements along "
                                                    f"axis {axis} of {input.shape} is needed, not {len(counts)}")
        places = [i for i, n in enumerate(counts) for _ in _builtins.range(n)]
        return _t.gather(input, _t.to_tensor(places, "int32", None), axis, 0)
    return _t.repeat(input, int(repeats), axis)


def reverse(tensor, axis, name=None):
    """A tensor backwards along axes."""
    return _t.reverse(tensor, axis)


def roll(input, shift, axis, name=None):
    """A tensor moved along axes, what falls off coming in at the other end."""
    shifts, axes = _listed(shift), _listed(axis)
    if len(shifts) != len(axes):
        raise _InvalidArgumentError(None, None, f"roll: {len(shifts)} shifts for {len(axes)} axes; as many are needed")
    for by, along in zip(shifts, axes):
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
    """A tensor broadcast to a shape. Takes no memory."""
    return _t.broadcast_to(input, shape)


def broadcast_static_shape(shape_x, shape_y):
    """The shape that two broadcast to."""
    x, y = list(TensorShape(shape_x)), list(TensorShape(shape_y))
    rank = max(len(x), len(y))
    x, y = [1] * (rank - len(x)) + x, [1] * (rank - len(y)) + y
    if any(a != b and 1 not in (a, b) for a, b in zip(x, y)):
        raise ValueError(f"Incompatible shapes for broadcasting: {shape_x} and {shape_y}")
    return TensorShape([b if a == 1 else a for a, b in zip(x, y)])


def broadcast_dynamic_shape(shape_x, shape_y):
    """The same, of shapes that are tensors."""
    x, y = (_t.to_tensor(s, None, None) for s in (shape_x, shape_y))
    if not x.is_symbolic and not y.is_symbolic:
        return _t.to_tensor(broadcast_static_shape([int(n) for n in x], [int(n) for n in y]).as_list(), x.dtype, None)
    if None in (x.lengths[0], y.lengths[0]):
        raise _DataDecideError("how many lengths a shape has")
    rank = max(x.lengths[0], y.lengths[0])
    x, y = (_t.concat([_t.fill([rank - s.lengths[0]], 1, s.dtype), s], 0) if s.lengths[0] < rank else s for s in (x, y))
    return _t.where_(x == 1, y, x)


def slice(input_, begin, size, name=None):
    """A part of every axis: from ``begin``, ``size`` long, or to the end where that is -1."""
    input_ = _t.to_tensor(input_, None, None)
    begin_tensor = _t.to_tensor(begin, None, None)
    for what, given in [("begin", begin_tensor), ("size", _t.to_tensor(size, None, None))]:
        if given.ndim != 1 or given.lengths[0] not in (None, input_.ndim):
            raise _InvalidArgumentError(None, None, f"slice: {what} has one number for each axis of {input_.shape}, "
                                                    f"so its shape is not {given.shape}")
    known = _t.known_value(begin_tensor)
    if known is None:
        lengths = [n if s == -1 else int(s) for s, n in zip(size, input_.lengths)]
        return _t.dynamic_slice(input_, begin_tensor, lengths)
    pairs = [(int(b), int(s)) for b, s in zip(known, size)]
    for (b, s), n in zip(pairs, input_.lengths):
        # Keys of Python would count from the end, and stop at it.
        if b < 0 or s < -1 or (n is not None and b + max(s, 0) > n):
            raise _InvalidArgumentError(None, None, f"slice: {s} elements from {b} on are not within an axis of "
                                                    f"{'open length' if n is None else n}, in shape {input_.shape}")
    key = tuple(_builtins.slice(b, None if s == -1 else b + s) for b, s in pairs)
    return input_[key] if key else input_


@_ignores("strided_slice", "var")
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


def ensure_shape(x, shape, name=None):
    """The tensor; raises where its shape is not as said.

    >>> tf.ensure_shape(tf.ones([2, 3]), [None, 3]).shape
    TensorShape([2, 3])
    """
    x, shape = _t.to_tensor(x, None, None), TensorShape(shape)
    if not shape.is_compatible_with(x.shape):
        kind = ValueError if x.is_symbolic else lambda text: _InvalidArgumentError(None, None, text)
        raise kind(f"Shape of tensor {x.shape} is not compatible with expected shape {shape}")
    return x


def dynamic_update_slice(operand, update, indices):
    """The tensor with a part of it replaced by ``update``, which starts at these indices.

    >>> tf.dynamic_update_slice([1, 2, 3], [7], [1]).numpy().tolist()
    [1, 7, 3]
    """
    operand = _t.to_tensor(operand, None, None)
    if isinstance(indices, (list, tuple)):
        indices = _t.stack([_t.cast(_t.to_tensor(i, None, None), "int64") for i in indices], 0) if indices else _t.fill([0], 0, "int64")
    return _t.dynamic_update(operand, _t.to_tensor(update, None, operand.dtype), _t.to_tensor(indices, None, None))


def get_static_value(tensor, partial=False):
    """The values of a tensor as a NumPy array, where they are known now: while a function is traced those of constants, and of what a few ops
    make of constants.

    >>> int(tf.get_static_value(tf.constant(3)))
    3
    """
    if not isinstance(tensor, (_t.Tensor, _t.Variable)):
        return tensor
    value = _t.to_tensor(tensor, None, None)
    if value.is_symbolic:
        value = _t.known_value(value)
    return None if value is None else value.numpy()
