"""Counts of numbers, and rows by the segments that they belong to, as they stand in ``tf.math``."""

from . import _tonnage as _t
from ._array import cast
from ._shape import _lengths_of
from .debugging import assert_less, assert_non_negative


def _end(numbers):
    """One more than the largest number; 0 where there are none."""
    numbers = _t.to_tensor(numbers, None, None)
    return int(_t.reduce_max(numbers, None, False)) + 1 if numbers.shape.num_elements() != 0 else 0


def bincount(arr, weights=None, minlength=None, maxlength=None, dtype="int32", name=None, axis=None, binary_output=False):
    """How often each number occurs; those from ``maxlength`` on are left out. With ``axis=-1`` in each row on its own, and with
    ``binary_output`` whether it occurs at all.

    >>> tf.math.bincount([0, 2, 2, 9], maxlength=3).numpy().tolist()
    [1, 0, 2]
    """
    arr = _t.to_tensor(arr, None, None)
    if axis not in (None, 0, -1):
        raise ValueError(f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported.")
    if axis == -1 and arr.ndim > 1:
        return _row_bincount(arr, weights, minlength, maxlength, dtype, binary_output)
    if binary_output:
        return cast(bincount(arr, None, minlength, maxlength) > 0, dtype)
    arr = _t.reshape(arr, [-1])
    bins = int(minlength or 0)
    # The data are read only where they decide how many bins there are.
    if maxlength is None or bins < int(maxlength):
        bins = max(bins, _end(arr))
    if weights is not None:
        weights = _t.reshape(weights, [-1])
        if None not in (sizes := {*arr.shape, *weights.shape}) and len(sizes) > 1:
            raise ValueError(f"bincount: {weights.shape[0]} weights for {arr.shape[0]} numbers")
    if maxlength is not None:
        bins = min(bins, int(maxlength))
        if not bins:
            return _t.fill([0], 0, dtype if weights is None else weights.dtype)
        counts = arr < bins
        arr = _t.where_(counts, arr, _t.zeros_like(arr))
        weights = _t.cast(counts, dtype) if weights is None else _t.where_(counts, weights, _t.zeros_like(weights))
    if weights is not None:
        return _t.segment_sum(weights, arr, bins)
    return cast(_t.bincount(arr, bins), dtype)


def _row_bincount(arr, weights, minlength, maxlength, dtype, binary):
    """How often each number occurs in each row: with the row before the number, the rows are one."""
    bins = int(minlength or 0)
    if maxlength is None or bins < int(maxlength):
        bins = max(bins, _end(arr))
    bins = bins if maxlength is None else min(bins, int(maxlength))
    count, length = _lengths_of(arr)
    dtype = dtype if weights is None else _t.to_tensor(weights, None, None).dtype
    given = _t.fill([count, length], 1, dtype) if weights is None else _t.to_tensor(weights, None, None)
    counts = arr < bins
    given = _t.where_(counts, given, _t.zeros_like(given))
    rows = _t.expand_dims(_t.cast(_t.count(0, 1, [count], arr.dtype), arr.dtype), 1) * bins
    places = _t.where_(counts, arr, _t.zeros_like(arr)) + rows
    made = _t.segment_sum(_t.reshape(given, [-1]), _t.reshape(places, [-1]), count * bins)
    made = _t.reshape(made, [count, bins])
    return cast(made > 0, dtype) if binary else made


def confusion_matrix(labels, predictions, num_classes=None, weights=None, dtype="int32", name=None):
    """How often each label met each prediction.

    >>> tf.math.confusion_matrix([0, 1, 1], [0, 0, 1]).numpy().tolist()
    [[1, 0], [1, 1]]
    """
    labels, predictions = _alike(cast(labels, "int64"), cast(predictions, "int64"))
    if num_classes is None:
        num_classes = max(_end(labels), _end(predictions))
    num_classes = int(num_classes)
    for what, numbers in (("labels", labels), ("predictions", predictions)):
        assert_non_negative(numbers, f"`{what}` contains negative values.")
        assert_less(numbers, num_classes, f"`{what}` out of bound")
    flat = labels * num_classes + predictions
    if weights is None:
        counts = _t.bincount(flat, num_classes ** 2)
    else:
        counts = _t.segment_sum(_t.reshape(weights, [-1]), flat, num_classes ** 2)
    return cast(_t.reshape(counts, [num_classes, num_classes]), dtype)


def _alike(labels, predictions):
    """Both as vectors; one of them may have a last axis of 1 that the other has not."""
    shapes = [list(x.shape) for x in (labels, predictions)]
    short, long = sorted(shapes, key=len)
    if len(long) == len(short) + 1 and long[-1] == 1:
        long = long[:-1]
    if len(short) != len(long) or any(a != b for a, b in zip(short, long) if None not in (a, b)):
        raise ValueError(f"confusion_matrix: labels of shape {labels.shape} and predictions of shape {predictions.shape}; "
                         "each label needs its prediction")
    return _t.reshape(labels, [-1]), _t.reshape(predictions, [-1])


def segment_sum(data, segment_ids, name=None):
    """Sums of rows by sorted segments."""
    return _t.segment_sum(data, segment_ids, _end(segment_ids))


def segment_mean(data, segment_ids, name=None):
    """Means of rows by sorted segments."""
    return _t.segment_mean(data, segment_ids, _end(segment_ids))


def segment_max(data, segment_ids, name=None):
    """Largest rows by sorted segments; 0 for one without rows."""
    return _or_zero(_t.segment_max, data, segment_ids)


def segment_min(data, segment_ids, name=None):
    """Smallest rows by sorted segments; 0 for one without rows."""
    return _or_zero(_t.segment_min, data, segment_ids)


def _or_zero(fold, data, ids):
    count = _end(ids)
    made = fold(data, ids, count)
    rows = _wide(_t.bincount(ids, count), made.ndim)
    return _t.where_(rows == 0, _t.zeros_like(made), made)


def _wide(x, rank):
    """With more axes of 1 at the end."""
    for _ in range(rank - x.ndim):
        x = _t.expand_dims(x, -1)
    return x


def unsorted_segment_sum(data, segment_ids, num_segments, name=None):
    """Sums of rows by segments. Rows of negative ones are left out.

    >>> tf.math.unsorted_segment_sum([1.0, 2.0, 4.0], [1, -1, 1], 2).numpy().tolist()
    [0.0, 5.0]
    """
    return _unsorted(_t.segment_sum, data, segment_ids, num_segments, 0)


def unsorted_segment_mean(data, segment_ids, num_segments, name=None):
    """Means of rows by segments; 0 for one without rows. Rows of negative ones are left out."""
    sums = unsorted_segment_sum(data, segment_ids, num_segments)
    rows = unsorted_segment_sum(_t.ones_like(segment_ids), segment_ids, num_segments)
    rows = _t.where_(rows == 0, _t.ones_like(rows), rows)
    return sums / _wide(_t.cast(rows, sums.dtype), sums.ndim)


def unsorted_segment_max(data, segment_ids, num_segments, name=None):
    """Largest rows by segments; the lowest number of the dtype for one without rows. Rows of negative ones are left out."""
    data = _t.to_tensor(data, None, None)
    lowest = _t.to_tensor(data.dtype.min, data.dtype, None)
    made = _unsorted(_t.segment_max, data, segment_ids, num_segments, lowest)
    return _t.where_(made < lowest, lowest, made) if data.dtype.is_floating else made


def unsorted_segment_min(data, segment_ids, num_segments, name=None):
    """Smallest rows by segments; the largest number of the dtype for one without rows. Rows of negative ones are left out."""
    data = _t.to_tensor(data, None, None)
    largest = _t.to_tensor(data.dtype.max, data.dtype, None)
    made = _unsorted(_t.segment_min, data, segment_ids, num_segments, largest)
    return _t.where_(made > largest, largest, made) if data.dtype.is_floating else made


def _unsorted(fold, data, ids, count, neutral):
    """Rows of negative segments go to the first one as a number that changes nothing there."""
    data, ids = _t.to_tensor(data, None, None), _t.to_tensor(ids, None, None)
    out = ids < 0
    if out.is_symbolic or bool(_t.reduce_any(out, None, False)):
        data = _t.where_(_wide(out, data.ndim), _t.to_tensor(neutral, data.dtype, None), data)
        ids = _t.where_(out, _t.zeros_like(ids), ids)
    return fold(data, ids, int(count))


def unsorted_segment_prod(data, segment_ids, num_segments, name=None):
    """The products of rows by their number; 1 where there are none. Rows are multiplied one after the other.

    >>> tf.math.unsorted_segment_prod([2, 3, 4], [0, 1, 0], 2).numpy().tolist()
    [8, 3]
    """
    data, ids = _t.to_tensor(data, None, None), _t.to_tensor(segment_ids, None, None)
    data = _t.reshape(data, [-1, *_lengths_of(data)[ids.ndim:]])
    start = _t.fill([int(num_segments), *_lengths_of(data)[1:]], 1, data.dtype)

    def step(state, row):
        value, at = row
        # What has no segment, by a negative number, is left out.
        here = _t.to_tensor(at >= 0, None, None)
        index = _t.reshape(_t.where_(here, at, _t.zeros_like(at)), [1, 1])
        before = _t.gather_nd(state, index, 0)
        after = _t.where_(here, before * value, before)
        return _t.scatter_nd_update(state, index, after), []

    return _t.scan(step, start, (data, _t.reshape(ids, [-1])), False, False)[0]


def segment_prod(data, segment_ids, name=None):
    """The products of rows by their number, which are in order."""
    ids = _t.to_tensor(segment_ids, None, None)
    return unsorted_segment_prod(data, ids, _end(ids))
