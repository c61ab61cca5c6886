"""Several datasets as one."""

import itertools

from .. import _nest
from .dataset import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from .element import spread
from .threads import mapped, workers
from .transforms import Dice, _Of


class Concatenate(_Of):
    """The elements of one after those of another."""

    def __init__(self, source, other):
        super().__init__(source)
        self._other = other

    def _iterate(self):
        return itertools.chain(self._source._iterate(), _later(self._other))

    def _count(self):
        counts = self._source._count(), self._other._count()
        if INFINITE_CARDINALITY in counts:
            return INFINITE_CARDINALITY
        return UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in counts else sum(counts)


def _later(dataset):
    yield from dataset._iterate()


class Interleave(_Of):
    """The elements of datasets that a function makes, so many at a time, a block of each in turn."""

    def __init__(self, source, function, cycle, block, parallel=None):
        super().__init__(source)
        self._function, self._cycle, self._block, self._workers = function, int(cycle), int(block), workers(parallel)

    def _dataset(self, element):
        made = spread(self._function, element)
        if not isinstance(made, Dataset):
            raise TypeError(f"The `map_func` argument must return a `Dataset` object. Got {type(made)}.")
        return made

    def _opened(self, element):
        """The dataset of an element, its first elements made by the thread that opens it."""
        items = self._dataset(element)._iterate()
        first = list(itertools.islice(items, self._block))
        return itertools.chain(first, items)

    def _sources(self):
        elements = self._source._iterate()
        if self._workers > 1 and self._cycle > 1:
            return mapped(self._opened, elements, self._workers, True)
        return (self._dataset(element)._iterate() for element in elements)

    def _iterate(self):
        # One whose dataset has ended leaves its place to the next one, which is opened when the turn comes to it.
        waiting, places = self._sources(), [None] * self._cycle
        while places:
            at = 0
            while at < len(places):
                if places[at] is None:
                    places[at] = next(waiting, None)
                if places[at] is None:
                    del places[at]
                    continue
                for _ in range(self._block):
                    element = next(places[at], _END)
                    if element is _END:
                        places[at] = None
                        break
                    yield element
                at += 1

    def _count(self):
        return UNKNOWN_CARDINALITY if self._source._count() != 0 else 0

    def _find_spec(self):
        first = next(self._source._iterate(), None)
        return self._dataset(first).element_spec if first is not None else Dataset._find_spec(self)


_END = object()


class Chosen(Dataset):
    """Elements of several datasets, by a dataset of their numbers."""

    def __init__(self, datasets, choices, stop):
        self._datasets, self._choices, self._stop = list(datasets), choices, stop

    def _numbers(self):
        return (int(n) for n in self._choices._iterate())

    def _iterate(self):
        iterators = {i: d._iterate() for i, d in enumerate(self._datasets)}
        for number in self._numbers():
            if number not in range(len(self._datasets)):
                from ..errors import InvalidArgumentError

                raise InvalidArgumentError(None, None, f"Selected dataset index {number} is out of range: there are {len(self._datasets)}")
            if number not in iterators:
                continue
            element = next(iterators[number], _END)
            if element is not _END:
                yield element
                continue
            if self._stop:
                return
            del iterators[number]
            if not iterators:
                return

    def _find_spec(self):
        return self._datasets[0].element_spec


class Sampled(Chosen):
    """Elements of several datasets at random."""

    def __init__(self, datasets, weights, seed, stop):
        super().__init__(datasets, None, stop)
        count = len(self._datasets)
        weights = [1.0 / count] * count if weights is None else [float(w) for w in _nest.flatten(list(weights))]
        if len(weights) != count or min(weights) < 0 or not sum(weights):
            raise ValueError(f"{weights} are no weights of {count} datasets")
        self._weights, self._dice = [w / sum(weights) for w in weights], Dice(seed, True)

    def _numbers(self):
        dice = self._dice.start()
        while True:
            yield int(dice.choice(len(self._weights), p=self._weights))
