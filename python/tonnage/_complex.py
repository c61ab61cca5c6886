"""Complex numbers as pairs: there are no complex dtypes, and of complex tensors only what Fourier transforms take and give."""

from typing import NamedTuple

from . import _tonnage as _t


class Complex(NamedTuple):
    """A complex tensor: its real and its imaginary part, of one shape."""

    real: _t.Tensor
    imag: _t.Tensor

    @property
    def shape(self):
        """The shape of both parts."""
        return self.real.shape


def complex(real, imag, name=None):
    """A complex tensor of its parts.

    >>> float(tf.math.imag(tf.complex(1.0, 2.0)))
    2.0
    """
    real = _t.to_tensor(real, None, None)
    return Complex(real, _t.to_tensor(imag, None, real.dtype))
