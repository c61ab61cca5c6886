"""``tf.math``: elementwise ops from the table, folds along axes, and the rest."""

from collections import namedtuple as _namedtuple

from . import _tonnage as _t
from ._array import cast, convert_to_tensor, size as _size  # noqa: F401
from ._index import argsort  # noqa: F401
from ._names import MATH as _MATH, made as _made
from ._segments import (  # noqa: F401
    bincount, confusion_matrix, segment_max, segment_mean, segment_min, segment_prod, segment_sum, unsorted_segment_max,
    unsorted_segment_mean, unsorted_segment_min, unsorted_segment_prod, unsorted_segment_sum,
)

from ._special import angle, bessel_i0, conj, imag, invert_permutation, nextafter, real  # noqa: F401

globals().update(_made(_MATH))
_ops = _made(_MATH)


def divide(x, y, name=None):
    """``x / y`` as Python divides: integers give floats."""
    return _t.to_tensor(x, None, None) / y


def truediv(x, y, name=None):
    """``x / y`` as Python divides: integers give floats."""
    return divide(x, y)


def equal(x, y, name=None):
    """Whether elements are the same."""
    return _t.to_tensor(x, None, None) == y


def not_equal(x, y, name=None):
    """Whether elements differ."""
    return _t.to_tensor(x, None, None) != y


def erfinv(x, name=None):
    """The number whose ``erf`` is ``x``: infinite at -1 and 1, NaN beyond.

    Halley's steps from a guess of two digits, on ``erfc`` where ``x`` is near 1, so that the last bits are right there
    too. Gradients go through the steps, which end where those of the inverse are.

    >>> float(tf.math.erfinv(tf.math.erf(tf.constant(0.5, tf.float64))))
    0.5
    """
    x = _t.to_tensor(x, None, None)
    if not x.dtype.is_floating:
        raise TypeError(f"erfinv: expected a floating point type, got {x.dtype!r}")
    return _t.erfinv(x)


def cumulative_logsumexp(x, axis=0, exclusive=False, reverse=False, name=None):
    """The logarithm of running sums of exponentials along an axis, without overflow. Sums are carried relative to the largest
    element so far, so that rounding does not add up.

    >>> tf.exp(tf.math.cumulative_logsumexp([0.0, 0.0])).numpy().tolist()
    [1.0, 2.0]
    """
    x = _t.to_tensor(x, None, None)
    if not -x.ndim <= int(axis) < x.ndim:
        raise ValueError(f"cumulative_logsumexp: there is no axis {axis} in a tensor of rank {x.ndim}")
    return _t.cumulative_logsumexp(x, int(axis), bool(exclusive), bool(reverse))


def zero_fraction(value, name=None):
    """The share of elements that are 0.

    >>> float(tf.math.zero_fraction([0, 1, 2, 0]))
    0.5
    """
    value = _t.to_tensor(value, None, None)
    return _t.reduce_mean(_t.cast(value == 0, "float32"), None, False)


def ndtri(x, name=None):
    """The quantile of the standard normal distribution: 0 has minus infinity, 1 infinity.

    >>> float(tf.math.ndtri(tf.constant(0.5)))
    0.0
    """
    x = _t.to_tensor(x, None, None)
    if not x.dtype.is_floating:
        raise TypeError(f"ndtri: expected a floating point type, got {x.dtype!r}")
    return _t.ndtri(x)


def _fold(name, doc):
    fold = getattr(_t, name)

    same = name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min")

    def folded(input_tensor, axis=None, keepdims=False, name=None):
        if same and axis is None and type(input_tensor) in (int, float):
            return convert_to_tensor(input_tensor)  # of a number it is the number, which stays known while a function is traced
        return fold(input_tensor, axis, bool(keepdims))

    folded.__name__ = folded.__qualname__ = name
    folded.__doc__ = doc + " along axes; along all where none is given."
    return folded


reduce_sum = _fold("reduce_sum", "The sum")
reduce_prod = _fold("reduce_prod", "The product")
reduce_max = _fold("reduce_max", "The largest element")
reduce_min = _fold("reduce_min", "The smallest element")
reduce_any = _fold("reduce_any", "Whether one is true")
reduce_all = _fold("reduce_all", "Whether all are true")
reduce_logsumexp = _fold("reduce_logsumexp", "The logarithm of the sum of exponentials")
reduce_variance = _fold("reduce_variance", "The variance")
reduce_std = _fold("reduce_std", "The standard deviation")


def reduce_mean(input_tensor, axis=None, keepdims=False, name=None):
    """The mean along axes; along all where none is given. Of integers, cut off, as in TensorFlow."""
    x = _t.to_tensor(input_tensor, None, None)
    if x.dtype.is_floating:
        return _t.reduce_mean(x, axis, bool(keepdims))
    if not x.dtype.is_integer:
        raise TypeError(f"reduce_mean: there is no mean of {x.dtype!r}; use `tf.cast` to a floating point type first")
    if x.dtype.size < 8:
        return _t.cast(_t.reduce_mean(_t.cast(x, "float64"), axis, bool(keepdims)), x.dtype)
    # Sums of 64 bits have more digits than a float, and wrap around where they overflow.
    total = _t.reduce_sum(x, axis, bool(keepdims))
    count = _t.cast(_size(x, "int64") // _size(total, "int64"), x.dtype)
    down = total // count
    return down + _t.cast((total < 0) & (down * count != total), x.dtype)


def reduce_euclidean_norm(input_tensor, axis=None, keepdims=False, name=None):
    """The root of the sum of squares along axes."""
    return _t.norm(input_tensor, axis, bool(keepdims))


def count_nonzero(input, axis=None, keepdims=None, dtype="int64", name=None):
    """How many elements are not zero along axes."""
    return cast(_t.count_nonzero(input, axis, bool(keepdims)), dtype)


def argmax(input, axis=None, output_type="int64", name=None):
    """Where the largest element is along an axis."""
    return cast(_t.argmax(input, 0 if axis is None else int(axis)), output_type)


def argmin(input, axis=None, output_type="int64", name=None):
    """Where the smallest element is along an axis."""
    return cast(_t.argmin(input, 0 if axis is None else int(axis)), output_type)


def cumsum(x, axis=0, exclusive=False, reverse=False, name=None):
    """Sums up to each element along an axis."""
    return _t.cumsum(x, int(axis), exclusive, reverse)


def cumprod(x, axis=0, exclusive=False, reverse=False, name=None):
    """Products up to each element along an axis."""
    return _t.cumprod(x, int(axis), exclusive, reverse)


def add_n(inputs, name=None):
    """The sum of several tensors."""
    inputs = [inputs] if isinstance(inputs, (_t.Tensor, _t.Variable)) else list(inputs)
    if not inputs:
        raise ValueError("Inputs must be a list or tuple with at least one tensor")
    total = _t.to_tensor(inputs[0], None, None)
    for more in inputs[1:]:
        more = _t.to_tensor(more, None, total.dtype)
        if not total.shape.is_compatible_with(more.shape):
            raise ValueError(f"add_n: shapes must be equal, and {total.shape} and {more.shape} are not")
        total = total + more
    return total


def accumulate_n(inputs, shape=None, tensor_dtype=None, name=None):
    """The sum of several tensors."""
    return add_n(inputs)


def scalar_mul(scalar, x, name=None):
    """A number times a tensor."""
    return _t.to_tensor(scalar, None, getattr(x, "dtype", None)) * x


def _both(x, y):
    """Two tensors of one dtype: a plain number takes that of the other side."""
    x = _t.to_tensor(x, None, getattr(y, "dtype", None))
    return x, _t.to_tensor(y, None, x.dtype)


def _no_nan(x, y):
    return _t.where_(y == 0, _t.zeros_like(y), x * y)


def multiply_no_nan(x, y, name=None):
    """``x * y``, zero where ``y`` is, whatever ``x``. The slope along ``y`` is ``x`` there too."""
    from ._gradient import custom_gradient

    x, y = _both(x, y)
    if list(x.shape) != list(y.shape):
        # The gradients of the sums fold what was broadcast.
        x, y = x + _t.zeros_like(y), y + _t.zeros_like(x)
    return custom_gradient(lambda x, y: (_no_nan(x, y), lambda dy: (_no_nan(dy, y), _no_nan(x, dy))))(x, y)


def xdivy(x, y, name=None):
    """``x / y``, zero where ``x`` is; so are its slopes."""
    return _t.xdivy(*_both(x, y))


def xlog1py(x, y, name=None):
    """``x * log1p(y)``, zero where ``x`` is; so are its slopes."""
    return _t.xlog1py(*_both(x, y))


def log_sigmoid(x, name=None):
    """The logarithm of the sigmoid."""
    return -_ops["softplus"](-_t.to_tensor(x, None, None))


def polygamma(a, x, name=None):
    """Derivatives of digamma; the order is a plain number here."""
    return _t.polygamma(x, int(a))


def lbeta(x, name=None):
    """The logarithm of the beta function along the last axis."""
    return _t.lbeta(x)


_TopK = _namedtuple("TopKV2", ["values", "indices"])


def top_k(input, k=1, sorted=True, index_type="int32", name=None):
    """The largest elements along the last axis, and where they are."""
    values, indices = _t.top_k(input, int(k))
    return _TopK(values, cast(indices, index_type))


def in_top_k(targets, predictions, k, name=None):
    """Whether a target is among the ``k`` largest predictions: not where there is none for it, or not all are finite.

    >>> tf.math.in_top_k([1, 0, 7], [[0.1, 0.9], [0.1, 0.9], [0.1, 0.9]], 1).numpy().tolist()
    [True, False, False]
    """
    predictions, targets = _t.to_tensor(predictions, None, None), _t.to_tensor(targets, None, None)
    both = _ops["logical_and"]
    known = both(targets >= 0, targets < _t.shape_of(predictions, targets.dtype)[-1])
    own = _t.take_along_axis(predictions, _t.expand_dims(_t.where_(known, targets, _t.zeros_like(targets)), -1), -1)
    larger = _t.count_nonzero(predictions > own, -1, False)
    among = larger < _t.to_tensor(int(k), None, larger.dtype)
    return both(both(among, known), _t.reduce_all(_ops["is_finite"](predictions), -1, False))


def l2_normalize(x, axis=None, epsilon=1e-12, name=None):
    """A tensor whose norm along an axis is 1."""
    x = _t.to_tensor(x, None, None)
    if isinstance(axis, int):
        return _t.l2_normalize(x, axis, float(epsilon))
    squares = _t.reduce_sum(x * x, axis, True)
    return x * _ops["rsqrt"](_ops["maximum"](squares, float(epsilon)))


def softmax(logits, axis=-1, name=None):
    """Exponentials along an axis, scaled to a sum of 1."""
    return _t.softmax(logits, int(axis))


def log_softmax(logits, axis=-1, name=None):
    """The logarithm of the softmax."""
    return _t.log_softmax(logits, int(axis))


def clip_by_value(t, clip_value_min, clip_value_max, name=None):
    """Every element kept between two bounds."""
    t = _t.to_tensor(t, None, None)
    low, high = (_t.to_tensor(v, None, t.dtype) for v in (clip_value_min, clip_value_max))
    return _t.clip(t, low, high)


def clip_by_norm(t, clip_norm, axes=None, name=None):
    """A tensor scaled so that its norm is at most that."""
    t = _t.to_tensor(t, None, None)
    norm = _t.norm(t, axes, True)
    return t * clip_norm / _ops["maximum"](norm, _t.to_tensor(clip_norm, None, t.dtype))


def global_norm(t_list, name=None):
    """The norm of several tensors as one."""
    squares = [_t.reduce_sum(_ops["square"](t), None, False) for t in t_list if t is not None]
    return _ops["sqrt"](add_n(squares))


def clip_by_global_norm(t_list, clip_norm, use_norm=None, name=None):
    """Tensors scaled so that their norm as a whole is at most that; and the norm as it was."""
    given = [t for t in t_list if t is not None]
    if use_norm is None:
        *made, norm = _t.clip_by_global_norm(given, float(clip_norm))
    else:
        norm = _t.to_tensor(use_norm, None, None)
        scale = clip_norm / _ops["maximum"](norm, clip_norm)
        made = [_t.to_tensor(t, None, None) * scale for t in given]
    rest = iter(made)
    return [None if t is None else next(rest) for t in t_list], norm


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
