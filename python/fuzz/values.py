"""Arrays that programs start from, and when two results count as the same."""

import numpy as np

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["int32", "int64", "int8", "int16", "uint8", "uint16", "uint32", "uint64"]
DTYPES = FLOATS + INTEGERS + ["bool"]
EPSILON = {"float64": 2.3e-16, "float32": 1.2e-7, "float16": 1e-3, "bfloat16": 8e-3}
# The largest numbers.
MOST = {"float64": 1.79e308, "float32": 3.4e38, "float16": 65504.0, "bfloat16": 3.39e38}


def drawn(rng, shape, dtype, wild):
    """An array of a shape; a wild one has NaN, infinities, signed zeros and the ends of the range in it."""
    count = int(np.prod(shape, dtype=np.int64))
    if dtype == "bool":
        return np.array([rng.random() < 0.5 for _ in range(count)], bool).reshape(shape)
    if dtype in FLOATS:
        scale = rng.choice([0.5, 1.0, 3.0])
        made = np.array([round(rng.gauss(0, scale) * 64) / 64 for _ in range(count)], "float64")
        ends = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, -1e30, 65504.0, 1.0, -1.0]
        kept = "float64" if dtype == "float64" else "float32"
    else:
        low = 0 if dtype[0] == "u" else -9
        made = np.array([rng.randint(low, 9) for _ in range(count)], dtype)
        ends, kept = [np.iinfo(dtype).min, np.iinfo(dtype).max, 0, 1], dtype
    if wild:
        for at in range(count):
            if rng.random() < 0.12:
                made[at] = rng.choice(ends)
    return made.astype(kept).reshape(shape)


def tensor(tf, array, dtype):
    """An array as a tensor of a dtype, which NumPy may not have."""
    return tf.cast(tf.constant(array), getattr(tf, dtype))


def array(tf, made):
    """A tensor as an array that NumPy computes with."""
    if made.dtype == tf.bfloat16:
        made = tf.cast(made, tf.float32)
    return np.asarray(made.numpy())


def literal(array):
    """An array as Python text."""
    text = repr(array.tolist()).replace("nan", "np.nan").replace("inf", "np.inf")
    return f"np.array({text}, {array.dtype.name!r}).reshape({list(array.shape)})"


def difference(a, b, where):
    """Where two arrays differ, in words."""
    at = tuple(int(i) for i in np.argwhere(where)[0])
    return f"{a[at]!r} and {b[at]!r} at {list(at)}, {int(where.sum())} of {a.size} elements"


def bits_differ(a, b):
    """Where two arrays are not the same bits, in words, or ``None``. All NaN are the same."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}"
    if a.dtype.kind != "f":
        wrong = a != b
    else:
        wrong = ((a != b) & ~(np.isnan(a) & np.isnan(b))) | ((a == b) & (np.signbit(a) != np.signbit(b)))
    return difference(a, b, wrong) if wrong.any() else None


def apart(a, b, tolerance):
    """Where two arrays of floats and one shape are further apart than a tolerance: a mask. All NaN are the same."""
    with np.errstate(invalid="ignore", over="ignore"):
        return ~((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= tolerance))


def far_apart(a, b, tolerance):
    """Where two arrays are further apart than a tolerance (a number or an array), in words, or ``None``."""
    if a.shape != b.shape:
        return f"shapes {list(a.shape)} and {list(b.shape)}"
    if a.dtype.kind != "f":
        wrong = a != b
    else:
        a, b = a.astype("float64"), b.astype("float64")
        wrong = apart(a, b, tolerance)
    return difference(a, b, wrong) if wrong.any() else None
