"""``tf.raw_ops``: the few ops that have no other name, with the arguments that TensorFlow gives them."""

from collections import namedtuple as _namedtuple

from . import _tonnage as _t
from ._shape import _lengths_of

_Unique = _namedtuple("UniqueV2", ["y", "idx"])
_UniqueWithCounts = _namedtuple("UniqueWithCountsV2", ["y", "idx", "count"])


def Bucketize(input, boundaries, name=None):
    """Which of the intervals between boundaries each number lies in.

    >>> tf.raw_ops.Bucketize(input=[-5, 10, 150], boundaries=[0, 10, 100]).numpy().tolist()
    [0, 2, 3]
    """
    x = _t.to_tensor(input, None, None)
    dtype = x.dtype if x.dtype.is_floating else _t.DType("float64")
    edges = _t.cast(_t.to_tensor(list(boundaries), None, None), dtype) if len(boundaries) else _t.fill([0], 0, dtype)
    return _t.cast(_t.reduce_sum(_t.cast(_t.expand_dims(_t.cast(x, dtype), -1) >= edges, "int32"), -1, False), "int32")


def UniqueWithCountsV2(x, axis, out_idx="int32", name=None):
    """The different parts along an axis in the order in which they first come, which of them each part is, and how often each comes."""
    x = _t.to_tensor(x, None, None)
    axis = int(axis[0]) if len(axis) else 0
    rows = _t.transpose(x, [axis, *(i for i in range(x.ndim) if i != axis)])
    flat = _t.reshape(rows, [x.lengths[axis], -1])
    same = _t.reduce_all(_t.expand_dims(flat, 0) == _t.expand_dims(flat, 1), 2, False)
    first = _t.cast(_t.argmax(_t.cast(same, "int32"), 1), "int32")  # where each row comes first
    from ._index import unique_with_counts

    places, which, counts = unique_with_counts(first)
    return _UniqueWithCounts(_t.gather(x, places, axis, 0), _t.cast(which, out_idx), _t.cast(counts, out_idx))


def UniqueV2(x, axis, out_idx="int32", name=None):
    """The same without how often each comes."""
    return _Unique(*UniqueWithCountsV2(x, axis, out_idx)[:2])


def ImageProjectiveTransformV3(images, transforms, output_shape, fill_value, interpolation, fill_mode="CONSTANT", name=None):
    """Images as they look through projections: for each place of the result, eight numbers say where in the image it is looked up."""
    images, projection = _t.to_tensor(images, None, None), _t.cast(_t.to_tensor(transforms, None, None), "float32")
    height, width = (int(n) for n in output_shape)
    x = _t.reshape(_t.count(0, 1, [width], "float32"), [1, 1, width])
    y = _t.reshape(_t.count(0, 1, [height], "float32"), [1, height, 1])
    a, b, c, d, e, f, g, h = (_t.reshape(projection[:, i], [-1, 1, 1]) for i in range(8))
    below = g * x + h * y + 1.0
    safe = _t.where_(below == 0, _t.ones_like(below), below)
    at = (d * x + e * y + f) / safe, (a * x + b * y + c) / safe
    at = [_mapped(fill_mode, place, length) for place, length in zip(at, images.lengths[1:3])]
    if interpolation == "NEAREST":
        made = _read(images, *(_t.Op("round", "round", ["x"])(place) for place in at), fill_value)
    elif interpolation == "BILINEAR":
        made = _between(images, *at, fill_value)
    else:
        raise ValueError(f"interpolation is 'NEAREST' or 'BILINEAR', not {interpolation!r}")
    outside = _t.expand_dims(_t.broadcast_to(below == 0, [*_lengths_of(at[0])[:1], height, width]), -1)
    made = _t.where_(outside, _t.to_tensor(fill_value, None, made.dtype), made)
    return made if made.dtype == images.dtype else _t.cast(made, images.dtype)


def _mapped(mode, place, length):
    """Places outside of an axis, brought inside as the mode says."""
    floor = _t.Op("floor", "floor", ["x"])
    if mode == "CONSTANT":
        return place
    if mode == "REFLECT":
        turn = 2.0 * length
        place = place - floor(place / turn) * turn
        place = _t.where_(place >= length, turn - place - 1.0, place)
    elif mode == "WRAP":
        place = place - floor(place / length) * float(length)
    elif mode != "NEAREST":
        raise ValueError(f"fill_mode is 'CONSTANT', 'REFLECT', 'WRAP' or 'NEAREST', not {mode!r}")
    return _t.clip(place, *(_t.to_tensor(float(n), "float32", None) for n in (0, length - 1)))


def _read(images, y, x, fill_value):
    """The elements at whole places; the fill value outside."""
    high, wide, channels = images.lengths[1:]
    batch, (rows, columns) = _lengths_of(images)[0], y.lengths[1:]
    both = _t.Op("logical_and", "logical_and", ["x", "y"])
    inside = both(both(y >= 0, y <= high - 1), both(x >= 0, x <= wide - 1))
    places = _t.where_(inside, y * float(wide) + x, _t.zeros_like(x)) if wide * high < 2**24 else _t.where_(
        inside, _t.cast(y, "float64") * float(wide) + _t.cast(x, "float64"), _t.cast(_t.zeros_like(x), "float64"))
    places = _t.broadcast_to(_t.reshape(_t.cast(places, "int32"), [-1, rows * columns]), [batch, rows * columns])
    flat = _t.reshape(images, [batch, high * wide, channels])
    made = _t.reshape(_t.gather(flat, places, 1, 1), [batch, rows, columns, channels])
    return _t.where_(_t.expand_dims(inside, -1), made, _t.cast(_t.to_tensor(fill_value, None, None), images.dtype))


def _between(images, y, x, fill_value):
    """The elements between places, weighted by how near they are."""
    images = images if images.dtype.is_floating else _t.cast(images, "float32")
    floor = _t.Op("floor", "floor", ["x"])
    top, left = floor(y), floor(x)
    down, right = (_t.cast(_t.expand_dims(part, -1), images.dtype) for part in (y - top, x - left))
    upper = _read(images, top, left, fill_value) * (1.0 - right) + _read(images, top, left + 1.0, fill_value) * right
    lower = _read(images, top + 1.0, left, fill_value) * (1.0 - right) + _read(images, top + 1.0, left + 1.0, fill_value) * right
    return upper * (1.0 - down) + lower * down


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
