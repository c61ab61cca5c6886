"""TensorFlow's namespace with some of its functions written another way: by their definition, where TensorFlow's own way
loses digits that the inputs have, with their limits, where it says NaN, and with all numbers in their place, where it has
none for NaN, drops it, takes subnormal numbers for zeros, or zeros for positive ones. And ``linspace``, which takes no number
beside a tensor of float64, and so would have no truth."""

import numpy as np
import tensorflow


def _gelu(x):
    """Without the constants of float32 that TensorFlow's has in float64, and without the difference 1 + erf."""
    made = 0.5 * x * tensorflow.math.erfc(-x * tensorflow.constant(np.sqrt(0.5), x.dtype))
    return _with_limits(x, made, {-np.inf: -0.0})


def _erfinv(x):
    """TensorFlow's is the quantile of (1 + x) / 2, which has few digits of an x near 0, or of its distance from 1; a step of
    Newton's brings them back."""
    y = tensorflow.math.erfinv(x)
    far = tensorflow.sign(x) * (1 - tensorflow.abs(x) - tensorflow.math.erfc(tensorflow.abs(y)))
    over = tensorflow.where(tensorflow.abs(x) < 0.5, tensorflow.math.erf(y) - x, far)
    step = over * tensorflow.exp(y * y) * tensorflow.constant(np.sqrt(np.pi) / 2, x.dtype)
    return tensorflow.where(tensorflow.math.is_finite(step), y - step, y)


def _batch_normalization(x, mean, variance, offset, scale, variance_epsilon):
    """TensorFlow's is x * inverse + (offset - mean * inverse), in which a small offset is lost."""
    return (x - mean) * (tensorflow.math.rsqrt(variance + variance_epsilon) * scale) + offset


def _cumulative_logsumexp(x, axis, exclusive, reverse):
    """One sum of powers for each place: the gradient of TensorFlow's is made of exp(x - result), which is off by the
    rounding of the result."""
    rows = tensorflow.experimental.numpy.moveaxis(x, axis, -1)
    at = np.arange(rows.shape[-1])
    first, last = (at[:, None], at) if reverse else (at, at[:, None])
    seen = (first < last) if exclusive else (first <= last)
    terms = tensorflow.where(seen, rows[..., tensorflow.newaxis, :], tensorflow.constant(-np.inf, x.dtype))
    return tensorflow.experimental.numpy.moveaxis(tensorflow.reduce_logsumexp(terms, axis=-1), -1, axis)


def _cast(x, dtype):
    """TensorFlow reads subnormal numbers as zeros, and so makes False of them; their bits are no zeros."""
    if dtype != "bool" or not x.dtype.is_floating:
        return tensorflow.cast(x, dtype)
    return _ordinal(x) != 0


def _ordinal(x):
    """Integers in the order of floats, 0 for both zeros: what is computed of subnormal numbers reads them as zeros, and their
    bits are none."""
    bits = tensorflow.bitcast(x, {2: "int16", 4: "int32", 8: "int64"}[x.dtype.size])
    size = tensorflow.bitwise.bitwise_and(bits, tensorflow.constant(bits.dtype.max, bits.dtype))
    return tensorflow.where(bits < 0, -size, size)


def _sign(x):
    """TensorFlow's drops the sign of a zero, and those of subnormal numbers."""
    if not x.dtype.is_floating:
        return tensorflow.sign(x)
    places = _ordinal(x)
    return tensorflow.where((places == 0) | tensorflow.math.is_nan(x), x, tensorflow.cast(tensorflow.sign(places), x.dtype))


def _ndtri(x):
    """TensorFlow reads subnormal numbers as zeros, whose quantile is infinite; float64 has room for those of float32."""
    made = tensorflow.math.ndtri(x)
    if x.dtype != tensorflow.float32:
        return made
    places = _ordinal(x)
    subnormal = (places != 0) & (tensorflow.abs(places) < 1 << 23)
    wide = tensorflow.math.ndtri(tensorflow.cast(places, "float64") * 2.0**-149)
    return tensorflow.where(subnormal, tensorflow.cast(wide, x.dtype), made)


def _extreme_of_places(scatter, neutral):
    """TensorFlow drops NaN among the rows, and keeps one that is there."""

    def made(x, places, rows):
        if not x.dtype.is_floating:
            return scatter(x, places, rows)
        nan = tensorflow.tensor_scatter_nd_max(
            tensorflow.cast(tensorflow.math.is_nan(x), "int32"), places, tensorflow.cast(tensorflow.math.is_nan(rows), "int32"))
        rows = tensorflow.where(tensorflow.math.is_nan(rows), tensorflow.constant(neutral, x.dtype), rows)
        return tensorflow.where(nan > 0, tensorflow.constant(np.nan, x.dtype), scatter(x, places, rows))

    return made


def _order(rows, direction):
    """The places of the last axis in order, NaN as the largest number: TensorFlow leaves it anywhere, and what it stands
    between unsorted. Stable: first by the numbers, then by what is NaN."""
    nan = tensorflow.math.is_nan(rows)
    numbers = tensorflow.where(nan, tensorflow.zeros_like(rows), rows)
    first = tensorflow.argsort(_ordinal(numbers), direction=direction, stable=True)
    second = tensorflow.argsort(tensorflow.cast(_at(nan, first), "int32"), direction=direction, stable=True)
    return _at(first, second)


def _at(rows, places):
    return tensorflow.gather(rows, places, axis=-1, batch_dims=places.shape.rank - 1)


def _argsort(x, axis, direction, stable):
    if not x.dtype.is_floating:
        return tensorflow.argsort(x, axis, direction, stable)
    rows = tensorflow.experimental.numpy.moveaxis(x, axis, -1)
    return tensorflow.experimental.numpy.moveaxis(_order(rows, direction), -1, axis)


def _sort(x, axis=-1, direction="ASCENDING"):
    if not x.dtype.is_floating:
        return tensorflow.sort(x, axis, direction)
    rows = tensorflow.experimental.numpy.moveaxis(x, axis, -1)
    return tensorflow.experimental.numpy.moveaxis(_at(rows, _order(rows, direction)), -1, axis)


def _top_k(x, k):
    if not x.dtype.is_floating:
        return tensorflow.math.top_k(x, k)
    places = _order(x, "DESCENDING")[..., :k]
    return _at(x, places), places


def _with_limits(x, made, limits):
    """A function's values, with others where its argument is one of those."""
    for at, value in limits.items():
        made = tensorflow.where(x == at, tensorflow.constant(value, x.dtype), made)
    return made


def _limited(function, limits):
    return lambda x: _with_limits(x, function(x), limits)


class _Namespace:
    def __init__(self, module, replaced):
        self._module = module
        self.__dict__.update(replaced)

    def __getattr__(self, name):
        return getattr(self._module, name)


_math = _Namespace(tensorflow.math, {
    "erf": _limited(tensorflow.math.erf, {-np.inf: -1.0, np.inf: 1.0}),
    "digamma": _limited(tensorflow.math.digamma, {0.0: -np.inf}),
    "erfinv": _erfinv,
    "sign": _sign,
    "ndtri": _ndtri,
    "cumulative_logsumexp": _cumulative_logsumexp,
    "top_k": _top_k,
})
_nn = _Namespace(tensorflow.nn, {
    "gelu": _gelu,
    "silu": _limited(tensorflow.nn.silu, {-np.inf: -0.0}),
    "softsign": _limited(tensorflow.nn.softsign, {-np.inf: -1.0, np.inf: 1.0}),
    "batch_normalization": _batch_normalization,
})


def _linspace(start, stop, num):
    stop = tensorflow.convert_to_tensor(stop)
    return tensorflow.linspace(tensorflow.cast(start, stop.dtype), stop, num)


NAMESPACE = _Namespace(tensorflow, {
    "math": _math, "nn": _nn, "linspace": _linspace, "cast": _cast, "sort": _sort, "argsort": _argsort, "sign": _sign,
    "tensor_scatter_nd_max": _extreme_of_places(tensorflow.tensor_scatter_nd_max, -np.inf),
    "tensor_scatter_nd_min": _extreme_of_places(tensorflow.tensor_scatter_nd_min, np.inf),
})
# The ops of programs whose functions are written another way.
OPS = {"erf", "digamma", "erfinv", "cumulative_logsumexp", "gelu", "silu", "softsign", "normalized", "linspace", "cast", "sort",
       "argsort", "top_k", "sign", "tensor_scatter", "ndtri"}
