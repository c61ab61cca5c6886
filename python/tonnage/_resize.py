"""How much each element of a row has a part in each element of a row of another length."""

import math


def _cubic(x, b, c):
    """The family of cubic kernels of Mitchell and Netravali; Keys' are those of ``b = 0``."""
    x = abs(x)
    if x >= 2:
        return 0.0
    if x < 1:
        return ((12 - 9 * b - 6 * c) * x**3 + (-18 + 12 * b + 6 * c) * x**2 + (6 - 2 * b)) / 6
    return ((-b - 6 * c) * x**3 + (6 * b + 30 * c) * x**2 + (-12 * b - 48 * c) * x + (8 * b + 24 * c)) / 6


def _lanczos(radius):
    def kernel(x):
        if abs(x) >= radius:
            return 0.0
        if abs(x) < 1e-3:
            return 1.0
        return radius * math.sin(math.pi * x) * math.sin(math.pi * x / radius) / (math.pi * x) ** 2

    return kernel


# By name: how far a kernel reaches, and what it is.
_KERNELS = {
    "bilinear": (1.0, lambda x: max(0.0, 1.0 - abs(x))),
    "bicubic": (2.0, lambda x: _cubic(x, 0.0, 0.5)),
    "mitchellcubic": (2.0, lambda x: _cubic(x, 1 / 3, 1 / 3)),
    "lanczos3": (3.0, _lanczos(3.0)),
    "lanczos5": (5.0, _lanczos(5.0)),
    "gaussian": (1.5, lambda x: math.exp(-2.0 * x * x) if abs(x) < 1.5 else 0.0),
}


def weights(method, before, after, antialias):
    """A matrix of ``after`` rows: each is the weights of the ``before`` elements. Elements outside of the row have none."""
    if method == "area":
        return [_shares(i * before / after, (i + 1) * before / after, before) for i in range(after)]
    radius, kernel = _KERNELS[method]
    ratio = before / after
    wide = max(ratio, 1.0) if antialias else 1.0
    rows = []
    for i in range(after):
        middle, row = (i + 0.5) * ratio, [0.0] * before
        first, last = max(math.ceil(middle - radius * wide - 0.5), 0), min(math.floor(middle + radius * wide - 0.5), before - 1)
        for j in range(first, last + 1):
            row[j] = kernel((j + 0.5 - middle) / wide)
        total = sum(row)
        rows.append([w / total for w in row] if total else row)
    return rows


def _shares(start, end, count):
    """How much of an interval each element covers."""
    return [max(0.0, min(end, j + 1) - max(start, j)) / (end - start) for j in range(count)]
