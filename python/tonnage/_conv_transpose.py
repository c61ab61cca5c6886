"""Transposed convolutions along one, two or three axes: the gradient of a convolution by its image."""

from . import _tonnage as _t
from ._shape import _lengths_of


def transposed(x, filters, lengths, strides, same, dilations):
    """An image of ``lengths`` of which a convolution would make ``x``; channels come last.

    Two axes and fewer are an op. Otherwise it is a convolution of ``x`` with zeros between its elements, by the filters turned around.
    """
    count = x.ndim - 2
    if count <= 2 and set(dilations) == {1}:
        if count == 2:
            return _t.conv2d_transpose(x, filters, lengths, strides, same)
        image, flat = _t.expand_dims(x, 1), _t.expand_dims(filters, 0)
        return _t.squeeze(_t.conv2d_transpose(image, flat, [1, *lengths], [1, *strides], same), 1)
    image = x
    for i in range(count):
        image = _spread(image, i + 1, strides[i])
    before, after = _around(x.lengths[1:-1], filters.lengths[:-2], lengths, strides, same, dilations)
    image = _t.pad(image, [[0, 0], *([max(b, 0), max(a, 0)] for b, a in zip(before, after)), [0, 0]], 0)
    if min(*before, *after) < 0:  # what was outside of the image
        inner = (slice(-b if b < 0 else None, a if a < 0 else None) for b, a in zip(before, after))
        image = image[(slice(None), *inner)]
    turned = _t.reverse(filters, list(range(count)))
    turned = _t.transpose(turned, [*range(count), count + 1, count])
    conv = {1: _t.conv1d, 2: _t.conv2d, 3: _t.conv3d}[count]
    return conv(image, turned, [1] * count, False, [], list(dilations), 1)


def _spread(x, axis, stride):
    """Zeros between the elements along an axis."""
    if stride == 1:
        return x
    lengths = _lengths_of(x)
    wide = _t.pad(_t.expand_dims(x, axis + 1), [[0, 0]] * (axis + 1) + [[0, stride - 1]] + [[0, 0]] * (x.ndim - axis - 1), 0)
    wide = _t.reshape(wide, [*lengths[:axis], lengths[axis] * stride, *lengths[axis + 1:]])
    return wide[(slice(None),) * axis + (slice(None, 1 - stride),)]


def _around(lengths, kernel, image, strides, same, dilations):
    """How many zeros go before and after each axis, so that what comes out is as long as the image."""
    before, after = [], []
    for n, k, wanted, stride, apart in zip(lengths, kernel, image, strides, dilations):
        reach = (k - 1) * apart
        padded = max((n - 1) * stride + reach + 1 - wanted, 0) // 2 if same else 0
        before.append(reach - padded)
        after.append(wanted + padded - (n - 1) * stride - 1)
    return before, after
