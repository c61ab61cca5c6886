"""``tf.signal``: Fourier transforms of real signals, and windows.

There are no complex dtypes: a spectrum is a pair of tensors, its real and its imaginary part, as ``tf.complex`` makes it.
"""

import math as _math

from . import _tonnage as _t
from ._complex import Complex as _Complex
from ._shape import _lengths_of


def rfft(input_tensor, fft_length=None, name=None):
    """The spectrum of a real signal along the last axis, as its real and its imaginary part."""
    if fft_length is not None:
        input_tensor = _cut(_vectors("rfft", input_tensor), int(_last(fft_length)))
    return _Complex(*_t.rfft(input_tensor, -1))


def _parts(real, imag):
    """The two parts of what is complex: given as one, or apart."""
    return real if isinstance(real, _Complex) else (real, imag)


def irfft(real, imag=None, fft_length=None, name=None):
    """The real signal of a spectrum along the last axis; of a spectrum that is cut, or padded with zeros, where a length is given. The
    spectrum is one argument, or its two parts are."""
    if isinstance(real, _Complex):
        fft_length, (real, imag) = imag if fft_length is None else fft_length, real
    real = _vectors("irfft", real)
    if fft_length is None:
        return _t.irfft(real, imag, [(_lengths_of(real)[-1] - 1) * 2], -1)
    length = int(_last(fft_length))
    real, imag = (_cut(_vectors("irfft", part), length // 2 + 1) for part in (real, imag))
    return _t.irfft(real, imag, [length], -1)


def fft(real, imag=None, name=None):
    """The spectrum of a complex signal along the last axis, in two parts as the signal is."""
    return _Complex(*_t.fft(*_parts(real, imag), -1))


def ifft(real, imag=None, name=None):
    """The complex signal of a spectrum along the last axis, in two parts as the spectrum is."""
    return _Complex(*_t.ifft(*_parts(real, imag), -1))


def fft2d(real, imag=None, name=None):
    """The spectrum of a complex image along its last two axes."""
    return _Complex(*_t.fft(*_t.fft(*_parts(real, imag), -1), -2))


def ifft2d(real, imag=None, name=None):
    """The complex image of a spectrum along its last two axes."""
    return _Complex(*_t.ifft(*_t.ifft(*_parts(real, imag), -1), -2))


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


def stft(signals, frame_length, frame_step, fft_length=None, window_fn=hann_window, pad_end=False, name=None):
    """The spectra of overlapping pieces of a signal."""
    pieces = frame(signals, frame_length, frame_step, pad_end)
    if window_fn is not None:
        pieces = pieces * window_fn(int(frame_length), dtype=pieces.dtype)
    return rfft(pieces, [_enclosing(frame_length) if fft_length is None else int(fft_length)])


def inverse_stft(stfts, frame_length, frame_step, fft_length=None, window_fn=hann_window, name=None):
    """The signal of spectra of overlapping pieces, which are added up. It is the one that they were made of if the window is that of
    :func:`inverse_stft_window_fn`."""
    length = int(frame_length)
    pieces = irfft(stfts, fft_length=[_enclosing(length) if fft_length is None else int(fft_length)])
    pieces = _cut(pieces, length)
    if window_fn is not None:
        pieces = pieces * window_fn(length, dtype=pieces.dtype)
    return overlap_and_add(pieces, frame_step)


def _enclosing(length):
    """The smallest power of two that is not less."""
    return 1 << max(0, int(length) - 1).bit_length()


def overlap_and_add(signal, frame_step, name=None):
    """The sum of pieces, each one a step further along: what :func:`frame` cut."""
    signal, step = _vectors("overlap_and_add", signal), int(frame_step)
    count, length = signal.lengths[-2:]
    if count is None or length is None:
        raise ValueError(f"overlap_and_add: the number of pieces and their length must be known, but the shape is {signal.shape}")
    # Cut into parts as long as a step, each piece is parts of as many others.
    parts = -(-length // step)
    whole = _cut(signal, parts * step)
    outer = _lengths_of(signal)[:-2]
    whole = _t.reshape(whole, [*outer, count, parts, step])
    zero = [[0, 0]] * len(outer)
    moved = [_t.pad(whole[..., i, :], [*zero, [i, parts - 1 - i], [0, 0]], 0) for i in range(parts)]
    total = moved[0]
    for part in moved[1:]:
        total = total + part
    return _cut(_t.reshape(total, [*outer, (count + parts - 1) * step]), (count - 1) * step + length)


def inverse_stft_window_fn(frame_step, forward_window_fn=hann_window, name=None):
    """The window for :func:`inverse_stft` that undoes the one of :func:`stft`."""
    step = int(frame_step)

    def inverse(frame_length, dtype="float32"):
        length = int(frame_length)
        window = forward_window_fn(length, dtype=dtype)
        overlaps = -(-length // step)
        squares = _t.reshape(_cut(window * window, overlaps * step), [overlaps, step])
        total = _t.reshape(_t.tile(_t.reduce_sum(squares, 0, True), [overlaps, 1]), [overlaps * step])
        return window / total[:length]

    return inverse


def kaiser_window(window_length, beta=12.0, dtype="float32", name=None):
    """The Kaiser window."""
    from ._special import bessel_i0
    from .math import maximum, sqrt  # of the table

    length = int(window_length)
    if length == 1:
        return _t.fill([1], 1, dtype)
    at = _t.count(0, 1, [length], dtype) * (2.0 / max(1, length - 1)) - 1.0
    beta = _t.to_tensor(beta, None, at.dtype)
    return bessel_i0(beta * sqrt(maximum(1.0 - at * at, 0.0))) / bessel_i0(beta)


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
