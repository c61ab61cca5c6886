"""``tf.signal``: Fourier transforms of real signals, and windows.

There are no complex dtypes: a spectrum is a pair of tensors, its real and its imaginary part.
"""

import math as _math

from . import _tonnage as _t


def rfft(input_tensor, fft_length=None, name=None):
    """The spectrum of a real signal along the last axis, as its real and its imaginary part."""
    if fft_length is not None:
        input_tensor = _cut(input_tensor, int(_last(fft_length)))
    return _t.rfft(input_tensor, -1)


def irfft(real, imag, fft_length=None, name=None):
    """The real signal of a spectrum along the last axis."""
    real = _t.to_tensor(real, None, None)
    length = 2 * (real.lengths[-1] - 1) if fft_length is None else int(_last(fft_length))
    return _t.irfft(real, imag, length, -1)


def fft(real, imag, name=None):
    """The spectrum of a complex signal along the last axis, in two parts as the signal is."""
    return _t.fft(real, imag, -1)


def ifft(real, imag, name=None):
    """The complex signal of a spectrum along the last axis, in two parts as the spectrum is."""
    return _t.ifft(real, imag, -1)


def _last(value):
    return value[-1] if isinstance(value, (list, tuple)) else value


def _cut(x, length):
    x = _t.to_tensor(x, None, None)
    have = x.lengths[-1]
    if have >= length:
        return x[..., :length]
    return _t.pad(x, [[0, 0]] * (x.ndim - 1) + [[0, length - have]], 0)


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
    signal = _t.to_tensor(signal, None, None)
    if axis not in (-1, signal.ndim - 1):
        raise NotImplementedError("frame: along the last axis; use tf.transpose for another one")
    length, step, have = int(frame_length), int(frame_step), signal.lengths[-1]
    if length < 0 or step < 1:
        raise ValueError(f"frame: a length of at least 0 and a step of at least 1 are needed, not {length} and {step}")
    if pad_end:
        count = -(-have // step)
        short = max(0, (count - 1) * step + length - have)
        signal = _t.pad(signal, [[0, 0]] * (signal.ndim - 1) + [[0, short]], pad_value)
    else:
        count = max(0, 1 + (have - length) // step)
    starts = _t.expand_dims(_t.count(0, step, [count], "int32"), 1)
    places = starts + _t.count(0, 1, [length], "int32")
    return _t.gather(signal, places, signal.ndim - 1, 0)


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
