"""``tf.sparse``: tensors of which some elements are stored, with their indices; all others are zero.

How many elements a result has is decided by the data, so most of these run op by op. Indices stand in rows, in the order of the elements.
"""

from math import prod as _prod

from . import _tonnage as _t
from ._index import boolean_mask as _boolean_mask, unique as _unique, where as _where
from ._nest import map_structure as _map_structure
from ._segments import unsorted_segment_max as _segment_max, unsorted_segment_min as _segment_min, unsorted_segment_sum as _segment_sum
from ._shape import StandIn as _StandIn, TensorShape as _TensorShape, TypeSpec as _TypeSpec
from ._shape import shape_tensor as _shape_tensor, static_lengths as _static_lengths
from .errors import InvalidArgumentError as _InvalidArgumentError


class SparseTensor(_StandIn):
    """The elements of a tensor that are stored: ``values``, a row of ``indices`` for each, and the shape of the whole.

    >>> x = tf.SparseTensor([[0, 1], [1, 2]], [5.0, 7.0], [2, 3])
    >>> tf.sparse.to_dense(x).numpy().tolist()
    [[0.0, 5.0, 0.0], [0.0, 0.0, 7.0]]
    """

    def __init__(self, indices, values, dense_shape):
        self.indices = _t.cast(_t.to_tensor(indices, None, None), "int64")
        self.values = _t.to_tensor(values, None, None)
        dense_shape = _static_lengths(dense_shape)
        lengths = dense_shape if isinstance(dense_shape, _t.Tensor) else list(_TensorShape(dense_shape))
        if isinstance(lengths, _t.Tensor):
            lengths = [None] * lengths.lengths[0] if lengths.is_symbolic else [int(n) for n in lengths]
        self._shape = _TensorShape(lengths)
        if self.indices.ndim != 2 or self.values.ndim != 1 or self.indices.lengths[1] not in (None, len(lengths)):
            raise ValueError(f"SparseTensor: a row of {len(lengths)} indices for each value is needed, not indices of shape {self.indices.shape} "
                             f"for values of shape {self.values.shape}")

    @property
    def shape(self):
        """The shape of the whole."""
        return self._shape

    @property
    def dense_shape(self):
        """The shape of the whole, as a tensor."""
        return _shape_tensor(self._shape.as_list(), "int64")

    @property
    def dtype(self):
        """The dtype of the values."""
        return self.values.dtype

    op = property(lambda self: self.values.op)
    ndim = property(lambda self: self._shape.rank)

    def get_shape(self):
        """The shape of the whole."""
        return self._shape

    def set_shape(self, shape):
        """Says more of the shape of the whole."""
        self._shape = self._shape.merge_with(shape)

    def with_values(self, new_values):
        """Other values at the same places."""
        return SparseTensor(self.indices, new_values, self._shape)

    @property
    def _type_spec(self):
        return SparseTensorSpec(self._shape, self.dtype)

    def _tonnage_flatten(self):
        shape = self._shape
        return [self.indices, self.values], lambda indices, values: SparseTensor(indices, values, shape)

    def __mul__(self, other):
        return self.with_values(self.values * _at(other, self))

    __rmul__ = __mul__

    def __truediv__(self, other):
        return self.with_values(self.values / _at(other, self))

    def __neg__(self):
        return self.with_values(-self.values)

    def __repr__(self):
        return f"SparseTensor(indices={self.indices!r}, values={self.values!r}, shape={self._shape})"


class SparseTensorSpec(_TypeSpec):
    """A dtype and the shape of the whole."""

    def __init__(self, shape=None, dtype="float32"):
        self.shape, self.dtype = _TensorShape(shape), _t.DType(dtype)

    def __eq__(self, other):
        if not isinstance(other, SparseTensorSpec):
            return NotImplemented
        return (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self):
        return hash((self.shape, self.dtype))

    def __repr__(self):
        return f"SparseTensorSpec({self.shape}, {self.dtype!r})"


def _at(dense, of):
    """The elements of a dense tensor, which may have to be broadcast, where a sparse one has its own."""
    dense = _t.to_tensor(dense, None, of.dtype)
    if dense.ndim == 0:
        return dense
    return _t.gather_nd(_t.broadcast_to(dense, of.shape), of.indices, 0)


def _keys(x, shape=None):
    """The places of the elements as single numbers, in the order of the elements of the whole."""
    lengths = (x.shape if shape is None else _TensorShape(shape)).as_list()
    strides = [_prod(lengths[i + 1:]) for i in range(len(lengths))]
    return _t.reduce_sum(x.indices * _t.to_tensor(strides, "int64", None), 1, False) if lengths else _t.fill([x.indices.lengths[0]], 0, "int64")


def _from_keys(keys, values, shape):
    """The sparse tensor whose elements are at these places."""
    lengths, columns = _TensorShape(shape).as_list(), []
    for length in reversed(lengths):
        columns.append(keys % length)
        keys = keys // length
    indices = _t.stack(columns[::-1], 1) if columns else _t.fill([values.lengths[0], 0], 0, "int64")
    return SparseTensor(indices, values, lengths)


def _sorted(keys, *of):
    order = _t.argsort(keys, 0, False) if keys.lengths[0] != 0 else _t.fill([0], 0, "int32")
    return [_t.gather(t, order, 0, 0) for t in (keys, *of)]


def from_dense(tensor, name=None):
    """The elements that are not zero.

    >>> tf.sparse.from_dense([0, 3]).indices.numpy().tolist()
    [[1]]
    """
    tensor = _t.to_tensor(tensor, None, None)
    indices = _where(tensor != _t.zeros_like(tensor))
    return SparseTensor(indices, _t.gather_nd(tensor, indices, 0), tensor.shape)


def to_dense(sp_input, default_value=None, validate_indices=True, name=None):
    """The whole; ``default_value`` stands where nothing is stored."""
    whole = _t.fill(sp_input.shape, 0 if default_value is None else default_value, sp_input.dtype)
    if sp_input.dtype.is_bool:
        whole = _t.scatter_nd_update(_t.cast(whole, "int8"), sp_input.indices, _t.cast(sp_input.values, "int8"))
        return _t.cast(whole, "bool")
    if default_value is None:
        return _t.scatter_nd_add(whole, sp_input.indices, sp_input.values)
    return _t.scatter_nd_update(whole, sp_input.indices, sp_input.values)


def reorder(sp_input, name=None):
    """The same elements in the order of the whole."""
    keys, values = _sorted(_keys(sp_input), sp_input.values)
    return _from_keys(keys, values, sp_input.shape)


def map_values(op, *args, **kwargs):
    """What an op makes of the values of sparse tensors, which are at the same places."""
    sparse = [a for a in [*args, *kwargs.values()] if isinstance(a, SparseTensor)]
    if not sparse:
        raise ValueError("No SparseTensor in argument list of map_values")

    def plain(value):
        return value.values if isinstance(value, SparseTensor) else value

    return sparse[0].with_values(op(*_map_structure(plain, list(args)), **{k: plain(v) for k, v in kwargs.items()}))


def _union(a, b, fold):
    """Elements of both, folded where both have one."""
    if a.shape.as_list() != b.shape.as_list():
        raise _InvalidArgumentError(None, None, f"sparse: operands have shapes {a.shape} and {b.shape}; the same is needed")
    keys, values = _sorted(_t.concat([_keys(a), _keys(b)], 0), _t.concat([a.values, b.values], 0))
    places, which = _unique(keys)
    return _from_keys(places, fold(values, which, places.lengths[0]), a.shape)


def add(a, b, threshold=0):
    """The sum; a dense tensor where one of them is. Of a sparse sum, elements smaller than ``threshold`` are left out."""
    if not isinstance(a, SparseTensor):
        a, b = b, a
    if not isinstance(a, SparseTensor):
        raise TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?")
    if not isinstance(b, SparseTensor):
        return _t.scatter_nd_add(_t.broadcast_to(_t.to_tensor(b, None, a.dtype), a.shape), a.indices, a.values)
    made = _union(a, b, _segment_sum)
    return retain(made, abs(made.values) >= threshold) if threshold else made


def maximum(sp_a, sp_b, name=None):
    """The larger of elements; what is not stored is zero."""
    zeros = map_values(_t.zeros_like, sp_a), map_values(_t.zeros_like, sp_b)
    return _union(add(sp_a, zeros[1]), add(sp_b, zeros[0]), _segment_max)


def minimum(sp_a, sp_b, name=None):
    """The smaller of elements; what is not stored is zero."""
    zeros = map_values(_t.zeros_like, sp_a), map_values(_t.zeros_like, sp_b)
    return _union(add(sp_a, zeros[1]), add(sp_b, zeros[0]), _segment_min)


def _row(sp_input, i):
    """One row of the first axis."""
    from ._index import boolean_mask

    here = sp_input.indices[:, 0] == i
    return SparseTensor(boolean_mask(sp_input.indices, here)[:, 1:], boolean_mask(sp_input.values, here), sp_input.shape[1:])


def retain(sp_input, to_retain):
    """The elements for which a boolean says so."""
    keep = _t.to_tensor(to_retain, None, None)
    return SparseTensor(_boolean_mask(sp_input.indices, keep), _boolean_mask(sp_input.values, keep), sp_input.shape)


def reshape(sp_input, shape, name=None):
    """The same elements in another shape; one length may be -1."""
    lengths, count = [int(n) for n in shape], _prod(sp_input.shape.as_list())
    if -1 in lengths:
        rest = _prod(n for n in lengths if n != -1)
        lengths[lengths.index(-1)] = count // rest if rest else 0
    if _prod(lengths) != count:
        raise ValueError(f"Cannot reshape a tensor with {count} elements to shape {lengths}")
    return _from_keys(_keys(sp_input), sp_input.values, lengths)


def expand_dims(sp_input, axis=None, name=None):
    """An axis of length 1 more."""
    lengths = sp_input.shape.as_list()
    axis = -1 if axis is None else int(axis)
    axis += len(lengths) + 1 if axis < 0 else 0
    zeros = _t.zeros_like(sp_input.indices[:, :1]) if lengths else _t.fill([sp_input.values.lengths[0], 1], 0, "int64")
    indices = _t.concat([sp_input.indices[:, :axis], zeros, sp_input.indices[:, axis:]], 1)
    return SparseTensor(indices, sp_input.values, lengths[:axis] + [1] + lengths[axis:])


def transpose(sp_input, perm=None, name=None):
    """The axes in another order; reversed where none is given."""
    lengths = sp_input.shape.as_list()
    order = [int(p) for p in (reversed(range(len(lengths))) if perm is None else perm)]
    return reorder(SparseTensor(_t.gather(sp_input.indices, _t.to_tensor(order, "int32", None), 1, 0), sp_input.values, [lengths[p] for p in order]))


def concat(axis, sp_inputs, expand_nonconcat_dims=False, name=None):
    """Sparse tensors one after the other along an axis."""
    rank, offset, indices = sp_inputs[0].shape.rank, 0, []
    axis = int(axis) % rank
    for x in sp_inputs:
        indices.append(x.indices + _t.to_tensor([offset if i == axis else 0 for i in range(rank)], "int64", None))
        offset += x.shape[axis]
    lengths = [max(x.shape[i] for x in sp_inputs) for i in range(rank)]
    if not expand_nonconcat_dims and any(x.shape[i] != lengths[i] for x in sp_inputs for i in range(rank) if i != axis):
        raise _InvalidArgumentError(None, None, f"sparse.concat: the shapes {[x.shape for x in sp_inputs]} differ in other axes than {axis}")
    lengths[axis] = offset
    return reorder(SparseTensor(_t.concat(indices, 0), _t.concat([x.values for x in sp_inputs], 0), lengths))


def reduce_sum(sp_input, axis=None, keepdims=None, output_is_sparse=False, name=None):
    """Sums along axes."""
    made = _t.reduce_sum(to_dense(sp_input), axis, bool(keepdims))
    return _stored(made) if output_is_sparse else made


def reduce_max(sp_input, axis=None, keepdims=None, output_is_sparse=False, name=None):
    """The largest stored elements along axes; zero where nothing is stored."""
    least = sp_input.dtype.min
    made = _t.reduce_max(to_dense(sp_input, least), axis, bool(keepdims))
    made = _t.where_(made == _t.to_tensor(least, made.dtype, None), _t.zeros_like(made), made)
    return _stored(made) if output_is_sparse else made


def _stored(dense):
    """A dense tensor as a sparse one; one element is stored whatever it is."""
    if dense.ndim:
        return from_dense(dense)
    return SparseTensor(_t.fill([1, 0], 0, "int64"), _t.reshape(dense, [1]), [])


def sparse_dense_matmul(sp_a, b, adjoint_a=False, adjoint_b=False, name=None):
    """The product of matrices of which one is sparse. Rows of the dense one are gathered, the sparse one is never made whole."""
    if not isinstance(sp_a, SparseTensor):
        flipped = sparse_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a)
        return _t.transpose(flipped, [1, 0])
    dense = _t.to_tensor(b, None, sp_a.dtype)
    dense = _t.transpose(dense, [1, 0]) if adjoint_b else dense
    rows, inner = (1, 0) if adjoint_a else (0, 1)
    if sp_a.shape.rank != 2 or dense.ndim != 2 or dense.lengths[0] not in (None, sp_a.shape[inner]):
        raise _InvalidArgumentError(None, None, f"sparse_dense_matmul: matrices that fit are needed, not {sp_a.shape} and {dense.shape}")
    parts = _t.gather(dense, sp_a.indices[:, inner], 0, 0) * _t.expand_dims(sp_a.values, 1)
    return _segment_sum(parts, sp_a.indices[:, rows], sp_a.shape[rows])


def fill_empty_rows(sp_input, default_value, name=None):
    """With one element in rows that had none; and which those were."""
    rows = sp_input.shape[0]
    counts = _segment_sum(_t.cast(_t.ones_like(sp_input.indices[:, 0]), "int64"), sp_input.indices[:, 0], rows)
    empty = counts == _t.to_tensor(0, "int64", None)
    at = _where(empty)
    # Of sizes that the data decide, so made of what has them.
    indices = _t.concat([sp_input.indices, _t.concat([at] + [_t.zeros_like(at)] * (sp_input.shape.rank - 1), 1)], 0)
    added = _t.cast(_t.zeros_like(at[:, 0]), sp_input.dtype) + _t.to_tensor(default_value, sp_input.dtype, None)
    values = _t.concat([sp_input.values, added], 0)
    return reorder(SparseTensor(indices, values, sp_input.shape)), empty


def bincount(values, weights=None, axis=0, minlength=None, maxlength=None, binary_output=False, name=None):
    """How often each number occurs, stored where it does; with ``axis=-1`` in each row on its own."""
    from ._segments import bincount as counted

    given = values.values if isinstance(values, SparseTensor) else values
    if isinstance(values, SparseTensor) and axis == -1 and values.shape.rank > 1:
        # Numbers that are not stored are none: they go beyond the end.
        bins = max(int(minlength or 0), int(_t.reduce_max(given, None, False)) + 1) if maxlength is None else int(maxlength)
        whole, shares = to_dense(values, bins), None if weights is None else to_dense(weights)
        return from_dense(counted(whole, shares, bins, bins, "int64", axis=-1, binary_output=binary_output))
    shares = weights.values if isinstance(weights, SparseTensor) else weights
    return from_dense(counted(given, shares, minlength, maxlength, "int64", axis=axis, binary_output=binary_output))


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
