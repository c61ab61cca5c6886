"""Attention, computed in tiles: one number a row is kept for the gradient, never the matrix of scores."""

import math

from ... import _tonnage as _t
from ..._shape import TensorShape
from .. import initializers, regularizers
from .base import Layer
from .activation import low
from .core import Dropout


def _bool(mask):
    return mask if mask.dtype.name == "bool" else _t.cast(mask, "bool")


def _joined(masks):
    """All of several masks."""
    made = None
    for mask in masks:
        if mask is not None:
            made = _bool(mask) if made is None else made & _bool(mask)
    return made


class MultiHeadAttention(Layer):
    """Attention by several heads, each over a projection of its own."""

    supports_masking = True
    _takes_floats = True

    def __init__(self, num_heads, key_dim, value_dim=None, dropout=0.0, use_bias=True, output_shape=None,
                 attention_axes=None, kernel_initializer="glorot_uniform", bias_initializer="zeros",
                 kernel_regularizer=None, bias_regularizer=None, **kwargs):
        super().__init__(**kwargs)
        if isinstance(attention_axes, int):
            attention_axes = (attention_axes,)
        self.attention_axes = None if attention_axes is None else tuple(int(axis) for axis in attention_axes)
        self.num_heads, self.key_dim, self.value_dim = int(num_heads), int(key_dim), int(value_dim or key_dim)
        self.dropout, self.use_bias, self.output_size = float(dropout), use_bias, output_shape
        self._of = (initializers.get(kernel_initializer), initializers.get(bias_initializer),
                    regularizers.get(kernel_regularizer), regularizers.get(bias_regularizer))
        self._drop = Dropout(self.dropout) if self.dropout else None

    def build(self, query_shape, value_shape, key_shape=None):
        """Makes the projections."""
        if value_shape is None:
            raise TypeError(f"MultiHeadAttention {self.name!r}: missing a required argument: 'value'")
        key_shape = value_shape if key_shape is None else key_shape
        query, value, key = (TensorShape(s)[-1] for s in (query_shape, value_shape, key_shape))
        heads = self.num_heads
        wanted = (("query", (query, heads, self.key_dim)), ("key", (key, heads, self.key_dim)),
                  ("value", (value, heads, self.value_dim)))
        first, bias_first, regularizer, bias_regularizer = self._of
        for name, shape in wanted:
            setattr(self, f"_{name}_kernel", self.add_weight(shape, first, name=f"{name}/kernel", regularizer=regularizer))
            if self.use_bias:
                setattr(self, f"_{name}_bias", self.add_weight(shape[1:], bias_first, name=f"{name}/bias",
                                                               regularizer=bias_regularizer))
        size = self.output_size or query
        size = size if isinstance(size, int) else size[0]
        self._output_kernel = self.add_weight((heads, self.value_dim, size), first, name="attention_output/kernel",
                                              regularizer=regularizer)
        if self.use_bias:
            self._output_bias = self.add_weight((size,), bias_first, name="attention_output/bias",
                                                regularizer=bias_regularizer)

    def _projected(self, x, name):
        kernel = getattr(self, f"_{name}_kernel")
        width, heads, size = tuple(kernel.shape)
        made = _t.mat_mul(x, _t.reshape(kernel, [width, heads * size]), False, False)
        if self.use_bias:
            made = made + _t.reshape(getattr(self, f"_{name}_bias"), [heads * size])
        made = _t.reshape(made, [x.lengths[0] or -1, x.lengths[1], heads, size])
        return _t.transpose(made, [0, 2, 1, 3])

    def _axes(self, x):
        """The axes that are attended along, and the others but the last."""
        if x.ndim == 3:
            return [1], [0]
        axes = [axis % x.ndim for axis in self.attention_axes or range(1, x.ndim - 1)]
        if not axes or 0 in axes or x.ndim - 1 in axes:
            raise ValueError(f"MultiHeadAttention {self.name!r} attends along axes between the first and the last; its input has the "
                             f"shape {tuple(x.shape)}, and attention_axes is {self.attention_axes}")
        return axes, [axis for axis in range(x.ndim - 1) if axis not in axes]

    def _mask(self, query, value, query_mask, value_mask, key_mask, attention_mask):
        """All masks as one, by the axes of the scores; each has length 1 where nothing depends on it."""
        axes, others = self._axes(query)
        count, parts = len(axes), []
        if attention_mask is not None:
            mask = _t.to_tensor(attention_mask, None, None)
            # What is missing stands before the axes that are attended along; the axis of heads is the last to be added.
            while mask.ndim <= len(others) + 2 * count:
                mask = _t.expand_dims(mask, max(0, mask.ndim - 2 * count))
            parts.append(mask)
        for mask, of, place in ((query_mask, query, 0), (value_mask, value, count), (key_mask, value, count)):
            if mask is None:
                continue
            mask = _bool(_t.to_tensor(mask, None, None))
            if mask.ndim != of.ndim - 1:
                raise ValueError(f"MultiHeadAttention {self.name!r}: a mask of shape {tuple(mask.shape)} for an input of shape "
                                 f"{tuple(of.shape)}, which needs one number for each but the last axis")
            mask = _t.transpose(mask, [*others, *axes]) if of.ndim > 3 else mask
            for at in (len(others), *([len(others) + 1 + count - place] * count)):
                mask = _t.expand_dims(mask, at)
            parts.append(mask)
        return _joined(parts)

    def _whole(self, mask, query, value):
        """A mask as ``[rows, heads, queries, values]``."""
        if mask is None:
            return None
        axes, others = self._axes(query)
        rows, queries, values = ([t.lengths[i] for i in which] for t, which in ((query, others), (query, axes), (value, axes)))
        mask = _t.broadcast_to(mask, [*rows, self.num_heads, *queries, *values])
        return mask if query.ndim == 3 else _t.reshape(mask, [-1, self.num_heads, math.prod(queries), math.prod(values)])

    def _rows(self, x):
        """The same with the axes that are attended along joined to the second, the others but the last to the first."""
        if x.ndim == 3:
            return x
        axes, others = self._axes(x)
        long = math.prod(x.lengths[axis] for axis in axes)
        return _t.reshape(_t.transpose(x, [*others, *axes, x.ndim - 1]), [-1, long, x.lengths[-1]])

    def _back(self, made, query):
        """The backward pass for what was made of the query's rows."""
        if query.ndim == 3:
            return made
        axes, others = self._axes(query)
        order = [*others, *axes]
        made = _t.reshape(made, [*(-1 if query.lengths[i] is None else query.lengths[i] for i in order), made.lengths[-1]])
        return _t.transpose(made, [*(order.index(i) for i in range(query.ndim - 1)), query.ndim - 1])

    def _scores(self, scores, query, value):
        """Scores by the axes of the inputs: the others, heads, those of the queries, those of the values."""
        if query.ndim == 3:
            return scores
        axes, others = self._axes(query)
        rows = [-1 if query.lengths[i] is None else query.lengths[i] for i in others]
        return _t.reshape(scores, [*rows, self.num_heads, *(query.lengths[i] for i in axes), *(value.lengths[i] for i in axes)])

    def call(self, query, value, key=None, query_mask=None, value_mask=None, key_mask=None, attention_mask=None,
             return_attention_scores=False, training=None, use_causal_mask=False):
        """Computes."""
        value = self._converted(value)
        key = value if key is None else self._converted(key)
        if not 3 <= query.ndim == value.ndim == key.ndim:
            raise ValueError(f"MultiHeadAttention {self.name!r} needs inputs of one rank, 3 or more; query, value and key have the "
                             f"shapes {tuple(query.shape)}, {tuple(value.shape)} and {tuple(key.shape)}")
        masks = [getattr(t, "_keras_mask", None) if m is None else m
                 for t, m in ((query, query_mask), (value, value_mask), (None if key is value else key, key_mask))]
        some = self._mask(query, value, *masks, attention_mask)
        mask = self._whole(some, query, value)
        rows = [self._rows(query), self._rows(value)]
        rows.append(rows[1] if key is value else self._rows(key))
        q, v, k = (self._projected(x, name) for x, name in zip(rows, ("query", "value", "key")))
        scores = None
        if return_attention_scores or (self._drop is not None and training):
            made, scores = _plain(q, k, v, mask, use_causal_mask, self.key_dim**-0.5, self._drop, training, empty=True)
        else:
            made = _attended(q, k, v, mask, use_causal_mask, self.key_dim**-0.5, some if query.ndim == 3 else None)
        made = _t.transpose(made, [0, 2, 1, 3])
        heads, size, width = tuple(self._output_kernel.shape)
        made = _t.reshape(made, [rows[0].lengths[0] or -1, rows[0].lengths[1], heads * size])
        made = _t.mat_mul(made, _t.reshape(self._output_kernel, [heads * size, width]), False, False)
        if self.use_bias:
            made = made + self._output_bias
        made = self._back(made, query)
        return (made, self._scores(scores, query, value)) if return_attention_scores else made


def _below(rows, columns):
    """True up to the diagonal."""
    return _t.tril(_t.fill([rows, columns], 1, "int32"), 0) > 0


def _attended(q, k, v, mask, causal, scale, some):
    """Attention without its scores. ``some`` is the mask before it was broadcast: a query that may look at nothing, such as a
    padded one, sees the mean of all values, as in Keras."""
    rows, columns = q.lengths[-2], k.lengths[-2]
    below = _below(rows, columns) if causal and (rows != columns or some is not None) else None
    if below is not None and rows != columns:
        # The op lets the last query look at all keys; in Keras the first one looks at the first.
        whole = _t.broadcast_to(below, [*q.lengths[:-1], columns])
        mask, causal = whole if mask is None else mask & whole, False
    made = _t.attention(q, k, v, mask, bool(causal), scale)
    if some is None:
        return made
    some = some if below is None else some & below
    return _t.where_(_t.reduce_any(some, -1, True), made, _t.reduce_mean(v, -2, True))


def _plain(q, k, v, mask, causal, scale, drop, training, empty=False):
    """Attention with its scores, where those are asked for or left out at random. ``empty``: a query that may look at nothing
    sees nothing, and not the mean of all values."""
    scores = _t.mat_mul(q, k, False, True) * scale
    if causal:
        below = _below(*scores.lengths[-2:])
        mask = below if mask is None else mask & below
    if mask is not None:
        scores = _t.where_(mask, scores, low(scores.dtype))
    scores = _t.softmax(scores, -1)
    if mask is not None and empty:
        scores = _t.where_(mask, scores, _t.zeros_like(scores))
    held = drop(scores, training=training) if drop is not None else scores
    return _t.mat_mul(held, v, False, False), scores


class Attention(Layer):
    """Attention by products, of ``[query, value]`` or ``[query, value, key]``."""

    supports_masking = True
    _takes_floats = True

    def __init__(self, use_scale=False, score_mode="dot", dropout=0.0, seed=None, **kwargs):
        super().__init__(**kwargs)
        if score_mode not in ("dot", "concat"):
            raise ValueError(f"Invalid value for argument score_mode. Expected one of {{'dot', 'concat'}}. Received: {score_mode}")
        self.use_scale, self.score_mode, self.dropout = use_scale, score_mode, float(dropout)
        self._drop = Dropout(self.dropout, seed=seed) if self.dropout else None
        self.scale = self.concat_score_weight = None

    def build(self, input_shape):
        """Makes the scale."""
        if self.use_scale:
            self.scale = self.add_weight((), "ones", name="scale")
        if self.score_mode == "concat":
            self.concat_score_weight = self.add_weight((), "ones", name="concat_score_weight")

    def call(self, inputs, mask=None, training=None, return_attention_scores=False, use_causal_mask=False):
        """Computes."""
        query, value = inputs[0], inputs[1]
        key = inputs[2] if len(inputs) > 2 else value
        whole = None
        if mask is not None and len(mask) > 1 and mask[1] is not None:
            whole = _t.broadcast_to(_t.expand_dims(_bool(mask[1]), 1), [query.lengths[0], query.lengths[1], value.lengths[1]])
        wanted = return_attention_scores or self._drop is not None or self.scale is not None or self.score_mode == "concat"
        if not wanted:
            # One head.
            heads = [_t.expand_dims(t, 1) for t in (query, key, value)]
            whole = None if whole is None else _t.expand_dims(whole, 1)
            made, scores = _t.squeeze(_attended(*heads, whole, use_causal_mask, 1.0, whole), [1]), None
        else:
            made, scores = self._scored(query, key, value, whole, use_causal_mask, training)
        if mask is not None and mask[0] is not None:
            made = made * _t.cast(_t.expand_dims(mask[0], -1), made.dtype)
        return (made, scores) if return_attention_scores else made

    def _scored(self, query, key, value, mask, causal, training):
        if self.score_mode == "concat":
            both = _t.expand_dims(query, -2) + _t.expand_dims(key, -3)
            both = both if self.scale is None else both * self.scale
            scores = self.concat_score_weight * _t.reduce_sum(_t.Op("tanh", "tanh", ["x"])(both), -1, False)
            if mask is not None:
                scores = _t.where_(mask, scores, low(scores.dtype))
            scores = _t.softmax(scores, -1)
            held = self._drop(scores, training=training) if self._drop is not None else scores
            return _t.mat_mul(held, value, False, False), scores
        query = query if self.scale is None else query * self.scale
        return _plain(query, key, value, mask, causal, 1.0, self._drop, training)

    def compute_mask(self, inputs, mask=None):
        """The query's."""
        return mask[0] if mask else None


class AdditiveAttention(Attention):
    """Attention by sums through a tanh."""

    def __init__(self, use_scale=True, dropout=0.0, **kwargs):
        super().__init__(use_scale, "dot", dropout, **kwargs)

    def build(self, input_shape):
        """Makes the scale."""
        if self.use_scale:
            self.scale = self.add_weight((TensorShape(input_shape[0])[-1],), "glorot_uniform", name="scale")

    def _scored(self, query, key, value, mask, causal, training):
        both = _t.Op("tanh", "tanh", ["x"])(_t.expand_dims(query, -2) + _t.expand_dims(key, -3))
        scores = _t.reduce_sum(both if self.scale is None else both * self.scale, -1, False)
        if mask is not None:
            scores = _t.where_(mask, scores, low(scores.dtype))
        scores = _t.softmax(scores, -1)
        held = self._drop(scores, training=training) if self._drop is not None else scores
        return _t.mat_mul(held, value, False, False), scores

    def call(self, inputs, mask=None, training=None, return_attention_scores=False, use_causal_mask=False):
        """Computes."""
        query, value = inputs[0], inputs[1]
        key = inputs[2] if len(inputs) > 2 else value
        whole = None
        if mask is not None and len(mask) > 1 and mask[1] is not None:
            whole = _t.expand_dims(_bool(mask[1]), 1)
        if use_causal_mask:
            below = _below(query.lengths[1], value.lengths[1])
            whole = below if whole is None else whole & below
        made, scores = self._scored(query, key, value, whole, False, training)
        if mask is not None and mask[0] is not None:
            made = made * _t.cast(_t.expand_dims(mask[0], -1), made.dtype)
        return (made, scores) if return_attention_scores else made
