"""Iterators: one pass through a dataset, outside of functions and inside of them.

Eagerly, ``next`` takes an element. While a function is traced there is no element yet: ``next`` becomes a step of the program, a
host callback that takes the next element each time the program comes there. Its results have the types of ``element_spec``, so
their bytes are in the plan; an iterator whose elements have open lengths cannot be planned, and the error says so.

An iterator that is an argument of a function goes in as its number, so that one trace serves all iterators of the same spec, and with its next
element, which is an argument like others then: the planner cuts it along its rows where a budget asks for that. Where elements
have open lengths, as with a last batch of fewer rows, that one alone may be taken: each length is a trace.
"""

import itertools
import threading
import weakref

from .. import _nest
from .. import _tonnage as _t
from .._shape import TensorSpec
from ..errors import DataDecideError, EndOfSequenceError, FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from .element import spec_of

_END = object()

# Iterators by the numbers that stand for them in programs.
_numbers = itertools.count()
_alive = weakref.WeakValueDictionary()

# The last call of a function on this thread that took an element.
_last_call = threading.local()


def took_elements():
    """Whether the call of a function that runs now took elements, or one inside of it did."""
    return getattr(_last_call, "number", 0) >= _t.call_number() > 0


class Iterator:
    """Goes through a dataset.

    >>> iterator = iter(tf.data.Dataset.range(3))
    >>> step = tf.function(lambda: next(iterator) * 10)
    >>> [int(step()) for _ in range(3)]
    [0, 10, 20]
    """

    # While a function is traced: the tensors of the next element, where that is an argument and was not taken.
    _first = None

    def __init__(self, dataset):
        self._dataset, self._items = dataset, dataset._iterate()
        self._peeked = []  # the next elements, where somebody looked at them
        self._offered = {}  # which of them a call on a thread was given as an argument
        self._turn = threading.RLock()
        self._latest = None  # the spec of the element that was looked at last
        self._key = None  # the spec of all elements as text, where it is static
        self._number = next(_numbers)
        _alive[self._number] = self

    @property
    def element_spec(self):
        """The spec of the elements."""
        return self._dataset.element_spec

    def __iter__(self):
        if _t.is_symbolic():
            raise TypeError("only AutoGraph's `for` goes through an iterator inside of a function, since its end is not known "
                            "while the function is traced; use next(iterator), or go through the dataset itself")
        return self

    def __next__(self):
        if _t.is_symbolic():
            return self._planned_next()
        found = self._take()
        if found is _END:
            raise EndOfSequenceError(None, None, "End of sequence")
        return _in_scope(found)

    def get_next(self):
        """The next element; an error at the end."""
        try:
            return next(self)
        except StopIteration:
            raise OutOfRangeError(None, None, "End of sequence") from None

    def get_next_as_optional(self):
        """The next element, or nothing at the end, as a :class:`tf.experimental.Optional`."""
        if not _t.is_symbolic():
            found = self._take()
            return Optional(_t.to_tensor(found is not _END, None, None), None if found is _END else _in_scope(found))
        spec, types = self._static_types()
        if (first := self._given()) is not None:
            [has_value] = self._step(lambda iterator: [_t.to_tensor(iterator._take_offered() is not _END, None, None)], [("bool", [])])
            return Optional(has_value, _nest.pack_sequence_as(spec, first))

        def take(iterator):
            found = iterator._take_in_call()
            if found is _END:
                return [_t.to_tensor(False, None, None), *(_t.fill(shape, 0, dtype) for dtype, shape in types)]
            return [_t.to_tensor(True, None, None), *_checked(found, spec, types)]

        has_value, *leaves = self._step(take, [("bool", []), *types])
        return Optional(has_value, _nest.pack_sequence_as(spec, leaves))

    def _take(self):
        """The next element, now; ``_END`` at the end."""
        with self._turn:
            return self._peeked.pop(0) if self._peeked else next(self._items, _END)

    def _has_next(self):
        """Whether there is another element, now."""
        with self._turn:
            if not self._peeked:
                self._peeked.append(next(self._items, _END))
            return self._peeked[0] is not _END

    # As steps of programs.

    def _step(self, run, results):
        """A step that calls ``run`` with the iterator; its results have these types."""
        return _t.host_callback(lambda _: run(self), [], results)

    def _take_in_call(self):
        """The next element, of a call that knows then that it cannot start again."""
        _last_call.number = _t.call_number()
        return self._take()

    def _offer(self):
        """The next element for a call on this thread: calls on other threads are given others."""
        with self._turn:
            thread = threading.get_ident()
            mine, others = self._offered.pop(thread, None), list(self._offered.values())
            for element in self._peeked:
                if element is mine or element is _END or not any(element is other for other in others):
                    break
            else:
                element = next(self._items, _END)
                self._peeked.append(element)
            self._offered[thread] = element
            return element

    def _take_offered(self):
        """The element that a call on this thread was given as an argument, which is taken now."""
        _last_call.number = _t.call_number()
        with self._turn:
            element = self._offered.pop(threading.get_ident(), None)
            at = next((i for i, other in enumerate(self._peeked) if other is element), None)
            if at is None:
                raise FailedPreconditionError(None, None, "an iterator that is an argument of a function gave an element to somebody else during "
                                                          "the call: take elements from the argument alone")
            return self._peeked.pop(at)

    def _handle(self):
        """Its number, as a value of the program."""
        if not _t.is_symbolic():
            return _t.to_tensor(self._number, "int64", None)
        # Not a constant: the step holds the iterator for as long as the program may run.
        return self._step(lambda iterator: [_t.to_tensor(iterator._number, "int64", None)], [("int64", [])])[0]

    def _given(self):
        """The tensors of the element that comes next, where it is an argument: once, and not in a body or a branch, which may run or not."""
        first, self._first = self._first, None
        return None if _t.is_in_region() else first

    def _tonnage_flatten(self):
        spec = self.element_spec
        if self._key is None and _is_static(spec):
            self._key = repr(spec)
        if _t.is_symbolic():
            self._first = None  # the function that is called may take it
            return [self._handle(), self._key or repr(spec)], lambda handle, _: _from_handle(handle, spec)
        element = self._offer()
        if self._key is not None:
            return [self._handle(), self._key, *_leaves(element, spec)], lambda handle, _, *first: _from_handle(handle, spec, None, first)
        if element is not _END:
            self._latest = _nest.map_structure(spec_of, element)
        # At the end like the one before: taking it is an error of either.
        found = spec if self._latest is None else self._latest
        return [self._handle(), "next", repr(found), *_leaves(element, found)], lambda handle, _, key, *first: _from_handle(handle, found, spec, first)

    def _static_types(self):
        spec = self.element_spec
        if not _is_static(spec):
            raise _open_lengths(spec)
        return spec, [(leaf.dtype, leaf.shape.as_list()) for leaf in _nest.flatten(spec)]

    def _planned_next(self):
        spec, types = self._static_types()
        first = self._given()

        def take(iterator):
            found = iterator._take_in_call() if first is None else iterator._take_offered()
            if found is _END:
                raise OutOfRangeError(None, None, "End of sequence")
            return _checked(found, spec, types) if first is None else []

        if first is not None:
            self._step(take, [])
            return _nest.pack_sequence_as(spec, first)
        return _nest.pack_sequence_as(spec, self._step(take, types))

    def _planned_has_next(self):
        """Whether there is another element, as a value of the program."""
        return self._step(lambda iterator: [_t.to_tensor(iterator._has_next(), None, None)], [("bool", [])])[0]


def _is_static(spec):
    """Whether the bytes of elements are known beforehand; those of strings are not."""
    return all(isinstance(leaf, TensorSpec) and leaf.shape.is_fully_defined() and leaf.dtype != "string" for leaf in _nest.flatten(spec))


def _leaves(element, spec):
    """The tensors of the next element; at the end zeros, which nobody gets."""
    kinds = _nest.flatten(spec)
    if not _is_static(spec):
        return []
    if element is _END:
        return [_t.fill(kind.shape.as_list(), 0, kind.dtype) for kind in kinds]
    leaves = _nest.flatten(element)
    fits = len(leaves) == len(kinds) and all(isinstance(leaf, _t.Tensor) and leaf.lengths == kind.shape.as_list() and leaf.dtype == kind.dtype
                                             for leaf, kind in zip(leaves, kinds))
    return leaves if fits else []  # otherwise taking it says what is wrong


def _open_lengths(spec):
    return DataDecideError(f"the type of an iterator's elements is {spec}, which is not known in full while a function is "
                           "traced: make it static, for instance with batch(..., drop_remainder=True)")


def _in_scope(element):
    """The element on the device of the scope that takes it; it may have been made by another thread, outside."""
    if not _t.in_device_scope():
        return element
    return _nest.map_structure(lambda leaf: _t.to_scope(leaf) if isinstance(leaf, _t.Tensor) else leaf, element)


def _checked(element, spec, types):
    """The tensors of an element, which must be as its spec says; where the spec is that of the first element, it may not hold."""
    leaves = _nest.flatten(element)
    if not all(isinstance(leaf, _t.Tensor) and leaf.lengths == lengths and leaf.dtype == dtype
               for leaf, (dtype, lengths) in zip(leaves, types, strict=True)):
        raise InvalidArgumentError(None, None, f"the iterator gave an element of {_nest.map_structure(spec_of, element)}, but its "
                                               f"element_spec is {spec}")
    return leaves


def _from_handle(handle, spec, open_spec=None, first=()):
    """The iterator of a number: itself, or while a function is traced what stands for it. Where there is an open spec, the other is that of
    the next element alone, and that may be given."""
    if not handle.is_symbolic:
        return _of_number(handle)
    made = Passed(handle, spec) if open_spec is None else Next(handle, spec, open_spec)
    made._first = list(first) or None
    return made


def _of_number(handle):
    found = _alive.get(int(handle))
    if found is None:
        raise FailedPreconditionError(None, None, "the iterator of this program is gone: a function that goes through a dataset was "
                                                  "called again from within itself")
    return found


class Passed(Iterator):
    """An iterator that a program knows by a number: any of the same spec."""

    def __init__(self, handle, spec):
        self._number_value, self._spec, self._key = handle, spec, None

    @property
    def element_spec(self):
        """The spec of the elements."""
        return self._spec

    def _handle(self):
        return self._number_value

    def _step(self, run, results):
        return _t.host_callback(lambda values: run(_of_number(values[0])), [self._number_value], results)


class Next(Passed):
    """The same where the type of the next element alone is known: one may be taken, and not in a loop."""

    def __init__(self, handle, spec, open_spec, taken=None):
        super().__init__(handle, spec)
        self._open_spec, self._taken = open_spec, [] if taken is None else taken

    def _tonnage_flatten(self):
        self._first = None  # the function that is called may take it
        return [self._handle(), "next", repr(self._spec)], lambda handle, *_: Next(handle, self._spec, self._open_spec, self._taken)

    def _static_types(self):
        if self._taken or _t.is_in_region():
            raise _open_lengths(self._open_spec)
        self._taken.append(True)
        return super()._static_types()


class Unrolled(Passed):
    """What ``iter(dataset)`` is while a function is traced. A Python loop over it is unrolled by the elements of a pass that is
    made for the trace; each call of the function makes a pass of its own. Where that has other types or another number of elements,
    the function runs op by op."""

    def __init__(self, dataset):
        self._dataset, self._items = dataset, dataset._iterate()
        running = threading.local()

        def begin(_):
            # One a thread, so that a call that ends early leaves no more than that.
            running.iterator = Iterator(dataset)
            return [_t.to_tensor(running.iterator._number, "int64", None)]

        super().__init__(_t.host_callback(begin, [], [("int64", [])])[0], None)

    @property
    def element_spec(self):
        """The spec of the elements."""
        return self._dataset.element_spec

    def __iter__(self):
        return self

    def _planned_next(self):
        example = _t.call_eagerly(lambda: next(self._items, _END))
        if example is _END:
            self._step(_check_end, [])
            raise StopIteration
        kinds = [spec_of(leaf) for leaf in _nest.flatten(example)]
        if not all(isinstance(kind, TensorSpec) and kind.dtype != "string" for kind in kinds):
            raise DataDecideError(_UNSTABLE)

        def take(iterator):
            leaves = _nest.flatten(iterator._take())
            found = [spec_of(leaf) for leaf in leaves if leaf is not _END]
            if found != kinds:
                raise DataDecideError(_UNSTABLE)
            return leaves

        return _nest.pack_sequence_as(example, self._step(take, [(kind.dtype, kind.shape.as_list()) for kind in kinds]))


_UNSTABLE = "what a dataset has in each pass, the number and the types of its elements,"


def _check_end(iterator):
    if iterator._has_next():
        raise DataDecideError(_UNSTABLE)
    return []


def loops_at_run_time(value):
    """Whether a loop over it cannot be unrolled, since only the program that runs finds its end."""
    if isinstance(value, Unrolled):
        value = value._dataset
    return isinstance(value, Iterator) or hasattr(value, "_iterate") and value._count() == -1


def in_a_trace(value):
    """What ``iter`` gives of it while a function is traced, where what follows is no Python loop."""
    if isinstance(value, Iterator):
        return value
    return Unrolled(value) if hasattr(value, "_iterate") else iter(value)


def _as_tensor(leaf):
    return _t.to_tensor(leaf, None, None) if isinstance(leaf, (bool, int, float)) else leaf


def _zeros(spec):
    if not _is_static(spec):
        raise _open_lengths(spec)
    return _t.fill(spec.shape.as_list(), 0, spec.dtype)


class Optional:
    """A value or none: what :meth:`Iterator.get_next_as_optional` gives."""

    # A loop that runs at once may carry one that has a value in one iteration and none in the next.
    _changes_structure = True

    def __init__(self, has_value, value):
        self._has_value, self._value = has_value, value

    @classmethod
    def from_value(cls, value):
        """One that has a value."""
        return cls(_t.to_tensor(True, None, None), _nest.map_structure(_as_tensor, value))

    @classmethod
    def empty(cls, element_spec):
        """One that has none; values would be of that spec."""
        made = cls(_t.to_tensor(False, None, None), None)
        made._element_spec = element_spec
        return made

    @property
    def element_spec(self):
        """The spec of the value."""
        spec = getattr(self, "_element_spec", None)
        return _nest.map_structure(spec_of, self._value) if spec is None and self._value is not None else spec

    def has_value(self, name=None):
        """Whether there is a value, as a boolean tensor."""
        return self._has_value

    def get_value(self, name=None):
        """The value; an error where there is none."""
        if self._has_value.is_symbolic:
            from ..debugging import Assert

            Assert(self._has_value, ["Optional has no value."])
        elif not self._has_value:
            raise InvalidArgumentError(None, None, "Optional has no value.")
        return self._value

    @property
    def is_shaped(self):
        """Whether it is known what a value is like. In a program one without a value holds zeros, so that it is like one with a value."""
        return self.element_spec is not None

    def blank(self):
        """One like it without a value: what a loop begins with where the first iteration makes it."""
        return Optional.empty(self.element_spec)

    def _tonnage_flatten(self):
        value = self._value
        if value is None and _t.is_symbolic():
            if not self.is_shaped:
                raise DataDecideError("what an Optional without a value would hold")
            value = _nest.map_structure(_zeros, self.element_spec)
        if value is None:
            return [self._has_value], lambda has_value: Optional(has_value, None)
        return [self._has_value, value], Optional
