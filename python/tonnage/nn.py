"""``tf.nn``: activations, losses, convolutions, pooling, normalization."""

from . import _tonnage as _t
from ._names import NN, made
from .math import (  # noqa: F401
    in_top_k, l2_normalize, log_softmax, softmax, top_k,
)
from ._notices import ignores as _ignores

globals().update(made(NN))
_ops = made(NN)
_silu = _t.Op("silu", "silu", ["features"])


def leaky_relu(features, alpha=0.2, name=None):
    """The element, or ``alpha`` times it where it is negative."""
    return _t.leaky_relu(features, float(alpha))


def elu(features, alpha=1.0, name=None):
    """The element, or ``alpha * (exp(x) - 1)`` where it is negative."""
    return _t.elu(features, float(alpha))


def gelu(features, approximate=False, name=None):
    """The Gaussian error linear unit, exact unless told otherwise."""
    return (_gelu_tanh if approximate else _gelu)(features)


_gelu = _t.Op("gelu", "gelu", ["features"])
_gelu_tanh = _t.Op("gelu_tanh", "gelu", ["features"])


def silu(features, beta=1.0, name=None):
    """``x * sigmoid(beta * x)``."""
    if beta == 1.0:
        return _silu(features)
    features = _t.to_tensor(features, None, None)
    return features * _ops["sigmoid"](features * beta)


swish = silu


def crelu(features, axis=-1, name=None):
    """The positive part beside the negative part."""
    features = _t.to_tensor(features, None, None)
    return _t.concat([_ops["relu"](features), _ops["relu"](-features)], axis)


def bias_add(value, bias, data_format=None, name=None):
    """A bias for each channel."""
    value = _t.to_tensor(value, None, None)
    if data_format in ("NCHW", "NC"):
        bias = _t.reshape(bias, [-1] + [1] * (value.ndim - 2))
    return value + bias


def dropout(x, rate, noise_shape=None, seed=None, name=None):
    """Elements left out at a rate, the rest scaled up. Keeps a random key for the gradient, not a mask.

    >>> tf.nn.dropout(tf.ones([3]), rate=0.0).numpy().tolist()
    [1.0, 1.0, 1.0]
    """
    rate = float(rate)
    if noise_shape is None and seed is None:
        return _t.dropout(x, rate)
    if not 0 <= rate < 1:
        raise ValueError(f"dropout: the rate is at least 0 and below 1, not {rate}")
    # Some elements together, or a seed of their own: drawn here, as a recipe that takes no memory.
    x = _t.to_tensor(x, None, None)
    shape = x.lengths if noise_shape is None else [n if m is None else m for m, n in zip(noise_shape, x.lengths)]
    from .random import uniform

    kept = uniform(shape, dtype=x.dtype, seed=seed) >= rate
    return _t.where_(kept, x / (1 - rate), _t.zeros_like(x))


def softmax_cross_entropy_with_logits(labels, logits, axis=-1, name=None):
    """The cross entropy of a softmax with labels, one number a row. Makes no second copy of the probabilities."""
    logits = _t.to_tensor(logits, None, None)
    if axis not in (-1, logits.ndim - 1):
        order = [i for i in range(logits.ndim) if i != axis % logits.ndim] + [axis % logits.ndim]
        logits, labels = _t.transpose(logits, order), _t.transpose(labels, order)
    return _t.cross_entropy(logits, _t.to_tensor(labels, None, logits.dtype), 0.0)


def sparse_softmax_cross_entropy_with_logits(labels, logits, name=None):
    """The same with labels that are numbers of classes."""
    return _t.sparse_cross_entropy(logits, labels)


def sigmoid_cross_entropy_with_logits(labels=None, logits=None, name=None):
    """The cross entropy of a sigmoid with labels."""
    logits = _t.to_tensor(logits, None, None)
    return _t.sigmoid_cross_entropy(logits, _t.to_tensor(labels, None, logits.dtype))


def l2_loss(t, name=None):
    """Half of the sum of squares."""
    t = _t.to_tensor(t, None, None)
    return _t.reduce_sum(t * t, None, False) / 2


@_ignores("moments", "shift")
def moments(x, axes, shift=None, keepdims=False, name=None):
    """Mean and variance along axes."""
    return _t.reduce_mean(x, axes, bool(keepdims)), _t.reduce_variance(x, axes, bool(keepdims))


def weighted_moments(x, axes, frequency_weights, keepdims=False, name=None):
    """Mean and variance along axes, elements counting as often as their weights say.

    >>> [float(m) for m in tf.nn.weighted_moments([1.0, 4.0], 0, [2.0, 1.0])]
    [2.0, 2.0]
    """
    x = _t.to_tensor(x, None, None)
    weights = _t.broadcast_to(_t.to_tensor(frequency_weights, None, x.dtype), x.lengths)
    total = _t.reduce_sum(weights, axes, True)
    mean = _t.reduce_sum(x * weights, axes, True) / total
    away = x - mean
    variance = _t.reduce_sum(away * away * weights, axes, True) / total
    if keepdims:
        return mean, variance
    axes = [axes] if isinstance(axes, int) else list(axes)
    return _t.squeeze(mean, axes), _t.squeeze(variance, axes)


def batch_normalization(x, mean, variance, offset, scale, variance_epsilon, name=None):
    """A tensor by the mean and the variance of its channels."""
    x = _t.to_tensor(x, None, None)
    rsqrt = _t.Op("rsqrt", "rsqrt", ["x"])
    inverse = rsqrt(_t.to_tensor(variance, None, x.dtype) + variance_epsilon)
    if scale is not None:
        inverse = inverse * scale
    made = x * inverse - mean * inverse
    return made if offset is None else made + offset


def embedding_lookup(params, ids, max_norm=None, name=None):
    """Rows of a table. Its gradient stays rows."""
    rows = _t.gather(params, ids, 0, 0)
    if max_norm is None:
        return rows
    from .math import clip_by_norm

    return clip_by_norm(rows, max_norm, axes=[-1])


def scaled_dot_product_attention(query, key, value, mask=None, causal=False, scale=None):
    """Attention in tiles: keeps one number a row for the gradient."""
    return _t.attention(query, key, value, mask, bool(causal), scale)


def _per_axis(value, count, channels_last=True):
    """Strides and windows as TensorFlow takes them: a number, one each axis, or with batch and channels."""
    if isinstance(value, int):
        return [value] * count
    value = [int(v) for v in value]
    if len(value) == 1:
        return value * count
    if len(value) == count + 2:
        return value[1:-1] if channels_last else value[2:]
    return value


def _padding(padding, count):
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise ValueError(f"padding must be 'SAME', 'VALID' or widths, not {padding!r}")
        return padding.upper() == "SAME", []
    widths = [[int(a), int(b)] for a, b in padding]
    return False, widths[1:-1] if len(widths) == count + 2 else widths


def _channels_first(data_format):
    return data_format is not None and data_format.startswith("NC") and data_format != "NC"


def _to_last(x):
    return _t.transpose(x, [0, *range(2, x.ndim), 1])


def _to_first(x):
    return _t.transpose(x, [0, x.ndim - 1, *range(1, x.ndim - 1)])


def _conv(conv, count, input, filters, strides, padding, data_format, dilations):
    x, filters = _t.to_tensor(input, None, None), _t.to_tensor(filters, None, None)
    first = _channels_first(data_format)
    same, widths = _padding(padding, count)
    if first:
        x = _to_last(x)
    groups = x.lengths[-1] // filters.lengths[-2] if x.lengths[-1] and filters.lengths[-2] else 1
    strides, dilations = (_per_axis(v, count, not first) for v in (strides, 1 if dilations is None else dilations))
    made = conv(x, filters, strides, same, widths, dilations, max(1, groups))
    return _to_first(made) if first else made


def conv1d(input, filters, stride=1, padding="VALID", data_format="NWC", dilations=None, name=None):
    """Filters over a sequence."""
    return _conv(_t.conv1d, 1, input, filters, stride, padding, data_format, dilations)


def conv2d(input, filters, strides=1, padding="VALID", data_format="NHWC", dilations=None, name=None):
    """Filters over an image."""
    return _conv(_t.conv2d, 2, input, filters, strides, padding, data_format, dilations)


def conv3d(input, filters, strides=1, padding="VALID", data_format="NDHWC", dilations=None, name=None):
    """Filters over a volume."""
    return _conv(_t.conv3d, 3, input, filters, strides, padding, data_format, dilations)


def convolution(input, filters, strides=None, padding="VALID", data_format=None, dilations=None, name=None):
    """Filters over one, two or three axes."""
    count = _t.to_tensor(input, None, None).ndim - 2
    conv = {1: _t.conv1d, 2: _t.conv2d, 3: _t.conv3d}[count]
    return _conv(conv, count, input, filters, 1 if strides is None else strides, padding, data_format, dilations)


def _channels_last(op, image, data_format):
    """An op on images whose channels are last, for images whose channels are first too."""
    if data_format in (None, "NHWC"):
        return op(image)
    if data_format != "NCHW":
        raise ValueError(f"data_format is 'NHWC' or 'NCHW', not {data_format!r}")
    return _t.transpose(op(_t.transpose(image, [0, 2, 3, 1])), [0, 3, 1, 2])


def conv2d_transpose(input, filters, output_shape, strides, padding="SAME", data_format="NHWC", dilations=None,
                     name=None):
    """The gradient of a convolution by its image: an image of ``output_shape``."""
    if dilations is not None and set(_per_axis(dilations, 2)) != {1}:
        raise NotImplementedError("conv2d_transpose: dilations other than 1 are not there")
    same, _ = _padding(padding, 2)
    first = _channels_first(data_format)
    lengths = [int(n) for n in output_shape]
    lengths = lengths[2:] if first else lengths[1:-1]
    strides = _per_axis(strides, 2, not first)
    return _channels_last(lambda x: _t.conv2d_transpose(x, filters, lengths, strides, same), input, data_format)


def depthwise_conv2d(input, filter, strides, padding, data_format=None, dilations=None, name=None):
    """Filters of its own for each channel."""
    same, _ = _padding(padding, 2)
    strides, apart = _per_axis(strides, 2, not _channels_first(data_format)), _per_axis(1 if dilations is None else dilations, 2)
    return _channels_last(lambda x: _t.depthwise_conv2d(x, filter, strides, same, apart), input, data_format)


def _pool(pool, input, ksize, strides, padding, data_format):
    x = _t.to_tensor(input, None, None)
    count, first = x.ndim - 2, _channels_first(data_format)
    if first:
        x = _to_last(x)
    same, _ = _padding(padding, count)
    made = pool(x, _per_axis(ksize, count, not first), _per_axis(strides, count, not first), same)
    return _to_first(made) if first else made


def max_pool(input, ksize, strides, padding, data_format=None, name=None):
    """The largest element of each window."""
    return _pool(_t.max_pool, input, ksize, strides, padding, data_format)


def avg_pool(input, ksize, strides, padding, data_format=None, name=None):
    """The mean of each window."""
    return _pool(_t.avg_pool, input, ksize, strides, padding, data_format)


max_pool1d = max_pool2d = max_pool3d = max_pool
avg_pool1d = avg_pool2d = avg_pool3d = avg_pool


def space_to_depth(input, block_size, data_format="NHWC", name=None):
    """Blocks of an image as channels."""
    return _channels_last(lambda x: _t.space_to_depth(x, int(block_size)), input, data_format)


def depth_to_space(input, block_size, data_format="NHWC", name=None):
    """Channels as blocks of an image."""
    return _channels_last(lambda x: _t.depth_to_space(x, int(block_size)), input, data_format)


def zero_fraction(value, name=None):
    """The share of elements that are zero."""
    value = _t.to_tensor(value, None, None)
    return 1.0 - _t.cast(_t.count_nonzero(value, None, False), "float32") / float(value.shape.num_elements())


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
