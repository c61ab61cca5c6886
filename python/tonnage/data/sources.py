"""Where elements come from, besides tensors."""

import glob as _glob
import itertools
import os

import numpy as np

from .. import _nest
from .. import _tonnage as _t
from .._shape import TensorShape, TensorSpec
from ..errors import DTypeError, InvalidArgumentError, invalid
from .dataset import INFINITE_CARDINALITY, Dataset
from .element import Text, as_element, spec_of
from .transforms import Dice
from .._notices import ignores


class One(Dataset):
    """One element."""

    def __init__(self, element):
        self._element = element

    def _iterate(self):
        yield self._element

    def _count(self):
        return 1

    def _find_spec(self):
        return _nest.map_structure(spec_of, self._element)


class Listed(Dataset):
    """Elements in memory."""

    def __init__(self, elements, spec=None):
        self._elements, self._spec = elements, spec

    def _iterate(self):
        return iter(self._elements)

    def _count(self):
        return len(self._elements)


class Range(Dataset):
    """Numbers, as Python's ``range``."""

    def __init__(self, numbers, dtype):
        self._numbers, self._dtype = numbers, _t.DType(dtype)

    def _iterate(self):
        return (_t.to_tensor(n, self._dtype, None) for n in self._numbers)

    def _count(self):
        return len(self._numbers)

    def _find_spec(self):
        return TensorSpec([], self._dtype)


class Counter(Dataset):
    """Numbers without an end."""

    def __init__(self, start, step, dtype):
        self._start, self._step, self._dtype = int(start), int(step), _t.DType(dtype)

    def _iterate(self):
        number = self._start
        while True:
            yield _t.to_tensor(number, self._dtype, None)
            number += self._step

    def _count(self):
        return INFINITE_CARDINALITY

    def _find_spec(self):
        return TensorSpec([], self._dtype)


class Random(Dataset):
    """Random numbers without an end."""

    def __init__(self, seed):
        self._dice = Dice(seed, False)

    def _iterate(self):
        dice = self._dice.start()
        while True:
            yield _t.to_tensor(int(dice.integers(0, 2**32)), "int64", None)

    def _count(self):
        return INFINITE_CARDINALITY

    def _find_spec(self):
        return TensorSpec([], "int64")


class Generated(Dataset):
    """What a generator gives."""

    def __init__(self, generator, types, shapes, args, signature):
        if not callable(generator):
            raise TypeError("`generator` must be a Python callable.")
        self._make, self._args = generator, tuple(args or ())
        self._wanted = signature
        if signature is None and types is not None:
            self._wanted = _nest.map_structure(_Type, types) if shapes is None else _nest.pack_sequence_as(
                types, [TensorSpec(s, t) for t, s in zip(_nest.flatten(types), _shapes(types, shapes))])

    def _find_spec(self):
        leaves = _nest.flatten(self._wanted)
        if self._wanted is not None and all(isinstance(s, TensorSpec) for s in leaves):
            return self._wanted
        return super()._find_spec()

    def _iterate(self):
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
        if spec.dtype == "string" or isinstance(value, (str, bytes)):
            return as_element(value)
        try:
            tensor = _t.to_tensor(np.asarray(value) if not isinstance(value, _t.Tensor) else value, None, None)
            tensor = tensor if tensor.dtype == spec.dtype else _t.cast(tensor, spec.dtype)
        except (TypeError, ValueError) as error:
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


def list_files(pattern, shuffle, seed):
    """The names of files that match patterns."""
    patterns = [pattern] if isinstance(pattern, (str, os.PathLike)) else list(pattern)
    found = sorted({name for p in patterns for name in _glob.glob(os.fspath(p))})
    if not found:
        raise InvalidArgumentError(None, None, f"No files matched pattern: {', '.join(os.fspath(p) for p in patterns)}")
    made = Listed([Text(name) for name in found])
    return made.shuffle(len(found), seed) if shuffle else made


class TextLineDataset(Dataset):
    """The lines of files, as texts."""

    @ignores("TextLineDataset", "buffer_size", "num_parallel_reads")
    def __init__(self, filenames, compression_type=None, buffer_size=None, num_parallel_reads=None, name=None):
        if compression_type:
            raise ValueError("compressed files are not there")
        self._names = [filenames] if isinstance(filenames, (str, os.PathLike)) else list(filenames)

    def _iterate(self):
        for name in self._names:
            try:
                with open(os.fspath(name), encoding="utf-8") as file:
                    for line in file:
                        yield Text(line.rstrip("\r\n"))
            except FileNotFoundError:
                from ..errors import NotFoundError

                raise NotFoundError(None, None, f"{name}; No such file or directory") from None
