"""``tf.nn``: activations, losses, convolutions, pooling, normalization."""

from . import _replicas
from . import _tonnage as _t
from ._array import shape as _shape, size as _size
from ._names import NN as _NN, made as _made
from .math import (  # noqa: F401
    in_top_k, l2_normalize, log_softmax, softmax, top_k,
)
from .math import divide_no_nan as _divide_no_nan
from ._notices import ignores as _ignores
from ._shape import _lengths_of
from .errors import InvalidArgumentError as _InvalidArgumentError

globals().update(_made(_NN))
_ops = _made(_NN)
_silu = _t.Op("silu", "silu", ["features"])


def _wrong(text):
    """The error of arguments that do not fit each other."""
    return _InvalidArgumentError(None, None, text)


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
    """A bias for each channel.

    >>> tf.nn.bias_add([[[0.0], [0.0]]], [1.0, 2.0], data_format="NCW").numpy().tolist()
    [[[1.0], [2.0]]]
    """
    value = _t.to_tensor(value, None, None)
    bias = _t.to_tensor(bias, None, value.dtype)
    first = data_format is not None and data_format.startswith("NC")
    if not (data_format is None or first or (data_format.startswith("N") and data_format.endswith("C"))):
        raise ValueError(f"bias_add: data_format is of the form 'N...C' or 'NC...', not {data_format!r}")
    if bias.ndim != 1 or value.ndim < 2:
        raise _wrong(f"bias_add: a bias of one axis and a value of more are needed, not {bias.shape} and {value.shape}")
    channels, count = value.lengths[1 if first else -1], bias.lengths[0]
    # Broadcasting would broadcast a bias of one element over all channels.
    if None not in (channels, count) and channels != count:
        raise _wrong(f"bias_add: a bias of {count} elements does not fit the {channels} channels of {value.shape}")
    return value + (_t.reshape(bias, [-1] + [1] * (value.ndim - 2)) if first else bias)


def dropout(x, rate, noise_shape=None, seed=None, name=None):
    """Elements left out at a rate, the rest scaled up. Keeps a random key for the gradient, not a mask.

    >>> tf.nn.dropout(tf.ones([3]), rate=0.0).numpy().tolist()
    [1.0, 1.0, 1.0]
    """
    rate = float(rate)
    if noise_shape is None and seed is None:
        return _t.dropout(x, rate)
    from .random import uniform

    x = _t.to_tensor(x, None, None)
    return _dropped(x, rate, noise_shape, lambda shape: uniform(shape, dtype=x.dtype, seed=seed))


def _dropped(x, rate, noise_shape, draw):
    """Some elements together, or a seed of their own: drawn here, as a recipe that takes no memory."""
    if not 0 <= rate < 1:
        raise ValueError(f"dropout: the rate is at least 0 and below 1, not {rate}")
    lengths = _lengths_of(x)
    shape = lengths if noise_shape is None else [n if m is None else m for m, n in zip(noise_shape, lengths)]
    return _t.where_(draw(shape) >= rate, x / (1 - rate), _t.zeros_like(x))


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
    # Halved first: the sum may be as large as a number can be.
    return _t.reduce_sum(t * (t * 0.5), None, False)


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
    weights = _t.broadcast_to(_t.to_tensor(frequency_weights, None, x.dtype), _lengths_of(x))
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
    # Moved by the mean as a number, and by how far that is from the mean, which is nothing: so the gradient of the mean is made of that of the
    # offset, and not summed up over all of `x` once more.
    mean = _t.to_tensor(mean, None, x.dtype)
    number = _t.stop_gradient(mean)
    moved = (mean - number) * inverse
    return (x - number) * inverse + (-moved if offset is None else offset - moved)


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


# By how many axes are moved over; sequences go under the names of images too, as in TensorFlow.
_LAYOUTS = {1: ("NWC", "NCW", "NHWC", "NCHW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


def _channels_first(data_format, count):
    """Whether channels stand before the axes that are moved over; a layout that there is not is an error."""
    if data_format is None or count not in _LAYOUTS:
        return False
    if data_format not in _LAYOUTS[count]:
        raise _wrong(f"data_format is one of {', '.join(map(repr, _LAYOUTS[count]))}, not {data_format!r}")
    return data_format.startswith("NC")


def _inner(what, values, count, first, outer):
    """The values of the axes that are moved over, where those of batch and channels, if given, are ``outer``."""
    if len(values) != count + 2:
        return values
    kept, rest = (values[2:], values[:2]) if first else (values[1:-1], [values[0], values[-1]])
    if any(v != outer for v in rest):
        raise _wrong(f"{what}: batch and channels take {outer}, so {values} makes no sense")
    return kept


def _per_axis(what, value, count, first=False):
    """Strides and windows as TensorFlow takes them: a number, one each axis, or with batch and channels."""
    if isinstance(value, int):
        return [value] * count
    value = [int(v) for v in value]
    return value * count if len(value) == 1 else _inner(what, value, count, first, 1)


def _padding(padding, count, first=False):
    """Whether it is SAME, and a pair of widths for each axis where they are given."""
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise ValueError(f"padding must be 'SAME', 'VALID' or widths, not {padding!r}")
        return padding.upper() == "SAME", []
    widths = [[int(a), int(b)] for a, b in padding]
    widths = widths * count if len(widths) == 1 else _inner("padding", widths, count, first, [0, 0])
    if len(widths) != count or min(map(min, widths)) < 0:
        raise _wrong(f"padding: a pair of at least 0 for each of {count} axes is needed, with or without those of "
                     f"batch and channels, not {widths}")
    return False, widths


def _padded(x, widths, value=0):
    """An image with elements around it; channels come last."""
    return _t.pad(x, [[0, 0], *widths, [0, 0]], value) if widths else x


def _to_last(x):
    return _t.transpose(x, [0, *range(2, x.ndim), 1])


def _to_first(x):
    return _t.transpose(x, [0, x.ndim - 1, *range(1, x.ndim - 1)])


def _conv(conv, count, input, filters, strides, padding, data_format, dilations):
    x, filters = _t.to_tensor(input, None, None), _t.to_tensor(filters, None, None)
    first = _channels_first(data_format, count)
    same, widths = _padding(padding, count, first)
    if x.ndim != count + 2 or filters.ndim != count + 2:
        raise _wrong(f"conv{count}d: input and filters have {count + 2} axes, not {x.shape} and {filters.shape}")
    if first:
        x = _to_last(x)
    groups = x.lengths[-1] // filters.lengths[-2] if x.lengths[-1] and filters.lengths[-2] else 1
    strides = _per_axis("strides", strides, count, first)
    dilations = _per_axis("dilations", 1 if dilations is None else dilations, count, first)
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
    input = _t.to_tensor(input, None, None)
    count = input.ndim - 2
    if count not in _LAYOUTS:
        raise _wrong(f"convolution: an input of rank 3, 4 or 5 is needed, not {input.shape}")
    conv = {1: _t.conv1d, 2: _t.conv2d, 3: _t.conv3d}[count]
    return _conv(conv, count, input, filters, 1 if strides is None else strides, padding, data_format, dilations)


def _channels_last(op, image, data_format):
    """An op on images whose channels are last, for images whose channels are first too."""
    if not _channels_first(data_format, 2):
        return op(image)
    return _t.transpose(op(_t.transpose(image, [0, 2, 3, 1])), [0, 3, 1, 2])


def conv_transpose(input, filters, output_shape, strides, padding="SAME", data_format=None, dilations=None, name=None):
    """The gradient of a convolution by its image: an image of ``output_shape``, along one, two or three axes.

    >>> tf.nn.conv_transpose(tf.ones([1, 2, 1]), tf.ones([2, 1, 1]), [1, 4, 1], 2).numpy().ravel().tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    x, filters = _t.to_tensor(input, None, None), _t.to_tensor(filters, None, None)
    count = x.ndim - 2
    if count not in _LAYOUTS or filters.ndim != x.ndim:
        raise _wrong(f"conv_transpose: input and filters of rank 3, 4 or 5 are needed, not {x.shape} and {filters.shape}")
    first = _channels_first(data_format, count)
    same, widths = _padding(padding, count, first)
    strides = _per_axis("strides", strides, count, first)
    apart = _per_axis("dilations", 1 if dilations is None else dilations, count, first)
    lengths = _image_lengths(x, filters, list(output_shape), first)
    x = _to_last(x) if first else x
    from ._conv_transpose import transposed

    # The image that was padded, without what was around it.
    around = [n + sum(pair) for n, pair in zip(lengths, widths or [(0, 0)] * count)]
    made = transposed(x, filters, around, strides, same, apart)
    if widths:
        made = made[(slice(None), *(slice(before, before + n) for n, (before, _) in zip(lengths, widths)))]
    return _to_first(made) if first else made


def conv1d_transpose(input, filters, output_shape, strides, padding="SAME", data_format="NWC", dilations=None, name=None):
    """The same along one axis."""
    return conv_transpose(input, filters, output_shape, strides, padding, data_format, dilations)


def conv2d_transpose(input, filters, output_shape, strides, padding="SAME", data_format="NHWC", dilations=None,
                     name=None):
    """The gradient of a convolution by its image: an image of ``output_shape``."""
    return conv_transpose(input, filters, output_shape, strides, padding, data_format, dilations)


def conv3d_transpose(input, filters, output_shape, strides, padding="SAME", data_format="NDHWC", dilations=None, name=None):
    """The same along three axes."""
    return conv_transpose(input, filters, output_shape, strides, padding, data_format, dilations)


def _image_lengths(input, filters, shape, first):
    """The lengths of the image that ``output_shape`` asks for, if batch and channels are what they must be."""
    count = input.ndim - 2
    if len(shape) not in (count, count + 2):
        raise _wrong(f"conv_transpose: output_shape has {count + 2} lengths, or those of the {count} axes, not {shape}")
    if len(shape) == count:
        return [int(n) for n in shape]
    batch, channels = shape[0], shape[1 if first else -1]
    for what, asked, there in [("batch", batch, input.lengths[0]), ("channels", channels, filters.lengths[-2])]:
        # What is open while a function is traced is what comes.
        if there is not None and not getattr(asked, "is_symbolic", False) and int(asked) != there:
            raise _wrong(f"conv_transpose: output_shape has {int(asked)} as its {what}, but {there} fits")
    return [int(n) for n in (shape[2:] if first else shape[1:-1])]


def depthwise_conv2d(input, filter, strides, padding, data_format=None, dilations=None, name=None):
    """Filters of its own for each channel."""
    first = _channels_first(data_format, 2)
    same, widths = _padding(padding, 2, first)
    strides = _per_axis("strides", strides, 2, first)
    apart = _per_axis("dilations", 1 if dilations is None else dilations, 2, first)

    def op(x):
        return _t.depthwise_conv2d(_padded(x, widths), filter, strides, same, apart)

    return _channels_last(op, input, data_format)


def separable_conv2d(input, depthwise_filter, pointwise_filter, strides, padding, data_format=None, dilations=None, name=None):
    """Filters of its own for each channel, and then sums over the channels."""
    made = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return conv2d(made, pointwise_filter, 1, "VALID", data_format or "NHWC")


def pool(input, window_shape, pooling_type, strides=None, padding="VALID", data_format=None, dilations=None, name=None):
    """The largest element or the mean of each window, by ``"MAX"`` or ``"AVG"``."""
    if pooling_type not in ("MAX", "AVG"):
        raise ValueError(f"pool: pooling_type is 'MAX' or 'AVG', not {pooling_type!r}")
    if dilations is not None and set(_per_axis("dilations", dilations, len(window_shape))) != {1}:
        raise NotImplementedError("pool: dilations other than 1 are not there")
    whole = {"MAX": max_pool, "AVG": avg_pool}[pooling_type]
    return whole(input, list(window_shape), [1] * len(window_shape) if strides is None else strides, padding, data_format)


class experimental:
    """What TensorFlow keeps under ``experimental``."""

    @staticmethod
    def stateless_dropout(x, rate, seed, rng_alg="auto_select", noise_shape=None, name=None):
        """Dropout that the seed alone decides.

        >>> tf.nn.experimental.stateless_dropout(tf.ones([3]), 0.0, seed=[1, 2]).numpy().tolist()
        [1.0, 1.0, 1.0]
        """
        from .random import stateless_uniform

        x = _t.to_tensor(x, None, None)
        return _dropped(x, rate, noise_shape, lambda shape: stateless_uniform(shape, seed, dtype=x.dtype, alg=rng_alg))


def _pool(pool, x, ksize, strides, padding, data_format):
    count = x.ndim - 2
    first = _channels_first(data_format, count)
    if first:
        x = _to_last(x)
    same, widths = _padding(padding, count, first)
    ksize, strides = _per_axis("ksize", ksize, count, first), _per_axis("strides", strides, count, first)
    if any(width >= size for size, pair in zip(ksize, widths) for width in pair):
        raise _wrong(f"padding: widths below those of the windows are needed, not {widths} for {ksize}")
    # Less than every element, so that what is around is never the largest.
    least = float("-inf") if x.dtype.is_floating else x.dtype.min
    made = pool(_padded(x, widths, least), ksize, strides, same)
    return _to_first(made) if first else made


def max_pool(input, ksize, strides, padding, data_format=None, name=None):
    """The largest element of each window."""
    return _pool(_t.max_pool, _t.to_tensor(input, None, None), ksize, strides, padding, data_format)


def avg_pool(input, ksize, strides, padding, data_format=None, name=None):
    """The mean of each window."""
    if not isinstance(padding, str):
        raise ValueError(f"avg_pool: padding is 'SAME' or 'VALID', not widths: {padding!r}")
    return _pool(_t.avg_pool, _t.to_tensor(input, None, None), ksize, strides, padding, data_format)


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
    return 1.0 - _t.cast(_t.count_nonzero(value, None, False), "float32") / _t.cast(_size(value), "float32")


def compute_average_loss(per_example_loss, sample_weight=None, global_batch_size=None):
    """The losses of rows as one: their sum over the rows of all replicas' batches. Those of all replicas add up to the mean."""
    loss = _t.to_tensor(per_example_loss, None, None)
    if loss.ndim == 0:
        raise ValueError("per_example_loss has no row: it is one loss a row")
    if sample_weight is not None:
        weight = _t.cast(_t.to_tensor(sample_weight, None, None), loss.dtype)
        while 0 < weight.ndim < loss.ndim:
            weight = _t.expand_dims(weight, -1)
        loss = loss * weight
    if global_batch_size is None:
        # All replicas have as many rows; so TensorFlow has it.
        global_batch_size = _shape(loss)[0] * _replicas.count()
    size = _t.cast(_t.to_tensor(global_batch_size, None, None), loss.dtype)
    # A replica without rows has nothing to add.
    return _divide_no_nan(_t.reduce_sum(loss, None, False), size)


def scale_regularization_loss(regularization_loss):
    """A replica's share of a loss that all replicas have alike."""
    return _replicas.share(_t.reduce_sum(_t.to_tensor(regularization_loss, None, None), None, False))


_LAZY = {"embedding_lookup_sparse": "._sparse_lookup", "safe_embedding_lookup_sparse": "._sparse_lookup", "ctc_loss": "._ctc",
         "ctc_greedy_decoder": "._ctc", "ctc_beam_search_decoder": "._ctc"}


def __getattr__(name):
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name], __package__), name)
    from ._missing import missing

    raise missing(__name__, name, globals())
