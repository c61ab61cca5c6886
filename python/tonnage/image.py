"""``tf.image``: images in other sizes, colours and pieces. Channels come last; a batch axis may come first."""

from . import _tonnage as _t
from ._resize import weights as _weights
from ._shape import _lengths_of
from .errors import InvalidArgumentError as _InvalidArgumentError


class ResizeMethod:
    """How elements between those of an image are found."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


_METHODS = {value for name, value in vars(ResizeMethod).items() if name.isupper()}


def _batched(images, op):
    """What an op makes of a batch of images, for one image too."""
    images = _t.to_tensor(images, None, None)
    if images.ndim == 4:
        return op(images)
    if images.ndim != 3:
        raise ValueError(f"'images' must have either 3 or 4 dimensions, not {images.shape}")
    return _t.squeeze(op(_t.expand_dims(images, 0)), 0)


def resize(images, size, method="bilinear", preserve_aspect_ratio=False, antialias=False, name=None):
    """Images of another height and width. The result is float32, unless elements are taken as they are.

    >>> tf.image.resize([[[0.0], [1.0]]], [1, 4])[0, :, 0].numpy().tolist()
    [0.0, 0.25, 0.75, 1.0]
    """
    if method not in _METHODS:
        raise ValueError(f"'{method}' is not a valid ResizeMethod; there are {', '.join(sorted(_METHODS))}")
    wanted = [int(n) for n in size]
    if len(wanted) != 2 or min(wanted) < 0:
        raise ValueError(f"'size' must be a 1-D Tensor of 2 elements: new_height, new_width, not {size}")

    def resized(batch):
        height, width = batch.lengths[1:3]
        if None in (height, width):
            raise _InvalidArgumentError(None, None, f"resize: height and width must be known, but the shape is {batch.shape}")
        target = _kept(height, width, wanted) if preserve_aspect_ratio else wanted
        if [height, width] == target:
            return batch
        if method == ResizeMethod.NEAREST_NEIGHBOR:
            for axis, before, after in ((1, height, target[0]), (2, width, target[1])):
                places = [min(int((i + 0.5) * before / after), before - 1) for i in range(after)]
                batch = _t.gather(batch, _t.to_tensor(places, "int32", None), axis, 0)
            return batch
        made = _t.cast(batch, "float32")
        rows, columns = (_t.to_tensor(_weights(method, before, after, bool(antialias)), "float32", None)
                         for before, after in ((height, target[0]), (width, target[1])))
        made = made if height == target[0] else _t.einsum("ph,nhwc->npwc", [rows, made])
        return made if width == target[1] else _t.einsum("qw,nhwc->nhqc", [columns, made])

    return _batched(images, resized)


def _kept(height, width, wanted):
    """The largest size of the same proportions."""
    scale = min(wanted[0] / height, wanted[1] / width)
    return [round(scale * height), round(scale * width)]


def resize_with_pad(image, target_height, target_width, method="bilinear", antialias=False):
    """Images of another size and the same proportions, with zeros around."""
    height, width = int(target_height), int(target_width)

    def padded(batch):
        made = resize(batch, [height, width], method, True, antialias)
        up, left = (height - made.lengths[1]) // 2, (width - made.lengths[2]) // 2
        return _t.pad(made, [[0, 0], [up, height - made.lengths[1] - up], [left, width - made.lengths[2] - left], [0, 0]], 0)

    return _batched(image, padded)


def pad_to_bounding_box(image, offset_height, offset_width, target_height, target_width):
    """Images within larger ones: zeros around, so that they begin at an offset."""
    up, left, high, wide = (int(n) for n in (offset_height, offset_width, target_height, target_width))

    def padded(batch):
        below, right = high - up - batch.lengths[1], wide - left - batch.lengths[2]
        if min(up, left, below, right) < 0:
            raise ValueError(f"pad_to_bounding_box: images of shape {batch.shape} at {up}, {left} are not within {high} by {wide}")
        return _t.pad(batch, [[0, 0], [up, below], [left, right], [0, 0]], 0)

    return _batched(image, padded)


def crop_to_bounding_box(image, offset_height, offset_width, target_height, target_width):
    """Parts of images that begin at an offset."""
    up, left, high, wide = (int(n) for n in (offset_height, offset_width, target_height, target_width))

    def cropped(batch):
        if min(up, left) < 0 or min(high, wide) < 1 or up + high > batch.lengths[1] or left + wide > batch.lengths[2]:
            raise ValueError(f"crop_to_bounding_box: {high} by {wide} at {up}, {left} are not within images of shape {batch.shape}")
        return batch[:, up: up + high, left: left + wide, :]

    return _batched(image, cropped)


def rgb_to_grayscale(images, name=None):
    """Colours as shades of grey, in one channel."""
    images = _t.to_tensor(images, None, None)
    whole = images if images.dtype.is_floating else _t.cast(images, "float32") / images.dtype.max
    made = _t.reduce_sum(whole * _t.to_tensor([0.2989, 0.5870, 0.1140], None, whole.dtype), -1, True)
    return made if images.dtype.is_floating else _t.cast(made * (images.dtype.max + 0.5), images.dtype)


def _channels(images):
    images = _t.to_tensor(images, None, None)
    if not images.dtype.is_floating or images.lengths[-1] != 3:
        raise ValueError(f"images of floats with three channels are needed, not {images.dtype!r} of shape {images.shape}")
    return [images[..., i] for i in range(3)]


def rgb_to_hsv(images, name=None):
    """Red, green and blue as hue, saturation and value, all between 0 and 1.

    >>> tf.image.rgb_to_hsv([0.0, 1.0, 0.0]).numpy().round(4).tolist()
    [0.3333, 1.0, 1.0]
    """
    red, green, blue = _channels(images)
    value = _t.reduce_max(images, -1, False)
    reach = value - _t.reduce_min(images, -1, False)
    zero, one = _t.zeros_like(value), _t.ones_like(value)
    saturation = _t.where_(value > 0, reach / _t.where_(value > 0, value, one), zero)
    unit = one / (_t.where_(reach > 0, reach, one) * 6.0)
    hue = _t.where_(green == value, unit * (blue - red) + 2.0 / 6.0, unit * (red - green) + 4.0 / 6.0)
    hue = _t.where_(red == value, unit * (green - blue), hue)
    hue = _t.where_(reach > 0, hue, zero)
    return _t.stack([_t.where_(hue < 0, hue + 1.0, hue), saturation, value], -1)


def hsv_to_rgb(images, name=None):
    """Hue, saturation and value as red, green and blue, all between 0 and 1."""
    hue, saturation, value = _channels(images)
    at = hue * 6.0
    shades = abs(at - 3.0) - 1.0, 2.0 - abs(at - 2.0), 2.0 - abs(at - 4.0)
    low, high = _t.to_tensor(0.0, hue.dtype, None), _t.to_tensor(1.0, hue.dtype, None)
    return _t.stack([((1.0 - saturation) + saturation * _t.clip(shade, low, high)) * value for shade in shades], -1)


def sobel_edges(image):
    """How images change downwards and to the right, along a new last axis."""
    image = _t.to_tensor(image, None, None)
    padded = _t.pad_mirrored(image, [[0, 0], [1, 1], [1, 1], [0, 0]], False)
    high, wide = image.lengths[1:3]

    def moved(down, right):
        return padded[:, 1 + down: 1 + down + high, 1 + right: 1 + right + wide, :]

    down = sum(w * (moved(1, i) - moved(-1, i)) for w, i in ((1, -1), (2, 0), (1, 1)))
    right = sum(w * (moved(i, 1) - moved(i, -1)) for w, i in ((1, -1), (2, 0), (1, 1)))
    return _t.stack([down, right], -1)


def extract_patches(images, sizes, strides, rates, padding, name=None):
    """The windows of images, each as the channels of one place.

    >>> tf.image.extract_patches(tf.ones([1, 4, 4, 2]), [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID").shape
    TensorShape([1, 2, 2, 8])
    """
    images = _t.to_tensor(images, None, None)
    if any(outer != 1 for given in (sizes, strides, rates) for outer in (given[0], given[3])):
        raise ValueError("extract_patches: batch and channels are neither windowed nor strided")
    size, stride, rate = ([int(n) for n in given[1:3]] for given in (sizes, strides, rates))
    lengths, reach = images.lengths[1:3], [(k - 1) * r + 1 for k, r in zip(size, rate)]
    if padding.upper() == "SAME":
        counts = [-(-n // s) for n, s in zip(lengths, stride)]
        short = [max((c - 1) * s + k - n, 0) for c, s, k, n in zip(counts, stride, reach, lengths)]
        images = _t.pad(images, [[0, 0], *([n // 2, n - n // 2] for n in short), [0, 0]], 0)
    else:
        counts = [max((n - k) // s + 1, 0) for n, k, s in zip(lengths, reach, stride)]
    if size == stride and rate == [1, 1]:  # windows side by side: another view of the image
        batch, channels = _lengths_of(images)[0], images.lengths[3]
        whole = images[:, : counts[0] * size[0], : counts[1] * size[1], :]
        parts = _t.transpose(_t.reshape(whole, [batch, counts[0], size[0], counts[1], size[1], channels]), [0, 1, 3, 2, 4, 5])
        return _t.reshape(parts, [batch, *counts, size[0] * size[1] * channels])

    def along(i, axis):
        first = i * rate[axis]
        return slice(first, first + (counts[axis] - 1) * stride[axis] + 1, stride[axis])

    return _t.concat([images[:, along(i, 0), along(j, 1), :] for i in range(size[0]) for j in range(size[1])], -1)


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
