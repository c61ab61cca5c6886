"""The dataset: a stream of elements, and all that makes another one of it. What runs is the extension's ``Pipeline``; here are TensorFlow's
names and defaults, and what is known of elements before they come (``specs``).
"""

from types import SimpleNamespace

from .. import _nest
from .. import _tonnage as _t
from . import specs
from .element import DatasetSpec, Traced, as_element, spec_of, spread
from .iterator import Iterator, Unrolled
from .order import Dice, threads
from .._notices import ignores

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


AUTO_SHARD = SimpleNamespace(OFF=-1, AUTO=0, FILE=1, DATA=2, HINT=3)


class Options:
    """Options of a dataset, as TensorFlow has them. ``experimental_distribute.auto_shard_policy`` says how a strategy of several replicas splits it.
    All others say how TensorFlow should run it, and nothing here: order is always kept unless ``map(deterministic=False)`` says otherwise, and threads
    are those that are asked for."""

    def __init__(self):
        self.deterministic = None
        self.autotune, self.threading, self.experimental_optimization = SimpleNamespace(), SimpleNamespace(), SimpleNamespace()
        self.experimental_distribute = SimpleNamespace(auto_shard_policy=AUTO_SHARD.AUTO)


class DatasetV2:
    """What datasets are to those who look for TensorFlow's own class by its name."""


class Dataset(DatasetV2):
    """A stream of elements: tensors, or nested ones.

    >>> data = tf.data.Dataset.from_tensor_slices([1, 2, 3, 4]).map(lambda x: x * 10).batch(3)
    >>> [batch.numpy().tolist() for batch in data]
    [[10, 20, 30], [40]]
    """

    # Whether threads make its elements before they are asked for.
    _is_ahead = False
    # Whether its rows are those of one replica already.
    _is_of_rank = False

    def _set(self, pipeline, find_spec, *held):
        """Is that pipeline from here on. ``find_spec`` says the spec of its elements, and is none where the first one has to tell. ``held`` are the
        callables of the pipeline, and the datasets that it is made of: the pipeline refers to its callables weakly."""
        self._pipeline, self._find_spec, self._held, self._spec = pipeline, find_spec, held, None
        # How it is split among replicas: as what it is made of.
        self._shard_policy = next((one._shard_policy for one in held if isinstance(one, Dataset)), AUTO_SHARD.AUTO)
        return self

    @staticmethod
    def _of(pipeline, find_spec, *held):
        return object.__new__(Dataset)._set(pipeline, find_spec, *held)

    def _like(self, pipeline, *held):
        """Another one whose elements have the same spec."""
        return Dataset._of(pipeline, lambda: self.element_spec, self, *held)

    def _iterate(self):
        """Its elements, from the start."""
        return self._pipeline.iterate(self)

    def _count(self):
        """How many elements it has."""
        return self._pipeline.count()

    def _first_spec(self):
        """The spec of its first element."""
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
            found = None if self._find_spec is None else _t.call_eagerly(self._find_spec)
            self._spec = _t.call_eagerly(self._first_spec) if found is None else found
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
        made = Options()
        made.experimental_distribute.auto_shard_policy = self._shard_policy
        return made

    def with_options(self, options, name=None):
        """The same with other options: see :class:`Options`."""
        made = self._like(self._pipeline)
        made._shard_policy = int(getattr(options.experimental_distribute, "auto_shard_policy", AUTO_SHARD.AUTO))
        return made

    def _of_rank(self, world):
        """Of each batch the rows of one rank; or all of them in batches as small, where it is not to be split."""
        if self._shard_policy == AUTO_SHARD.FILE:
            raise ValueError("AutoShardPolicy.FILE: files are not split among ranks here; use DATA, or give each rank its files in "
                             "distribute_datasets_from_function")
        if self._shard_policy == AUTO_SHARD.OFF:
            pipeline = self._pipeline.parts_of_batches(world.size)
        else:
            pipeline = self._pipeline.part_of_batches(world.rank, world.size)
        made = Dataset._of(pipeline, lambda: specs.parted(self.element_spec, world.size), self)
        made._is_of_rank = True
        return made

    def __repr__(self):
        return f"<{type(self).__name__} element_spec={self.element_spec}>"

    # Where elements come from.

    @staticmethod
    def from_tensors(tensors, name=None):
        """One element."""
        from .sources import listed

        return listed([as_element(tensors)])

    @staticmethod
    def from_tensor_slices(tensors, name=None):
        """A row of each tensor an element."""
        from .sources import from_tensor_slices

        return from_tensor_slices(tensors)

    @staticmethod
    def range(*args, output_type="int64", name=None):
        """Numbers, as Python's ``range``."""
        from .sources import numbers

        wanted = range(*(int(a) for a in args))
        return numbers(output_type, wanted.start, wanted.stop, wanted.step)

    @staticmethod
    def from_generator(generator, output_types=None, output_shapes=None, args=None, output_signature=None, name=None):
        """What a generator gives; it is a callable that makes one, so that each pass starts anew."""
        from .sources import Generated

        return Generated(generator, output_types, output_shapes, args, output_signature).dataset()

    @staticmethod
    def list_files(file_pattern, shuffle=None, seed=None, name=None):
        """The names of files that match patterns, shuffled unless told otherwise."""
        from .sources import list_files

        return list_files(file_pattern, shuffle is None or shuffle, seed)

    @staticmethod
    @ignores("Dataset.random", "rerandomize_each_iteration")
    def random(seed=None, rerandomize_each_iteration=None, name=None):
        """Random numbers without an end."""
        from .sources import random

        return random(seed)

    @staticmethod
    def counter(start=0, step=1, dtype="int64", name=None):
        """Numbers without an end."""
        from .sources import numbers

        return numbers(dtype, int(start), None, int(step))

    @staticmethod
    def zip(*datasets, name=None):
        """Elements of several datasets side by side, up to the end of the shortest."""
        from .sources import zipped

        return zipped(datasets[0] if len(datasets) == 1 and isinstance(datasets[0], (tuple, dict, list)) else datasets)

    @staticmethod
    def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=True):
        """Elements of several datasets, by a dataset of their numbers."""
        from .sources import chosen

        return chosen(datasets, choice_dataset, stop_on_empty_dataset)

    @staticmethod
    @ignores("Dataset.sample_from_datasets", "rerandomize_each_iteration")
    def sample_from_datasets(datasets, weights=None, seed=None, stop_on_empty_dataset=False, rerandomize_each_iteration=None):
        """Elements of several datasets at random, by weights."""
        from .sources import sampled

        return sampled(datasets, weights, seed, stop_on_empty_dataset)

    # What is made of elements.

    @ignores("Dataset.map", "synchronous", "use_unbounded_threadpool")
    def map(self, map_func, num_parallel_calls=None, deterministic=None, synchronous=None, use_unbounded_threadpool=None,
            name=None):
        """A function of each element; several at a time by threads, in order unless told otherwise."""
        function = Traced(map_func)
        call = function.of
        pipeline = self._pipeline.map(call, threads(num_parallel_calls), deterministic is not False)
        made = Dataset._of(pipeline, lambda: function.spec(self.element_spec), self, call)
        made._is_ahead = threads(num_parallel_calls) > 1
        return made

    def filter(self, predicate, name=None):
        """The elements for which a function says so."""
        call = Traced(predicate).says
        return self._like(self._pipeline.filter(call), call)

    def flat_map(self, map_func, name=None):
        """The elements of datasets that a function makes of each element, one after the other."""
        return self._interleaved(map_func, 1, 1, None)

    @ignores("Dataset.interleave", "deterministic")
    def interleave(self, map_func, cycle_length=None, block_length=1, num_parallel_calls=None, deterministic=None, name=None):
        """The same with several at a time, in turn."""
        cycle = cycle_length if cycle_length and cycle_length > 0 else 2 if cycle_length is None else 4
        return self._interleaved(map_func, int(cycle), int(block_length), num_parallel_calls)

    def _interleaved(self, map_func, cycle, block, parallel):
        def made(element):
            dataset = spread(map_func, element)
            if not isinstance(dataset, Dataset):
                raise TypeError(f"The `map_func` argument must return a `Dataset` object. Got {type(dataset)}.")
            return dataset

        def spec():
            first = next(self._iterate(), None)
            return None if first is None else made(first).element_spec

        return Dataset._of(self._pipeline.interleave(made, cycle, block, threads(parallel)), spec, self, made)

    def scan(self, initial_state, scan_func, name=None):
        """A function of a state and each element, to another state and what comes out."""
        call = Traced(scan_func).next_state
        return Dataset._of(self._pipeline.scan(as_element(initial_state), call), None, self, call)

    def reduce(self, initial_state, reduce_func, name=None):
        """The last state of a function of a state and each element."""
        state, function = as_element(initial_state), Traced(reduce_func)
        for element in self:
            state = function.same_state(state, function(state, element), "reduce_func")
        return state

    def take_while(self, predicate, name=None):
        """The elements up to the first for which a function says no."""
        call = Traced(predicate).says
        return self._like(self._pipeline.take_while(call), call)

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
        size, drop = _positive(batch_size, "batch_size"), bool(drop_remainder)
        return Dataset._of(self._pipeline.batch(size, drop), lambda: specs.batch(self, size, drop), self)

    def padded_batch(self, batch_size, padded_shapes=None, padding_values=None, drop_remainder=False, name=None):
        """The same of elements whose lengths differ: filled up to the longest, or to a shape."""
        size, drop = _positive(batch_size, "batch_size"), bool(drop_remainder)

        def padding(element):
            return specs.padding(element, padded_shapes, padding_values)

        return Dataset._of(self._pipeline.padded_batch(size, drop, padding),
                           lambda: specs.padded_batch(self, size, padded_shapes, drop), self, padding)

    def unbatch(self, name=None):
        """The rows of elements, one by one."""
        pipeline, count = self._pipeline.unbatch(), self._count()
        if count > 0:
            length = specs.first_length(self)
            pipeline = pipeline if length is None else pipeline.with_count(count * length)
        return Dataset._of(pipeline, lambda: specs.rows(self), self)

    def rebatch(self, batch_size, drop_remainder=False, name=None):
        """Batches of another size."""
        return self.unbatch().batch(batch_size, drop_remainder)

    def window(self, size, shift=None, stride=1, drop_remainder=False, name=None):
        """Datasets of so many elements each."""
        from .sources import columns

        size = _positive(size, "size")
        steps = size, _positive(shift or size, "shift"), _positive(stride, "stride")

        def made(elements):
            return columns(elements, self.element_spec)

        return Dataset._of(self._pipeline.window(steps, bool(drop_remainder), made),
                           lambda: _nest.map_structure(DatasetSpec, self.element_spec), self, made)

    # Which elements, and when.

    def take(self, count, name=None):
        """The first elements; all of them for -1."""
        count = int(count)
        return self if count < 0 else self._like(self._pipeline.take(count))

    def skip(self, count, name=None):
        """All but the first elements; none of them for -1."""
        count = int(count)
        return self._like(self._pipeline.take(0) if count < 0 else self._pipeline.skip(count))

    def shard(self, num_shards, index, name=None):
        """Every so manyeth element."""
        num_shards, index = int(num_shards), int(index)
        if not 0 <= index < num_shards:
            raise ValueError(f"index must be in [0, {num_shards}). Received: {index}")
        return self._like(self._pipeline.shard(num_shards, index))

    def repeat(self, count=None, name=None):
        """The elements so many times; without an end unless told."""
        return self._like(self._pipeline.repeat(None if count is None or int(count) < 0 else int(count)))

    def shuffle(self, buffer_size, seed=None, reshuffle_each_iteration=True, name=None):
        """Elements at random out of a buffer of so many; in another order at each pass unless told."""
        dice = Dice(seed, reshuffle_each_iteration is not False)
        return self._like(self._pipeline.shuffle(_positive(buffer_size, "buffer_size"), dice), dice)

    def concatenate(self, dataset, name=None):
        """The elements of another dataset after its own."""
        return Dataset._of(self._pipeline.concatenate(dataset._pipeline), lambda: specs.either(self, dataset), self, dataset)

    def cache(self, filename="", name=None):
        """Keeps elements as they come, in memory that is counted and may be sent to a file under a limit; or in a file of a name."""
        if not filename:
            return self._like(self._pipeline.cache())
        import os

        def like():
            return _nest.map_structure(lambda spec: "" if spec.dtype == "string" else 0, self.element_spec)

        return self._like(self._pipeline.cache_file(os.fspath(filename), like), like)

    def prefetch(self, buffer_size, name=None):
        """Makes elements ahead of time, by a thread. Where the number is left to us (``tf.data.AUTOTUNE``), elements that threads of ``map`` make
        are ahead already: no more of them are held."""
        count = int(buffer_size)
        if count < -1:
            raise ValueError(f"`buffer_size` must be positive or tf.data.AUTOTUNE. Received: {count}")
        if count == 0 or count == -1 and self._is_ahead:
            return self
        return self._like(self._pipeline.prefetch(2 if count == -1 else count))

    def unique(self, name=None):
        """Each element once."""
        return self._like(self._pipeline.unique())

    @ignores("Dataset.ignore_errors", "log_warning")
    def ignore_errors(self, log_warning=False, name=None):
        """Without the elements that raise an error as they are made."""
        return self._like(self._pipeline.ignore_errors((ArithmeticError, ValueError, RuntimeError)))


def _positive(value, what):
    value = int(value)
    if value <= 0:
        raise ValueError(f"`{what}` must be greater than 0. Received: {value}")
    return value
