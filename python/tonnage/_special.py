"""Functions of ``tf.math`` beyond the table: of bits, of permutations, and what complex numbers have; there are real ones alone."""

from . import _tonnage as _t
from ._array import broadcast_static_shape
from ._complex import Complex

# Chebyshev-like polynomials for the modified Bessel function of order 0: up to 3.75 in (x / 3.75)^2, beyond it in 3.75 / x, after
# Abramowitz and Stegun 9.8.1 and 9.8.2. Their errors are below 2e-7.
_I0_SMALL = (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813)
_I0_LARGE = (0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537, -0.01647633, 0.00392377)

_BITS = {2: "int16", 4: "int32", 8: "int64"}


def real(input, name=None):
    """The real part: of real numbers the tensor itself."""
    return input.real if isinstance(input, Complex) else _t.to_tensor(input, None, None)


def conj(x, name=None):
    """The complex conjugate: of real numbers the tensor itself."""
    return Complex(x.real, -x.imag) if isinstance(x, Complex) else _t.to_tensor(x, None, None)


def imag(input, name=None):
    """The imaginary part: of real numbers zeros."""
    return input.imag if isinstance(input, Complex) else _t.zeros_like(input)


def angle(input, name=None):
    """The angle of numbers in the complex plane: 0, or pi for negative ones.

    >>> tf.math.angle([1.0, -1.0]).numpy().round(4).tolist()
    [0.0, 3.1416]
    """
    from math import pi

    x = _t.to_tensor(input, None, None)
    x = x if x.dtype.is_floating else _t.cast(x, "float32")
    return _t.where_(x < 0, _t.to_tensor(pi, x.dtype, None), _t.zeros_like(x))


def _horner(coefficients, x):
    made = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        made = made * x + c
    return made


def bessel_i0(x, name=None):
    """The modified Bessel function of order 0, to about single precision.

    >>> round(float(tf.math.bessel_i0(1.0)), 4)
    1.2661
    """
    x = abs(_t.to_tensor(x, None, None))
    near = x <= 3.75
    ratio = _t.where_(near, x / 3.75, _t.ones_like(x))
    far = _t.where_(near, _t.ones_like(x), 3.75 / _t.where_(near, _t.ones_like(x), x))
    exp, rsqrt = _t.Op("exp", "exp", ["x"]), _t.Op("rsqrt", "rsqrt", ["x"])
    beyond = exp(x) * rsqrt(_t.where_(near, _t.ones_like(x), x)) * _horner(_I0_LARGE, far)
    return _t.where_(near, _horner(_I0_SMALL, ratio * ratio), beyond)


def nextafter(x1, x2, name=None):
    """The next number from ``x1`` on towards ``x2``.

    >>> float(tf.math.nextafter(1.0, 2.0)) - 1.0
    1.1920928955078125e-07
    """
    x1 = _t.to_tensor(x1, None, None)
    x2 = _t.to_tensor(x2, None, x1.dtype)
    shape = broadcast_static_shape(x1.shape, x2.shape)
    x1, x2 = (_t.broadcast_to(x, shape) for x in (x1, x2))
    kind = _BITS[x1.dtype.size]
    bits, one = _t.bitcast(x1, kind), _t.to_tensor(1, kind, None)
    # Away from zero the bits, as an integer, grow with the number; at zero it is the smallest number of the sign of the other.
    away = (x2 > x1) == (x1 > 0)
    moved = _t.where_(away, bits + one, bits - one)
    tiny = _t.bitcast(_t.broadcast_to(one, shape), x1.dtype)
    from_zero = _t.where_(x2 > x1, tiny, -tiny)
    made = _t.where_(x1 == 0, from_zero, _t.bitcast(moved, x1.dtype))
    made = _t.where_(x1 == x2, x2, made)
    return _t.where_(x1 != x1, x1, _t.where_(x2 != x2, x2, made))


def invert_permutation(x, name=None):
    """The permutation that undoes one.

    >>> tf.math.invert_permutation([2, 0, 1]).numpy().tolist()
    [1, 2, 0]
    """
    x = _t.to_tensor(x, None, None)
    return _t.cast(_t.argsort(x, 0, False), x.dtype)
