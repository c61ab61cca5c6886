"""The dataset: a stream of elements, and all that makes another one of it."""

from .. import _nest
from .. import _tonnage as _t
from .element import as_element, spec_of
from .iterator import Iterator, Unrolled
from .._notices import ignores

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


class Options:
    """Options of a dataset: order is always kept unless ``map(deterministic=False)`` says otherwise, so there is nothing to set."""

    def __init__(self):
        self.deterministic = None
        self.autotune = self.threading = self.experimental_optimization = None


class Dataset:
    """A stream of elements: tensors, or nested ones.

    >>> data = tf.data.Dataset.from_tensor_slices([1, 2, 3, 4]).map(lambda x: x * 10).batch(3)
    >>> [batch.numpy().tolist() for batch in data]
    [[10, 20, 30], [40]]
    """

    _spec = None

    # What a kind of dataset says.

    def _iterate(self):
        """Its elements, from the start."""
        raise NotImplementedError

    def _count(self):
        """How many elements it has."""
        return UNKNOWN_CARDINALITY

    def _find_spec(self):
        """The spec of its elements; of the first one, where nothing else tells."""
        first = next(self._iterate(), None)
        if first is None:
            raise ValueError("an empty dataset has no element to say what it is like")
        return _nest.map_structure(spec_of, first)

    # What it is.

    def __iter__(self):
        if _t.is_tracing() and self._count() == INFINITE_CARDINALITY:
            raise ValueError("an infinite dataset cannot be gone through inside of a function: the loop is written out as it is "
                             "traced; use take(n), or loop outside of the function")
        return Unrolled(self) if _t.is_tracing() else Iterator(self)

    @property
    def element_spec(self):
        """The spec of its elements: dtypes, and shapes whose lengths may be open."""
        if self._spec is None:
            self._spec = _t.call_eagerly(self._find_spec)
        return self._spec

    def cardinality(self):
        """How many elements it has; ``INFINITE_CARDINALITY``, or ``UNKNOWN_CARDINALITY``."""
        return _t.to_tensor(self._count(), "int64", None)

    def __len__(self):
        count = self._count()
        if count == INFINITE_CARDINALITY:
            raise TypeError("The dataset is infinite.")
        if count == UNKNOWN_CARDINALITY:
            raise TypeError("The dataset length is unknown.")
        return count

    def __bool__(self):
        return True

    def as_numpy_iterator(self):
        """Goes through it with NumPy arrays; not while a function is traced, which has none."""
        if _t.is_tracing():
            raise RuntimeError("as_numpy_iterator() is not supported while tracing functions")
        return self._arrays()

    def _arrays(self):
        for element in self:
            yield _nest.map_structure(lambda t: t.numpy(), element)

    def get_single_element(self, name=None):
        """The only element."""
        items = list(self.take(2)._iterate())
        if len(items) != 1:
            from ..errors import InvalidArgumentError

            raise InvalidArgumentError(None, None, "Dataset had more than one element." if items else "Dataset was empty.")
        return items[0]

    def options(self):
        """Its options."""
        return Options()

    def with_options(self, options, name=None):
        """Itself: see :class:`Options`."""
        return self

    def __repr__(self):
        return f"<{type(self).__name__.lstrip('_')} element_spec={self.element_spec}>"

    # Where elements come from.

    @staticmethod
    def from_tensors(tensors, name=None):
        """One element."""
        from .sources import One

        return One(as_element(tensors))

    @staticmethod
    def from_tensor_slices(tensors, name=None):
        """A row of each tensor an element."""
        from .rows import from_tensor_slices

        return from_tensor_slices(tensors)

    @staticmethod
    def range(*args, output_type="int64", name=None):
        """Numbers, as Python's ``range``."""
        from .sources import Range

        return Range(range(*(int(a) for a in args)), output_type)

    @staticmethod
    def from_generator(generator, output_types=None, output_shapes=None, args=None, output_signature=None, name=None):
        """What a generator gives; it is a callable that makes one, so that each pass starts anew."""
        from .sources import Generated

        return Generated(generator, output_types, output_shapes, args, output_signature)

    @staticmethod
    def list_files(file_pattern, shuffle=None, seed=None, name=None):
        """The names of files that match patterns, shuffled unless told otherwise."""
        from .sources import list_files

        return list_files(file_pattern, shuffle is None or shuffle, seed)

    @staticmethod
    @ignores("Dataset.random", "rerandomize_each_iteration")
    def random(seed=None, rerandomize_each_iteration=None, name=None):
        """Random numbers without an end."""
        from .sources import Random

        return Random(seed)

    @staticmethod
    def counter(start=0, step=1, dtype="int64", name=None):
        """Numbers without an end."""
        from .sources import Counter

        return Counter(start, step, dtype)

    @staticmethod
    def zip(*datasets, name=None):
        """Elements of several datasets side by side, up to the end of the shortest."""
        from .transforms import Zip

        return Zip(datasets[0] if len(datasets) == 1 and isinstance(datasets[0], (tuple, dict, list)) else datasets)

    @staticmethod
    def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=True):
        """Elements of several datasets, by a dataset of their numbers."""
        from .merges import Chosen

        return Chosen(datasets, choice_dataset, stop_on_empty_dataset)

    @staticmethod
    @ignores("Dataset.sample_from_datasets", "rerandomize_each_iteration")
    def sample_from_datasets(datasets, weights=None, seed=None, stop_on_empty_dataset=False, rerandomize_each_iteration=None):
        """Elements of several datasets at random, by weights."""
        from .merges import Sampled

        return Sampled(datasets, weights, seed, stop_on_empty_dataset)

    # What is made of elements.

    @ignores("Dataset.map", "synchronous", "use_unbounded_threadpool")
    def map(self, map_func, num_parallel_calls=None, deterministic=None, synchronous=None, use_unbounded_threadpool=None,
            name=None):
        """A function of each element; several at a time by threads, in order unless told otherwise."""
        from .transforms import Map

        return Map(self, map_func, num_parallel_calls, deterministic is not False)

    def filter(self, predicate, name=None):
        """The elements for which a function says so."""
        from .transforms import Filter

        return Filter(self, predicate)

    def flat_map(self, map_func, name=None):
        """The elements of datasets that a function makes of each element, one after the other."""
        from .merges import Interleave

        return Interleave(self, map_func, 1, 1)

    @ignores("Dataset.interleave", "deterministic")
    def interleave(self, map_func, cycle_length=None, block_length=1, num_parallel_calls=None, deterministic=None, name=None):
        """The same with several at a time, in turn."""
        from .merges import Interleave

        cycle = cycle_length if cycle_length and cycle_length > 0 else 2 if cycle_length is None else 4
        return Interleave(self, map_func, cycle, block_length, num_parallel_calls)

    def scan(self, initial_state, scan_func, name=None):
        """A function of a state and each element, to another state and what comes out."""
        from .transforms import Scan

        return Scan(self, initial_state, scan_func)

    def reduce(self, initial_state, reduce_func, name=None):
        """The last state of a function of a state and each element."""
        from .transforms import reduce

        return reduce(self, initial_state, reduce_func)

    def take_while(self, predicate, name=None):
        """The elements up to the first for which a function says no."""
        from .transforms import TakeWhile

        return TakeWhile(self, predicate)

    def enumerate(self, start=0, name=None):
        """Elements with their numbers."""
        return Dataset.zip(Dataset.counter(start), self)

    def apply(self, transformation_func):
        """What a function makes of the dataset."""
        made = transformation_func(self)
        if not isinstance(made, Dataset):
            raise TypeError(f"`transformation_func` must return a `tf.data.Dataset` object. Got {type(made)}.")
        return made

    # Batches.

    def batch(self, batch_size, drop_remainder=False, num_parallel_calls=None, deterministic=None, name=None):
        """So many elements as one, stacked."""
        from .batches import Batch

        return Batch(self, _positive(batch_size, "batch_size"), bool(drop_remainder))

    def padded_batch(self, batch_size, padded_shapes=None, padding_values=None, drop_remainder=False, name=None):
        """The same of elements whose lengths differ: filled up to the longest, or to a shape."""
        from .batches import PaddedBatch

        return PaddedBatch(self, _positive(batch_size, "batch_size"), padded_shapes, padding_values, bool(drop_remainder))

    def unbatch(self, name=None):
        """The rows of elements, one by one."""
        from .batches import Unbatch

        return Unbatch(self)

    def rebatch(self, batch_size, drop_remainder=False, name=None):
        """Batches of another size."""
        return self.unbatch().batch(batch_size, drop_remainder)

    def window(self, size, shift=None, stride=1, drop_remainder=False, name=None):
        """Datasets of so many elements each."""
        from .batches import Window

        size = _positive(size, "size")
        return Window(self, size, _positive(shift or size, "shift"), _positive(stride, "stride"), bool(drop_remainder))

    # Which elements, and when.

    def take(self, count, name=None):
        """The first elements; all of them for -1."""
        from .transforms import Take

        return Take(self, int(count))

    def skip(self, count, name=None):
        """All but the first elements."""
        from .transforms import Skip

        return Skip(self, int(count))

    def shard(self, num_shards, index, name=None):
        """Every so manyeth element."""
        from .transforms import Shard

        num_shards, index = int(num_shards), int(index)
        if not 0 <= index < num_shards:
            raise ValueError(f"index must be in [0, {num_shards}). Received: {index}")
        return Shard(self, num_shards, index)

    def repeat(self, count=None, name=None):
        """The elements so many times; without an end unless told."""
        from .transforms import Repeat

        return Repeat(self, None if count is None or int(count) < 0 else int(count))

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True, name=None):
        """Elements at random out of a buffer of so many; in another order at each pass unless told."""
        from .transforms import Shuffle

        return Shuffle(self, _positive(buffer_size, "buffer_size"), seed, reshuffle_each_iteration is not False)

    def concatenate(self, dataset, name=None):
        """The elements of another dataset after its own."""
        from .merges import Concatenate

        return Concatenate(self, dataset)

    def cache(self, filename="", name=None):
        """Keeps elements as they come, in memory that is counted and may be sent to a file under a limit; or in a file of a name."""
        from .keep import Cache, FileCache

        return FileCache(self, filename) if filename else Cache(self)

    def prefetch(self, buffer_size, name=None):
        """Makes elements ahead of time, by a thread."""
        from .keep import Prefetch

        return Prefetch(self, int(buffer_size))

    def unique(self, name=None):
        """Each element once."""
        from .transforms import Unique

        return Unique(self)

    @ignores("Dataset.ignore_errors", "log_warning")
    def ignore_errors(self, log_warning=False, name=None):
        """Without the elements that raise an error as they are made."""
        from .keep import IgnoreErrors

        return IgnoreErrors(self)


def _positive(value, what):
    value = int(value)
    if value <= 0:
        raise ValueError(f"`{what}` must be greater than 0. Received: {value}")
    return value
