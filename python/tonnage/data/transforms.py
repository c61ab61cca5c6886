"""What makes other elements of elements, and which of them come."""

import itertools
import random

import numpy as np

from .. import _nest
from .. import _tonnage as _t
from .dataset import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from .element import Traced, as_element
from .threads import mapped, workers


class Dice:
    """Random numbers of a pass. With a seed, or after ``tf.random.set_seed``, a program is the same each time."""

    def __init__(self, seed, anew):
        first = int(_t.call_eagerly(lambda: _t.random_int(0, 2**31 - 1, [], "int64", None))) if seed is None else int(seed)
        self._first, self._anew, self._passes = first, anew, 0

    def start(self):
        """Those of the next pass."""
        made = np.random.default_rng([self._first, self._passes if self._anew else 0])
        self._passes += 1
        return made


class _Of(Dataset):
    """A dataset of another one."""

    def __init__(self, source):
        self._source = source

    def _count(self):
        return self._source._count()

    def _find_spec(self):
        return self._source.element_spec


class Map(_Of):
    """A function of each element."""

    def __init__(self, source, function, parallel, in_order):
        super().__init__(source)
        self._function, self._workers, self._in_order = Traced(function), workers(parallel), in_order

    def _iterate(self):
        if self._workers <= 1:
            return map(self._function.of, self._source._iterate())
        return mapped(self._function.of, self._source._iterate(), self._workers, self._in_order)

    def _find_spec(self):
        found = self._function.spec(self._source.element_spec)
        return Dataset._find_spec(self) if found is None else found


class Filter(_Of):
    """The elements for which a function says so."""

    def __init__(self, source, predicate):
        super().__init__(source)
        self._predicate = Traced(predicate)

    def _iterate(self):
        return (element for element in self._source._iterate() if _yes(self._predicate, element))

    def _count(self):
        return UNKNOWN_CARDINALITY if self._source._count() != 0 else 0


def _yes(predicate, element):
    said = predicate.of(element)
    if getattr(said, "ndim", None) != 0 or getattr(getattr(said, "dtype", None), "name", None) != "bool":
        raise ValueError(f"Invalid `predicate`. `predicate` must return a `tf.bool` scalar tensor, but its return type is {said!r:.80}")
    return bool(said)


class TakeWhile(Filter):
    """The elements up to the first for which a function says no."""

    def _iterate(self):
        return itertools.takewhile(lambda element: _yes(self._predicate, element), self._source._iterate())


class Scan(_Of):
    """A function of a state and each element."""

    def __init__(self, source, state, function):
        super().__init__(source)
        self._state, self._function = as_element(state), Traced(function)

    def _iterate(self):
        state = self._state
        for element in self._source._iterate():
            made = self._function(state, element)
            if not isinstance(made, (tuple, list)) or len(made) != 2:
                raise TypeError(f"The scan function must return a pair comprising the new state and the output value, not {made!r:.60}")
            state = _same(state, as_element(made[0]), "scan_func")
            yield as_element(tuple(made[1]) if isinstance(made[1], list) else made[1])

    def _find_spec(self):
        return Dataset._find_spec(self)


def reduce(source, state, function):
    """The last state."""
    state, function = as_element(state), Traced(function)
    for element in source:
        state = _same(state, as_element(function(state, element)), "reduce_func")
    return state


def _same(before, after, what):
    _nest.assert_same_structure(before, after)
    for a, b in zip(_nest.flatten(before), _nest.flatten(after)):
        if a.dtype != b.dtype:
            raise TypeError(f"The element types for the new state must match the initial state. Expected {a.dtype!r}; got {b.dtype!r} of "
                            f"`{what}`")
    return after


class Take(_Of):
    """The first elements."""

    def __init__(self, source, count):
        super().__init__(source)
        self._most = count

    def _iterate(self):
        items = self._source._iterate()
        return items if self._most < 0 else itertools.islice(items, self._most)

    def _count(self):
        count = self._source._count()
        if self._most < 0 or count == UNKNOWN_CARDINALITY:
            return count
        return self._most if count == INFINITE_CARDINALITY else min(count, self._most)


class Skip(_Of):
    """All but the first elements."""

    def __init__(self, source, count):
        super().__init__(source)
        self._few = count

    def _iterate(self):
        return iter(()) if self._few < 0 else itertools.islice(self._source._iterate(), self._few, None)

    def _count(self):
        count = self._source._count()
        return 0 if self._few < 0 else count if count < 0 else max(0, count - self._few)


class Shard(_Of):
    """Every so manyeth element."""

    def __init__(self, source, shards, index):
        super().__init__(source)
        self._shards, self._index = shards, index

    def _iterate(self):
        return itertools.islice(self._source._iterate(), self._index, None, self._shards)

    def _count(self):
        count = self._source._count()
        return count if count < 0 else max(0, -(-(count - self._index) // self._shards))


def repeated(count, times):
    """How many elements there are of ``count`` so many times."""
    if count == 0 or times == 0:
        return 0
    if times is None:
        return INFINITE_CARDINALITY
    return count if count < 0 else count * times


class Repeat(_Of):
    """The elements so many times."""

    def __init__(self, source, times):
        super().__init__(source)
        self._times = times

    def _iterate(self):
        done = 0
        while self._times is None or done < self._times:
            some = False
            for element in self._source._iterate():
                some = True
                yield element
            if not some:
                return  # nothing without an end is nothing
            done += 1

    def _count(self):
        return repeated(self._source._count(), self._times)


class Shuffle(_Of):
    """Elements at random out of a buffer."""

    def __init__(self, source, size, seed, anew):
        super().__init__(source)
        self._size, self._dice = size, Dice(seed, anew)

    def _iterate(self):
        dice, held = random.Random(int(self._dice.start().integers(0, 2**63))), []
        for element in self._source._iterate():
            if len(held) < self._size:
                held.append(element)
                continue
            place = dice.randrange(len(held))
            out, held[place] = held[place], element
            yield out
        dice.shuffle(held)
        while held:
            yield held.pop()


class Unique(_Of):
    """Each element once."""

    def _iterate(self):
        seen = set()
        for element in self._source._iterate():
            key = tuple((t.numpy().tobytes(), tuple(t.shape)) if hasattr(t, "lengths") else t for t in _nest.flatten(element))
            if key not in seen:
                seen.add(key)
                yield element

    def _count(self):
        return UNKNOWN_CARDINALITY


class Zip(Dataset):
    """Elements of several datasets side by side."""

    def __init__(self, datasets):
        datasets = tuple(datasets) if isinstance(datasets, list) else datasets
        for part in _nest.flatten(datasets):
            if not isinstance(part, Dataset):
                raise TypeError(f"The argument to `Dataset.zip()` must be a (nested) structure of `Dataset` objects. Got {type(part)}.")
        self._datasets = datasets

    def _iterate(self):
        iterators = [d._iterate() for d in _nest.flatten(self._datasets)]
        while True:
            parts = []
            for iterator in iterators:
                try:
                    parts.append(next(iterator))
                except StopIteration:
                    return
            yield _nest.pack_sequence_as(self._datasets, parts)

    def _count(self):
        counts = [d._count() for d in _nest.flatten(self._datasets)]
        if UNKNOWN_CARDINALITY in counts:
            return UNKNOWN_CARDINALITY
        known = [c for c in counts if c != INFINITE_CARDINALITY]
        return min(known) if known else INFINITE_CARDINALITY

    def _find_spec(self):
        return _nest.map_structure(lambda d: d.element_spec, self._datasets)
