"""Rows of tensors as a dataset. Rows are numbers until a batch, or an element, is asked for: what shuffles, repeats, skips and takes moves
numbers, and a batch of rows that follow each other is a slice."""

import numpy as np

from .. import _nest
from .. import _tonnage as _t
from .._shape import TensorSpec
from . import transforms
from .batches import Batch
from .dataset import Dataset
from .element import as_element

_CHUNK = 4096


def from_tensor_slices(tensors):
    """A row of each tensor an element."""
    if isinstance(tensors, (list, np.ndarray)) and len(tensors) and isinstance(tensors[0], (str, bytes)):
        return Texts([as_element(t) for t in tensors])
    tensors = as_element(tensors)
    flat = _nest.flatten(tensors)
    if not flat:
        raise ValueError("from_tensor_slices needs at least one tensor")
    if any(t.ndim == 0 for t in flat):
        raise ValueError("Unbatching a tensor is only supported for rank >= 1: from_tensor_slices was given a scalar")
    lengths = {t.lengths[0] for t in flat}
    if len(lengths) > 1:
        raise ValueError(f"Dimensions {' and '.join(str(n) for n in sorted(lengths))} are not compatible: tensors of one dataset have "
                         f"the same number of rows; shapes are {[tuple(t.shape) for t in flat]}")
    return Rows(tensors, lengths.pop())


class Texts(Dataset):
    """Texts in memory."""

    def __init__(self, texts):
        self._texts = texts

    def _iterate(self):
        return iter(self._texts)

    def _count(self):
        return len(self._texts)


class Rows(Dataset):
    """All rows in order."""

    def __init__(self, tensors, count):
        self.tensors, self._rows = tensors, count

    def numbers(self):
        """The numbers of the rows, in pieces."""
        for start in range(0, self._rows, _CHUNK):
            yield np.arange(start, min(start + _CHUNK, self._rows))

    def _count(self):
        return self._rows

    def _find_spec(self):
        return _nest.map_structure(lambda t: TensorSpec(t.lengths[1:], t.dtype), self.tensors)

    def _iterate(self):
        for piece in self.numbers():
            for number in piece:
                yield _nest.map_structure(lambda t, i=int(number): t[i], self.tensors)

    def rows(self, numbers):
        """Some rows, stacked."""
        first, last = int(numbers[0]), int(numbers[-1])
        follow = last - first + 1 == len(numbers) and (len(numbers) < 2 or bool((np.diff(numbers) == 1).all()))
        if follow:
            return _nest.map_structure(lambda t: t[first:last + 1], self.tensors)
        places = _t.to_tensor(np.ascontiguousarray(numbers, "int64"), None, None)
        return _nest.map_structure(lambda t: _t.gather(t, places, 0, 0), self.tensors)

    # The same, of numbers.

    def _then(self, numbers, count):
        return Chosen(self, numbers, count)

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True, name=None):
        """Rows at random out of a buffer of so many."""
        if int(buffer_size) < self._count() or self._count() < 0:
            return super().shuffle(buffer_size, seed, reshuffle_each_iteration)
        dice = transforms.Dice(seed, reshuffle_each_iteration is not False)

        def numbers():
            parts = list(self.numbers())
            if parts:
                yield dice.start().permutation(np.concatenate(parts))

        return self._then(numbers, self._count())

    def take(self, count, name=None):
        """The first rows."""
        count = int(count)
        if count < 0:
            return self

        def numbers():
            left = count
            for piece in self.numbers():
                if left <= 0:
                    return
                yield piece[:left]
                left -= len(piece)

        return self._then(numbers, count if self._count() < 0 else min(count, self._count()))

    def skip(self, count, name=None):
        """All but the first rows."""
        count = int(count)
        if count < 0:
            return self._then(lambda: iter(()), 0)

        def numbers():
            left = count
            for piece in self.numbers():
                if left < len(piece):
                    yield piece[max(left, 0):]
                left -= len(piece)

        return self._then(numbers, self._count() if self._count() < 0 else max(0, self._count() - count))

    def repeat(self, count=None, name=None):
        """The rows so many times."""
        count = None if count is None or int(count) < 0 else int(count)

        def numbers():
            done = 0
            while count is None or done < count:
                seen = False
                for piece in self.numbers():
                    seen = True
                    yield piece
                if not seen:
                    return
                done += 1

        return self._then(numbers, transforms.repeated(self._count(), count))

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None, deterministic=None, name=None):
        """So many rows as one: a slice, or a gather."""
        made = super().batch(batch_size, drop_remainder)
        return RowBatches(self, made._size, made._drop)

    def cache(self, filename="", name=None):
        """Itself: its rows are in memory."""
        return super().cache(filename) if filename else self


class Chosen(Rows):
    """Rows by other numbers."""

    def __init__(self, source, numbers, count):
        super().__init__(source.tensors, count)
        self.numbers = numbers


class RowBatches(Batch):
    """Batches of rows, made at once."""

    def _iterate(self):
        size, held, have = self._size, [], 0
        for piece in self._source.numbers():
            held.append(piece)
            have += len(piece)
            if have < size:
                continue
            whole = np.concatenate(held) if len(held) > 1 else held[0]
            whole_batches = have // size * size
            for start in range(0, whole_batches, size):
                yield self._source.rows(whole[start:start + size])
            held, have = [whole[whole_batches:]], have - whole_batches
        if have and not self._drop:
            yield self._source.rows(np.concatenate(held))


