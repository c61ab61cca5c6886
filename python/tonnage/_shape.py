"""Shapes, specs and rows: small values that describe tensors."""

import collections.abc
import itertools

from . import _tonnage as _t

# Lengths of two specs are independent of each other, unless both have the same name.
_numbers = itertools.count()


def _lengths_of(x):
    """The lengths of a tensor to compute with: numbers, and where one is open in a function, a scalar that stands for it."""
    if None not in x.lengths:
        return x.lengths
    open_ = _t.shape_of(x, "int32")
    return [open_[i] if n is None else n for i, n in enumerate(x.lengths)]


class Dimension(int):
    """A length, as TensorFlow 1 had it: a number with a ``value``."""

    def __new__(cls, value):
        return super().__new__(cls, value)

    @property
    def value(self):
        return int(self)


class TensorShape:
    """The lengths of a tensor; ``None`` where one is open.

    >>> tf.TensorShape([2, None]).rank
    2
    """

    __slots__ = ("_dims",)

    def __init__(self, dims):
        if dims is None:
            self._dims = None
        elif isinstance(dims, TensorShape):
            self._dims = dims._dims
        elif isinstance(dims, int):
            self._dims = (dims,)
        else:
            self._dims = tuple(None if d is None or d == -1 else int(d) for d in dims)
            if any(d is not None and d < 0 for d in self._dims):
                raise ValueError(f"Dimension must be >= 0, got {list(self._dims)}")

    @property
    def rank(self):
        """How many axes; ``None`` where that is not known."""
        return None if self._dims is None else len(self._dims)

    ndims = rank

    @property
    def dims(self):
        """The lengths as a list."""
        return None if self._dims is None else list(self._dims)

    def as_list(self):
        """The lengths as a list."""
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def num_elements(self):
        """How many elements; ``None`` where a length is open."""
        if not self.is_fully_defined():
            return None
        count = 1
        for d in self._dims:
            count *= d
        return count

    def is_fully_defined(self):
        """Whether no length is open."""
        return self._dims is not None and all(d is not None for d in self._dims)

    def is_compatible_with(self, other):
        """Whether both can be the shape of one tensor."""
        other = TensorShape(other)
        if self._dims is None or other._dims is None:
            return True
        same = len(self._dims) == len(other._dims)
        return same and all(a is None or b is None or a == b for a, b in zip(self._dims, other._dims))

    def assert_is_compatible_with(self, other):
        """Raises where they are not."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {TensorShape(other)} are incompatible")

    def assert_has_rank(self, rank):
        """Raises where the rank is another."""
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def with_rank_at_least(self, rank):
        """Itself, if it has that many axes or more, or may have them."""
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank):
        """Itself, if it has that many axes or fewer, or may have them."""
        if self.rank is not None and self.rank > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def with_rank(self, rank):
        """Itself, if it has that rank or may have it."""
        self.assert_has_rank(rank)
        return TensorShape([None] * rank) if self._dims is None else self

    def merge_with(self, other):
        """What both say together."""
        other = TensorShape(other)
        self.assert_is_compatible_with(other)
        if self._dims is None:
            return other
        if other._dims is None:
            return self
        return TensorShape([b if a is None else a for a, b in zip(self._dims, other._dims)])

    def concatenate(self, other):
        """The axes of both, one after the other."""
        other = TensorShape(other)
        if self._dims is None or other._dims is None:
            return TensorShape(None)
        return TensorShape(self._dims + other._dims)

    def __add__(self, other):
        return self.concatenate(other)

    def __radd__(self, other):
        return TensorShape(other).concatenate(self)

    def __len__(self):
        if self._dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._dims)

    def __bool__(self):
        return self._dims is not None

    def __iter__(self):
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter(self._dims)

    def __getitem__(self, key):
        if self._dims is None:
            return TensorShape(None) if isinstance(key, slice) else None
        if isinstance(key, slice):
            return TensorShape(self._dims[key])
        return self._dims[key]

    def count(self, length):
        """How many lengths are that one."""
        return list(self).count(length)

    def index(self, length, start=0, stop=None):
        """The first axis of that length."""
        return list(self).index(length, start, *([] if stop is None else [stop]))

    def __eq__(self, other):
        try:
            other = TensorShape(other)
        except (TypeError, ValueError):
            return NotImplemented
        return self._dims == other._dims

    def __hash__(self):
        return hash(self._dims)

    def __str__(self):
        if self._dims is None:
            return "<unknown>"
        inner = ", ".join(str(d) for d in self._dims)
        return f"({inner},)" if len(self._dims) == 1 else f"({inner})"

    def __repr__(self):
        return "TensorShape(None)" if self._dims is None else f"TensorShape({list(self._dims)})"

    def __reduce__(self):
        return TensorShape, (self.dims,)


# NumPy's functions take sequences as shapes, and type checkers hold programs to that.
collections.abc.Sequence.register(TensorShape)


class TypeSpec:
    """A base for what says of a value what it is before it is there."""


class TensorSpec(TypeSpec):
    """A dtype and a shape whose lengths may be open: what signatures are written in.

    >>> tf.TensorSpec([None, 3], tf.float32)
    TensorSpec(shape=(None, 3), dtype=tf.float32, name=None)
    """

    def __init__(self, shape, dtype=None, name=None):
        self.shape = TensorShape(shape)
        self.dtype = _t.DType("float32" if dtype is None else dtype)
        self.name = name
        self._lead = f"{name}_" if name else f"open{next(_numbers)}_"
        if self.shape.rank is None:
            raise ValueError("a spec needs a rank; write None for lengths that are open")

    @classmethod
    def from_tensor(cls, tensor, name=None):
        """The spec of a tensor."""
        return cls(tensor.shape, tensor.dtype, name)

    @property
    def _tonnage_spec(self):
        return _t.spec(self.dtype, self.shape, self._lead)

    def is_compatible_with(self, value):
        """Whether a tensor, or another spec, fits."""
        return self.dtype == value.dtype and self.shape.is_compatible_with(value.shape)

    def __eq__(self, other):
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return (self.shape, self.dtype, self.name) == (other.shape, other.dtype, other.name)

    def __hash__(self):
        return hash((self.shape, self.dtype))

    def __repr__(self):
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"


class StandIn:
    """A base for what stands for a tensor without being one; ``__tf_tensor__`` gives that. One that stands for a variable has it as its
    ``handle``, and gradients are taken by it."""


def shape_tensor(lengths, dtype=None):
    """A shape as a tensor. The lengths are known while a function is traced too, see ``get_static_value``."""
    return _t.to_tensor(list(lengths), dtype, None)


def static_lengths(shape):
    """A shape as numbers, where it is a tensor whose values are known."""
    known = _t.known_value(shape) if isinstance(shape, _t.Tensor) else None
    return shape if known is None else known.numpy().tolist()


class IndexedSlices(StandIn):
    """Some rows of a tensor along its first axis; all others are zero."""

    def __init__(self, values, indices, dense_shape=None):
        self.values = values
        self.indices = indices
        self._shape = static_lengths(dense_shape)

    @property
    def dense_shape(self):
        """The shape of the whole, as a tensor; ``None`` where it is not known."""
        return None if self._shape is None else shape_tensor(self._shape)

    @property
    def shape(self):
        """The shape of the whole."""
        return TensorShape(self._shape)

    @property
    def dtype(self):
        """The dtype of the rows."""
        return self.values.dtype

    def __tf_tensor__(self):
        if self._shape is None:
            raise ValueError("rows of a tensor whose shape is not known cannot be made whole")
        whole = _t.fill(list(self._shape), 0, self.values.dtype)
        return _t.scatter_nd_add(whole, _t.expand_dims(self.indices, -1), self.values)

    def numpy(self):
        """The whole as an array."""
        return self.__tf_tensor__().numpy()

    def _tonnage_flatten(self):
        shape = self._shape
        return [self.values, self.indices], lambda v, i: IndexedSlices(v, i, shape)

    def with_values(self, new_values):
        """Other values in the same rows."""
        return IndexedSlices(new_values, self.indices, self._shape)

    def __neg__(self):
        return IndexedSlices(-self.values, self.indices, self._shape)

    def __mul__(self, other):
        return IndexedSlices(self.values * other, self.indices, self._shape)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return IndexedSlices(self.values / other, self.indices, self._shape)

    def __repr__(self):
        return f"IndexedSlices(indices={self.indices!r}, values={self.values!r}, shape={self.shape})"


def from_parts(make):
    """What a named tuple is made by, out of its parts."""
    return lambda *parts: make(parts)
