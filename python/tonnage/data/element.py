"""Elements: nested tensors; their specs; what functions of the user make of them."""

import threading

from .. import _nest
from .. import _tonnage as _t
from .._function import Function
from .._shape import StandIn, TensorSpec
from ..errors import DataDecideError, OperatorNotAllowedInGraphError


# Where an element of another dataset goes.
PLACE = object()


class DatasetSpec:
    """The spec of a dataset that is an element of another."""

    def __init__(self, element_spec):
        self.element_spec = element_spec

    def __eq__(self, other):
        return isinstance(other, DatasetSpec) and self.element_spec == other.element_spec

    def __hash__(self):
        return hash(repr(self))

    def __repr__(self):
        return f"DatasetSpec({self.element_spec})"


def as_element(value):
    """Anything nested, as tensors; lists are tensors, as TensorFlow has it."""
    if isinstance(value, dict):
        return {k: as_element(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return value._make(map(as_element, value)) if hasattr(value, "_make") else tuple(map(as_element, value))
    return leaf(value)


def leaf(value):
    """One tensor."""
    from .dataset import Dataset

    if isinstance(value, (_t.Tensor, Dataset)) or value is PLACE:
        return value
    if isinstance(value, StandIn) and hasattr(value, "_tonnage_flatten"):
        raise TypeError(f"a {type(value).__name__} cannot be an element of a dataset: make it dense, for instance with tf.sparse.to_dense")
    return _t.to_tensor(value, None, None)


def spec_of(value):
    """The spec of a tensor or a dataset."""
    from .dataset import Dataset

    if isinstance(value, Dataset):
        return DatasetSpec(value.element_spec)
    return TensorSpec(value.shape, value.dtype)


def is_plain(element):
    """Whether it is tensors alone, so that a function of it can be traced."""
    return all(isinstance(part, _t.Tensor) for part in _nest.flatten(element))


def spread(function, element):
    """Calls a function as ``map`` does: a tuple is several arguments."""
    return function(*element) if isinstance(element, tuple) and not hasattr(element, "_make") else function(element)


class Traced:
    """A function of the user over elements: planned once for each type of element. Elements that are not tensors alone are handed
    to it as they are."""

    def __init__(self, function):
        if not callable(function):
            raise TypeError(f"a function is needed, not {function!r:.60}")
        self._planned = function if isinstance(function, _t.Function) else Function(function, reduce_retracing=True)
        self._plain = getattr(function, "python_function", function)
        self._first = threading.RLock()

    def __call__(self, *parts):
        call = self._planned if all(is_plain(part) for part in parts) else self._plain
        first = self._first
        if first is None:
            return call(*parts)
        # The first call runs Python, and builds Keras' layers for instance: one thread does that, the others wait.
        with first:
            made = call(*parts)
            self._first = None
        return made

    def of(self, element):
        """Calls it as ``map`` does."""
        return spread(self, element)

    def says(self, element):
        """Whether it says so, as a predicate."""
        said = as_element(spread(self, element))
        if getattr(said, "ndim", None) != 0 or getattr(getattr(said, "dtype", None), "name", None) != "bool":
            raise ValueError(f"Invalid `predicate`. `predicate` must return a `tf.bool` scalar tensor, but its return type is {said!r:.80}")
        return bool(said)

    def next_state(self, state, element):
        """The next state and what comes out, as ``scan`` calls it."""
        made = self(state, element)
        if not isinstance(made, (tuple, list)) or len(made) != 2:
            raise TypeError(f"The scan function must return a pair comprising the new state and the output value, not {made!r:.60}")
        out = tuple(made[1]) if isinstance(made[1], list) else made[1]
        return self.same_state(state, made[0], "scan_func"), out

    @staticmethod
    def same_state(before, after, what):
        """A state that is like the one before it."""
        after = as_element(after)
        _nest.assert_same_structure(before, after)
        for a, b in zip(_nest.flatten(before), _nest.flatten(after)):
            if a.dtype != b.dtype:
                raise TypeError(f"The element types for the new state must match the initial state. Expected {a.dtype!r}; got {b.dtype!r} of "
                                f"`{what}`")
        return after

    def spec(self, spec):
        """The spec of what it makes of elements of a spec, by tracing; open lengths are tried with two sizes."""
        leaves = _nest.flatten(spec)
        if not all(isinstance(s, TensorSpec) for s in leaves):
            return None
        try:
            found = [self._types(spec, which) for which in ((2, 3) if any(None in s.shape for s in leaves) else (2,))]
        except (DataDecideError, OperatorNotAllowedInGraphError):
            return None  # only an element itself tells
        first, last = found[0], found[-1]
        return _nest.map_structure(lambda a, b: TensorSpec([m if m == n else None for m, n in zip(a.shape, b.shape)], a.dtype)
                                   if isinstance(a, TensorSpec) else a, first, last)

    def _types(self, spec, size):
        found = []

        def body(*tensors):
            given = iter(tensors)
            made = as_element(spread(self._planned, _nest.map_structure(lambda _: next(given), spec)))
            found.append(_nest.map_structure(spec_of, made))
            return [t for t in _nest.flatten(made) if isinstance(t, _t.Tensor)]

        sizes = [_t.spec(s.dtype, [size if n is None else n for n in s.shape], "data_") for s in _nest.flatten(spec)]
        _t.Function(body, None, None, False, True, False).trace(*sizes)
        return found[0]
