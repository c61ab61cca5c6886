"""``tf.TensorArray``: tensors by number.

Where numbers are known it is a list, and nothing is copied until it is stacked. Where a loop carries it, or a tensor says
the number, it is one buffer whose rows are written in place; the loop then needs its size, and finds the shape of the
rows by itself. A size that only the data know cannot be planned: such a function runs op by op.
"""

import builtins

from . import _tonnage as _t
from .errors import DataDecideError, InvalidArgumentError, OutOfRangeError
from ._notices import ignores
from ._shape import _lengths_of

_READ = object()


class TensorArray:
    """Tensors by number.

    >>> array = tf.TensorArray(tf.float32, size=2)
    >>> array = array.write(0, 1.0).write(1, 4.0)
    >>> array.stack().numpy()
    array([1., 4.], dtype=float32)
    """

    @ignores("TensorArray", "handle", "flow", "colocate_with_first_write_call")
    def __init__(self, dtype, size=None, dynamic_size=None, clear_after_read=None, tensor_array_name=None,
                 handle=None, flow=None, infer_shape=True, element_shape=None, colocate_with_first_write_call=True,
                 name=None):
        from ._shape import TensorShape

        self.dtype = _t.DType(dtype)
        self._dynamic = bool(dynamic_size)
        self._clear = clear_after_read is not False
        self._same = bool(infer_shape)
        self._items = [None] * (0 if size is None else int(size))
        self._rows = None
        # The shape of all of them, once it is known; the arrays that come of this one share it.
        self._shape = [None]
        if element_shape is not None and TensorShape(element_shape).is_fully_defined():
            self._shape[0] = TensorShape(element_shape).as_list()

    def _with(self, items=None, rows=None):
        made = TensorArray.__new__(TensorArray)
        made.dtype, made._dynamic, made._clear, made._same = self.dtype, self._dynamic, self._clear, self._same
        made._shape, made._items, made._rows = self._shape, items, rows
        return made

    # As one buffer.

    @property
    def is_shaped(self):
        """Whether it could be one buffer: a loop can carry it then."""
        return self._rows is not None or self._shape[0] is not None

    def _buffer(self):
        if self._rows is not None:
            return self._rows
        if self._shape[0] is None:
            raise ValueError("nothing was written to this TensorArray yet, and no element_shape was given")
        lengths = self._shape[0]
        if None in lengths:
            raise DataDecideError("the shape of a TensorArray's elements")
        if builtins.all(item is None for item in self._items):
            return _t.fill([len(self._items), *lengths], 0, self.dtype)
        blank = _t.fill(lengths, 0, self.dtype)
        return _t.stack([blank if item is None or item is _READ else item for item in self._items], 0)

    def blank(self):
        """One of the same kind with nothing in it."""
        return self._with([None] * len(self))

    def _tonnage_flatten(self):
        if not self._same:
            raise DataDecideError("what a TensorArray of different shapes holds in a loop")
        return [self._buffer()], lambda rows: self._with(rows=rows)

    # What it is.

    @property
    def element_shape(self):
        """The shape of its tensors."""
        from ._shape import TensorShape

        return TensorShape(self._shape[0] if self._same else None)

    @property
    def dynamic_size(self):
        """Whether it grows."""
        return self._dynamic

    @property
    def handle(self):
        """There is none."""
        return None

    flow = handle

    def size(self, name=None):
        """How many there are."""
        return _t.to_tensor(len(self), "int32", None)

    def __len__(self):
        return self._rows.lengths[0] if self._items is None else len(self._items)

    # In and out.

    def write(self, index, value, name=None):
        """An array with another tensor at a number."""
        value = _t.to_tensor(value, None, self.dtype)
        if value.dtype != self.dtype:
            raise InvalidArgumentError(None, None, f"TensorArray dtype is {self.dtype.name} but Op is trying to write "
                                                   f"dtype {value.dtype.name}")
        if self._same:
            self._check(value.lengths)
        if isinstance(index, (_t.Tensor, _t.Variable)) and _t.to_tensor(index, None, None).is_symbolic:
            if self._dynamic:
                raise DataDecideError("the size of a TensorArray that grows")
            index = _t.to_tensor(index, None, None)
            start = _t.cast(_t.stack([index] + [_t.cast(0, index.dtype)] * value.ndim, 0), "int32")
            return self._with(rows=_t.dynamic_update(self._buffer(), _t.expand_dims(value, 0), start))
        at = int(index)
        if at < 0 or (at >= len(self) and not self._dynamic):
            raise OutOfRangeError(None, None, f"Tried to write to index {at} but array is not resizeable and size is: "
                                              f"{len(self)}")
        items = self._list()
        items += [None] * (at + 1 - len(items))
        items[at] = value
        return self._with(items)

    def _check(self, lengths):
        known = self._shape[0]
        if known is None:
            self._shape[0] = list(lengths)
        elif len(known) != len(lengths) or any(None not in (a, b) and a != b for a, b in zip(known, lengths)):
            raise ValueError(f"Incompatible shape for value ({tuple(lengths)}), expected ({tuple(known)})")

    def _list(self):
        if self._items is not None:
            return list(self._items)
        return [self._rows[i] for i in builtins.range(len(self))]

    def read(self, index, name=None):
        """The tensor at a number; it is freed then, unless ``clear_after_read`` is false."""
        if self._items is None or (isinstance(index, _t.Tensor) and index.is_symbolic):
            return self._buffer()[index]
        at = int(index)
        if not 0 <= at < len(self._items):
            raise OutOfRangeError(None, None, f"Tried to read from index {at} but array size is: {len(self)}")
        item = self._items[at]
        if item is _READ:
            raise InvalidArgumentError(None, None, f"Could not read index {at} twice because it was cleared after a "
                                                   "previous read (perhaps try setting clear_after_read = false?)")
        if item is None:
            if self._shape[0] is None:
                raise InvalidArgumentError(None, None, f"Could not read from TensorArray index {at}: it was not written")
            return _t.fill(self._shape[0], 0, self.dtype)
        if self._clear and not _t.is_symbolic():
            self._items[at] = _READ
        return item

    def stack(self, name=None):
        """All of them as one tensor."""
        return self._buffer()

    def gather(self, indices, name=None):
        """Some of them as one tensor."""
        return _t.gather(self._buffer(), indices, 0, 0)

    def concat(self, name=None):
        """All of them one after the other along their first axis."""
        if self._items is not None and self._items and None not in self._items:
            return _t.concat(self._items, 0)
        rows = self._buffer()
        many, each, *rest = _lengths_of(rows)
        return _t.reshape(rows, [many * each, *rest])

    def unstack(self, value, name=None):
        """An array of the rows of a tensor."""
        value = _t.to_tensor(value, None, self.dtype)
        if self._same:
            self._check(value.lengths[1:])
        return self._with(rows=value)

    def scatter(self, indices, value, name=None):
        """An array with the rows of a tensor at numbers."""
        made = self
        for i, at in enumerate(_t.to_tensor(indices, None, None)):
            made = made.write(at, _t.to_tensor(value, None, self.dtype)[i])
        return made

    def split(self, value, lengths, name=None):
        """An array of parts of a tensor, so long each."""
        parts = _t.split(_t.to_tensor(value, None, self.dtype), [int(n) for n in lengths], 0)
        made = self
        for i, part in enumerate(parts):
            made = made.write(i, part)
        return made

    def grad(self, source, flow=None, name=None):
        """Tapes go through an array as through any tensor."""
        raise NotImplementedError("TensorArray.grad: gradients go through an array by themselves; use tf.GradientTape")

    def identity(self):
        """Itself."""
        return self

    def close(self, name=None):
        """Frees what it holds."""
        self._items, self._rows = [None] * len(self), None
