"""Several elements as one, and one as several."""

import itertools

from .. import _nest
from .. import _tonnage as _t
from .._shape import TensorShape, TensorSpec
from ..errors import DataLossError, InvalidArgumentError
from .dataset import UNKNOWN_CARDINALITY, Dataset
from .transforms import _Of


def _pieces(items, size, drop):
    while True:
        held = list(itertools.islice(items, size))
        if not held or (drop and len(held) < size):
            return
        yield held


def stacked(elements):
    """Elements as one tensor for each part, with a first axis."""
    first = elements[0]
    flat = [_nest.flatten(e) for e in elements]
    made = []
    for place, parts in enumerate(zip(*flat)):
        shape = parts[0].lengths
        for number, part in enumerate(parts):
            if part.lengths != shape:
                raise InvalidArgumentError(None, None, f"Cannot batch tensors with different shapes in component {place}. First element "
                                                       f"had shape {list(shape)} and element {number} had shape {list(part.lengths)}; use "
                                                       "padded_batch")
        made.append(_t.stack(list(parts), 0))
    return _nest.pack_sequence_as(first, made)


class Batch(_Of):
    """So many elements as one."""

    def __init__(self, source, size, drop):
        super().__init__(source)
        self._size, self._drop = size, drop

    def _iterate(self):
        return (stacked(held) for held in _pieces(self._source._iterate(), self._size, self._drop))

    def _count(self):
        count = self._source._count()
        return count if count < 0 else count // self._size if self._drop else -(-count // self._size)

    def _length(self):
        """The length of the first axis, where all batches are full."""
        count = self._source._count()
        return self._size if self._drop or count == -1 else None

    def _find_spec(self):
        return _nest.map_structure(lambda s: TensorSpec([self._length(), *s.shape], s.dtype), self._source.element_spec)


class PaddedBatch(Batch):
    """So many elements as one, filled up."""

    def __init__(self, source, size, shapes, values, drop):
        super().__init__(source, size, drop)
        self._shapes, self._values = shapes, values

    def _of_each(self, given, element, usual):
        flat = _nest.flatten(element)
        if given is None:
            return [usual] * len(flat)
        if not isinstance(element, (tuple, dict)):
            return [given]
        if isinstance(given, (int, float)) or not isinstance(given, (tuple, dict, list)):
            return [given] * len(flat)
        parts = [given[k] for k in sorted(given)] if isinstance(given, dict) else list(given)
        if len(parts) != len(flat):
            raise ValueError(f"{len(parts)} shapes or values for {len(flat)} parts of an element")
        return parts

    def _iterate(self):
        for held in _pieces(self._source._iterate(), self._size, self._drop):
            flat = [_nest.flatten(e) for e in held]
            shapes = self._of_each(self._shapes, held[0], None)
            values = self._of_each(self._values, held[0], 0)
            made = [self._filled(parts, shape, value) for parts, shape, value in zip(zip(*flat), shapes, values)]
            yield _nest.pack_sequence_as(held[0], made)

    @staticmethod
    def _filled(parts, shape, value):
        rank = parts[0].ndim
        longest = [max(p.lengths[i] for p in parts) for i in range(rank)]
        wanted = [None] * rank if shape is None else TensorShape(shape).as_list()
        if len(wanted) != rank:
            raise InvalidArgumentError(None, None, f"The padded shape {wanted} has another rank than an element of shape "
                                                   f"{parts[0].lengths}")
        to = [n if w is None else w for n, w in zip(longest, wanted)]
        for part in parts:
            if any(n > t for n, t in zip(part.lengths, to)):
                raise DataLossError(None, None, f"Attempted to pad to a smaller size than the input element: {part.lengths} to {to}")
        value = 0 if value is None else value
        value = value.numpy().item() if hasattr(value, "numpy") else value
        return _t.stack([_t.pad(p, [[0, t - n] for n, t in zip(p.lengths, to)], value) if p.lengths != to else p for p in parts], 0)

    def _find_spec(self):
        element = self._source.element_spec
        shapes = self._of_each(self._shapes, element, None)
        made = []
        for spec, shape in zip(_nest.flatten(element), shapes):
            inner = list(spec.shape) if shape is None else TensorShape(shape).as_list()
            made.append(TensorSpec([self._length(), *inner], spec.dtype))
        return _nest.pack_sequence_as(element, made)


class Unbatch(_Of):
    """The rows of elements, one by one."""

    def _iterate(self):
        for element in self._source._iterate():
            flat = _nest.flatten(element)
            if any(t.ndim == 0 for t in flat):
                raise InvalidArgumentError(None, None, "Cannot unbatch an input with scalar components")
            if len({t.lengths[0] for t in flat}) > 1:
                raise InvalidArgumentError(None, None, f"Input element must have the same batch size in each component: shapes "
                                                       f"{[tuple(t.shape) for t in flat]}")
            for i in range(flat[0].lengths[0]):
                yield _nest.map_structure(lambda t, i=i: t[i], element)

    def _count(self):
        spec, count = _nest.flatten(self._source.element_spec), self._source._count()
        length = next((s.shape[0] for s in spec if len(s.shape)), None)
        return count * length if count > 0 and length is not None else UNKNOWN_CARDINALITY if count != -1 else -1

    def _find_spec(self):
        return _nest.map_structure(lambda s: TensorSpec(list(s.shape)[1:], s.dtype), self._source.element_spec)


class Window(_Of):
    """Datasets of so many elements each."""

    def __init__(self, source, size, shift, stride, drop):
        super().__init__(source)
        self._size, self._shift, self._stride, self._drop = size, shift, stride, drop

    def _iterate(self):
        reach = (self._size - 1) * self._stride + 1
        items, held, ended = self._source._iterate(), [], False
        while True:
            while len(held) < reach and not ended:
                element = next(items, _END)
                if element is _END:
                    ended = True
                else:
                    held.append(element)
            if not held or (self._drop and len(held) < reach):
                return
            yield self._split(held[:reach:self._stride])
            if self._shift > len(held):
                for _ in range(self._shift - len(held)):
                    next(items, None)
            held = held[self._shift:]

    def _split(self, elements):
        from .sources import Listed

        spec = self._source.element_spec
        if not isinstance(elements[0], (tuple, dict)):
            return Listed(elements, spec)
        flat = [_nest.flatten(e) for e in elements]
        parts = [Listed(list(column), s) for column, s in zip(zip(*flat), _nest.flatten(spec))]
        return _nest.pack_sequence_as(elements[0], parts)

    def _count(self):
        count, reach = self._source._count(), (self._size - 1) * self._stride + 1
        if count < 0:
            return count
        return max(0, (count - reach) // self._shift + 1) if self._drop else -(-count // self._shift)

    def _find_spec(self):
        return Dataset._find_spec(self)


_END = object()
