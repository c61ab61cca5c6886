"""``tf.signal``: Fourier transforms of real signals, and windows.

There are no complex dtypes: a spectrum is a pair of tensors, its real and its imaginary part.
"""

import math as _math

from . import _tonnage as _t
from ._shape import _lengths_of


def rfft(input_tensor, fft_length=None, name=None):
    """The spectrum of a real signal along the last axis, as its real and its imaginary part."""
    if fft_length is not None:
        input_tensor = _cut(_vectors("rfft", input_tensor), int(_last(fft_length)))
    return _t.rfft(input_tensor, -1)


def irfft(real, imag, fft_length=None, name=None):
    """The real signal of a spectrum along the last axis; of a spectrum that is cut, or padded with zeros, where a length is given."""
    real = _vectors("irfft", real)
    if fft_length is None:
        return _t.irfft(real, imag, [(_lengths_of(real)[-1] - 1) * 2], -1)
    length = int(_last(fft_length))
    real, imag = (_cut(_vectors("irfft", part), length // 2 + 1) for part in (real, imag))
    return _t.irfft(real, imag, [length], -1)


def fft(real, imag, name=None):
    """The spectrum of a complex signal along the last axis, in two parts as the signal is."""
    return _t.fft(real, imag, -1)


def ifft(real, imag, name=None):
    """The complex signal of a spectrum along the last axis, in two parts as the spectrum is."""
    return _t.ifft(real, imag, -1)


def _last(value):
    return value[-1] if isinstance(value, (list, tuple)) else value


def _vectors(what, x):
    """A tensor with a last axis to go along."""
    x = _t.to_tensor(x, None, None)
    if not x.ndim:
        raise ValueError(f"{what}: a signal along an axis is needed, not a scalar")
    return x


def _cut(x, length):
    have = x.lengths[-1] or 0  # where it is open there may be nothing
    if have < length:
        x = _t.pad(x, [[0, 0]] * (x.ndim - 1) + [[0, length - have]], 0)
    return x[..., :length]


def hann_window(window_length, periodic=True, dtype="float32", name=None):
    """The Hann window."""
    return _cosines(window_length, periodic, dtype, 0.5, 0.5)


def hamming_window(window_length, periodic=True, dtype="float32", name=None):
    """The Hamming window."""
    return _cosines(window_length, periodic, dtype, 0.54, 0.46)


def _cosines(length, periodic, dtype, a, b):
    length = int(length)
    if length in (0, 1):
        return _t.fill([length], 1, dtype)
    steps = length if periodic else length - 1
    angles = _t.count(0, 1, [length], dtype) * (2 * _math.pi / steps)
    from .math import cos  # noqa: F401 (of the table)

    return a - b * cos(angles)


def frame(signal, frame_length, frame_step, pad_end=False, pad_value=0, axis=-1, name=None):
    """Overlapping pieces of a signal along its last axis."""
    signal = _vectors("frame", signal)
    if axis not in (-1, signal.ndim - 1):
        raise NotImplementedError("frame: along the last axis; use tf.transpose for another one")
    length, step = int(frame_length), int(frame_step)
    if length < 0 or step < 1:
        raise ValueError(f"frame: a length of at least 0 and a step of at least 1 are needed, not {length} and {step}")
    # A frame starts at every step: of the signal, or of what is left of it behind a whole frame. Slices count them, as they know
    # lengths that are open.
    if pad_end:
        starting = signal[..., ::step]
        signal = _t.pad(signal, [[0, 0]] * (signal.ndim - 1) + [[0, max(0, length - 1)]], pad_value)
    elif length:
        starting = signal[..., length - 1::step]
    else:
        starting = _t.pad(signal, [[0, 0]] * (signal.ndim - 1) + [[0, 1]], 0)[..., ::step]
    starts = _t.expand_dims(_t.count(0, step, _lengths_of(starting)[-1:], "int32"), 1)
    places = starts + _t.count(0, 1, [length], "int32")
    return _t.gather(signal, places, signal.ndim - 1, 0)


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
