"""Where elements come from. What is no tensor in memory is made in Python, and called back for."""

import glob as _glob
import itertools
import os

import numpy as np

from .. import _nest
from .. import _tonnage as _t
from .._shape import TensorShape, TensorSpec
from ..errors import DTypeError, InvalidArgumentError, invalid
from .dataset import Dataset
from .element import PLACE, as_element
from .order import Dice
from .._notices import ignores


def listed(elements, spec=None):
    """Elements in memory."""
    return Dataset._of(_t.Pipeline.of_elements(elements), None if spec is None else lambda: spec)


def from_tensor_slices(tensors):
    """A row of each tensor an element."""
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
    spec = _nest.map_structure(lambda t: TensorSpec(t.lengths[1:], t.dtype), tensors)
    return Dataset._of(_t.Pipeline.of_rows(tensors), lambda: spec)


def numbers(dtype, start, stop, step):
    """Numbers in steps, without an end where there is none."""
    dtype = _t.DType(dtype)
    return Dataset._of(_t.Pipeline.of_numbers(dtype, start, stop, step), lambda: TensorSpec([], dtype))


class Passes:
    """The generators of a function that run now: held here, where Python's garbage collection sees them."""

    def __init__(self, function):
        self._function, self._running = function, set()

    def __call__(self):
        """Begins one."""
        made = self._function()
        self._running.add(made)
        return made

    def end(self, made):
        """Gives one up."""
        self._running.discard(made)


def generated(function, find_spec=None):
    """What the generators of a function give."""
    passes = Passes(function)
    return Dataset._of(_t.Pipeline.of_generators(passes), find_spec, passes)


def random(seed):
    """Random numbers without an end."""
    dice = Dice(seed, False)

    def drawn():
        generator = dice.start()
        while True:
            yield _t.to_tensor(int(generator.integers(0, 2**32)), "int64", None)

    # It does not end, as its count should say.
    return generated(drawn, lambda: TensorSpec([], "int64")).repeat()


def zipped(datasets):
    """Elements of several datasets side by side."""
    datasets = tuple(datasets) if isinstance(datasets, list) else datasets
    flat = _nest.flatten(datasets)
    for part in flat:
        if not isinstance(part, Dataset):
            raise TypeError(f"The argument to `Dataset.zip()` must be a (nested) structure of `Dataset` objects. Got {type(part)}.")
    pipeline = _t.Pipeline.zip([part._pipeline for part in flat], _nest.map_structure(lambda _: PLACE, datasets))
    return Dataset._of(pipeline, lambda: _nest.map_structure(lambda d: d.element_spec, datasets), flat)


def chosen(datasets, choices, stop):
    """Elements of several datasets, by a dataset of their numbers."""
    datasets = list(datasets)
    pipeline = _t.Pipeline.choose([d._pipeline for d in datasets], choices._pipeline, bool(stop))
    return Dataset._of(pipeline, lambda: datasets[0].element_spec, datasets, choices)


def sampled(datasets, weights, seed, stop):
    """Elements of several datasets at random."""
    datasets = list(datasets)
    count = len(datasets)
    weights = [1.0 / count] * count if weights is None else [float(w) for w in _nest.flatten(list(weights))]
    if len(weights) != count or min(weights) < 0 or not sum(weights):
        raise ValueError(f"{weights} are no weights of {count} datasets")
    shares, dice = [w / sum(weights) for w in weights], Dice(seed, True)

    def drawn():
        generator = dice.start()
        while True:
            yield _t.to_tensor(int(generator.choice(count, p=shares)), "int64", None)

    return chosen(datasets, generated(drawn), stop)


def columns(elements, spec):
    """Elements as a dataset for each of their parts."""
    flat = [_nest.flatten(e) for e in elements]
    parts = [listed(list(column), s) for column, s in zip(zip(*flat), _nest.flatten(spec))]
    return _nest.pack_sequence_as(elements[0], parts)


class Generated:
    """What a generator gives."""

    def __init__(self, generator, types, shapes, args, signature):
        if not callable(generator):
            raise TypeError("`generator` must be a Python callable.")
        self._make, self._args = generator, tuple(args or ())
        self._wanted = signature
        if signature is None and types is not None:
            self._wanted = _nest.map_structure(_Type, types) if shapes is None else _nest.pack_sequence_as(
                types, [TensorSpec(s, t) for t, s in zip(_nest.flatten(types), _shapes(types, shapes))])

    def dataset(self):
        """As a dataset."""
        return generated(self.items, self._spec)

    def _spec(self):
        leaves = _nest.flatten(self._wanted)
        return self._wanted if self._wanted is not None and all(isinstance(s, TensorSpec) for s in leaves) else None

    def items(self):
        """What it gives in one pass."""
        try:
            items = iter(self._make(*self._args))
        except TypeError as error:
            raise TypeError(f"`generator` must return an iterable: {error}") from error
        for number in itertools.count():
            try:
                item = next(items)
            except StopIteration:
                return
            except InvalidArgumentError:
                raise
            except Exception as error:
                raise invalid(error) from error
            yield self._checked(item, number)

    def _checked(self, item, number):
        if self._wanted is None:
            return as_element(tuple(item) if isinstance(item, list) else item)
        if isinstance(self._wanted, (tuple, dict)) and isinstance(item, list):
            item = tuple(item)
        try:
            _nest.assert_same_structure(self._wanted, _outer(self._wanted, item))
        except (ValueError, TypeError):
            raise DTypeError(None, None, f"`generator` yielded an element that did not match the expected structure. The expected structure was "
                             f"{self._wanted}, but the yielded element {number} was {item!r:.80}.") from None
        return _zipped(self._wanted, item, lambda s, v: self._leaf(s, v, number))

    @staticmethod
    def _leaf(spec, value, number):
        try:
            is_text = spec.dtype == "string" or isinstance(value, _t.Tensor)
            tensor = _t.to_tensor(value if is_text else np.asarray(value), None, None)
            tensor = tensor if tensor.dtype == spec.dtype else _t.cast(tensor, spec.dtype)
        except (TypeError, ValueError, NotImplementedError) as error:
            raise DTypeError(None, None, f"`generator` yielded an element that could not be converted to the expected type. The expected type was "
                             f"{spec.dtype.name}, but the yielded element {number} was {value!r:.80}.") from error
        if isinstance(spec, TensorSpec) and not spec.shape.is_compatible_with(tensor.shape):
            raise DTypeError(None, None, f"`generator` yielded an element of shape {tuple(tensor.shape)} where an element of shape "
                             f"{tuple(spec.shape)} was expected (element {number}).")
        return tensor


class _Type:
    """A dtype without a shape."""

    def __init__(self, dtype):
        self.dtype = _t.DType(dtype)


def _shapes(types, shapes):
    if not isinstance(types, (tuple, dict)):
        return [shapes]
    if isinstance(types, dict):
        return [TensorShape(shapes[k]) for k in sorted(types)]
    return [TensorShape(s) for s in shapes]


def _outer(spec, value):
    """The value nested no deeper than its spec."""
    if isinstance(spec, dict) and isinstance(value, dict):
        return {k: _outer(spec[k], value[k]) if k in spec else 0 for k in value}
    if isinstance(spec, tuple) and isinstance(value, tuple):
        return tuple(_outer(s, v) for s, v in zip(spec, value)) + tuple(0 for _ in value[len(spec):])
    return 0 if not isinstance(spec, (dict, tuple)) else value


def _zipped(spec, value, make):
    if isinstance(spec, dict):
        return {k: _zipped(spec[k], value[k], make) for k in spec}
    if isinstance(spec, tuple):
        return tuple(_zipped(s, v, make) for s, v in zip(spec, value))
    return make(spec, value)


def _listed(names):
    """Names of files, of which one alone may be given; those of a tensor as bytes."""
    if isinstance(names, (str, bytes, os.PathLike)):
        return [names]
    return np.ravel(names.numpy()).tolist() if isinstance(names, _t.Tensor) else [name.item() if isinstance(name, _t.Tensor) else name for name in names]


def list_files(pattern, shuffle, seed):
    """The names of files that match patterns."""
    patterns = [os.fsdecode(p) for p in _listed(pattern)]
    found = sorted({name for p in patterns for name in _glob.glob(p)})
    if not found:
        raise InvalidArgumentError(None, None, f"No files matched pattern: {', '.join(patterns)}")
    made = from_tensor_slices(found)
    return made.shuffle(len(found), seed) if shuffle else made


class TextLineDataset(Dataset):
    """The lines of files, as strings."""

    @ignores("TextLineDataset", "buffer_size", "num_parallel_reads")
    def __init__(self, filenames, compression_type=None, buffer_size=None, num_parallel_reads=None, name=None):
        if compression_type:
            raise ValueError("compressed files are not there")
        names = [os.fsdecode(name) for name in _listed(filenames)]

        def lines():
            for name in names:
                try:
                    with open(name, "rb") as file:
                        for line in file:
                            yield line.removesuffix(b"\n").removesuffix(b"\r")
                except FileNotFoundError:
                    from ..errors import NotFoundError

                    raise NotFoundError(None, None, f"{name}; No such file or directory") from None

        passes = Passes(lines)
        self._set(_t.Pipeline.of_generators(passes), lambda: TensorSpec([], "string"), passes)
