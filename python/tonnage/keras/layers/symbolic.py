"""Symbolic inputs: a shape and a dtype that layers can be called with, which gives a graph of calls for models.

What a call gives is found by tracing it, twice where lengths are open, with two different sizes: lengths of results that differ
are open too. No tensor is made.

Decision: ``docs/decisions/keras-steps-are-functions.md``.
"""

import weakref

from ... import _nest
from ... import _tonnage as _t
from ..._shape import TensorShape
from .. import backend

# What stands for open lengths: of the batch, and of other axes, which must be long enough for a stack of windows.
_BATCHES, _LENGTHS = (2, 3), (224, 288)


class KerasTensor:
    """A shape and a dtype: what ``tf.keras.Input`` gives, and layers that are called with it."""

    def __init__(self, shape, dtype="float32", name=None):
        self.shape = tuple(TensorShape(shape))
        self.dtype = _t.DType(dtype)
        self.name = name or backend.unique_name("keras_tensor")
        self.node, self.place = None, 0

    ndim = property(lambda self: len(self.shape))

    def get_shape(self):
        """Its shape."""
        return TensorShape(self.shape)

    def __tf_tensor__(self):
        raise ValueError("A KerasTensor cannot be used as input to a TensorFlow function. A KerasTensor is a symbolic "
                         "placeholder for a shape and dtype, used when constructing Keras Functional models. Wrap the "
                         "operation in a layer, such as tf.keras.layers.Lambda.")

    def __bool__(self):
        raise TypeError("A symbolic KerasTensor cannot be used as a boolean.")

    def __iter__(self):
        raise TypeError("Iterating over a symbolic KerasTensor is not supported.")

    def __repr__(self):
        return f"<KerasTensor shape={self.shape}, dtype={self.dtype.name}, sparse=False, name={self.name}>"

    def __getitem__(self, key):
        from .merging import GetItem

        return GetItem(key)(self)


def _operator(name, swapped=False):
    def apply(self, *other):
        from .merging import Operator

        made = Operator(name, None if not other or isinstance(other[0], KerasTensor) else other[0], swapped)
        both = [self, *(o for o in other if isinstance(o, KerasTensor))]
        return made(both if len(both) > 1 else self)

    return apply


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
    setattr(KerasTensor, f"__{_name}__", _operator(_name))
    setattr(KerasTensor, f"__r{_name}__", _operator(_name, True))
for _name in ("lt", "le", "gt", "ge", "neg", "abs"):
    setattr(KerasTensor, f"__{_name}__", _operator(_name))


class Node:
    """One call of a layer with symbolic inputs. Results hold it, and it does not hold them: models go as soon as nobody holds them."""

    def __init__(self, layer, args, kwargs, outputs):
        self.layer, self.args, self.kwargs = layer, args, kwargs
        self.inputs = [t for t in _nest.flatten([list(args), kwargs]) if isinstance(t, KerasTensor)]
        self._results = _map(_Result, outputs)
        for place, tensor in enumerate(_nest.flatten(outputs)):
            tensor.node, tensor.place = self, place

    @property
    def outputs(self):
        """Its results; one that nobody holds is made again."""
        places = iter(range(len(_nest.flatten(self._results))))
        return _map(lambda result: result.tensor(self, next(places)), self._results)


class _Result:
    """A result that is held by others."""

    def __init__(self, tensor):
        self._made, self._type = weakref.ref(tensor), (tensor.shape, tensor.dtype, tensor.name)

    def tensor(self, node, place):
        """The result itself."""
        made = self._made()
        if made is None:
            made = KerasTensor(*self._type)
            made.node, made.place = node, place
            self._made = weakref.ref(made)
        return made


def has_symbols(value):
    """Whether a symbolic tensor is anywhere inside."""
    if isinstance(value, KerasTensor):
        return True
    if isinstance(value, dict):
        return any(has_symbols(v) for v in value.values())
    return isinstance(value, (list, tuple)) and any(has_symbols(v) for v in value)


def is_plain_data(value):
    """Whether nested lists hold numbers alone."""
    if isinstance(value, (list, tuple)):
        return bool(value) and not hasattr(value, "_make") and all(is_plain_data(v) for v in value)
    return isinstance(value, (int, float, bool))


def all_tensors(value):
    """Whether everything inside is a tensor, symbolic or not."""
    flat = _nest.flatten(value)
    return bool(flat) and all(isinstance(v, (_t.Tensor, _t.Variable, KerasTensor)) for v in flat)


def single(values):
    """The only one, or all of them."""
    return values[0] if isinstance(values, list) and len(values) == 1 else values


def call(layer, args, kwargs):
    """Calls a layer with symbolic inputs: its weights are made, and the call is remembered."""
    made = layer.compute_output_spec(*args, **kwargs)
    for i, tensor in enumerate(_nest.flatten(made)):
        tensor.name = f"{layer.name}/{i}" if i else layer.name
    node = Node(layer, args, kwargs, made)
    # Who holds results holds the node, and so the layer; the other way it would be a circle.
    layer._nodes = [ref for ref in layer._nodes if ref() is not None] + [weakref.ref(node)]
    return made


def _traced(layer, args, kwargs, which):
    """The types of what a call gives, with open lengths as sizes."""
    flat = [t for t in _nest.flatten([list(args), kwargs]) if isinstance(t, KerasTensor)]

    def sizes(shape):
        return [n if n is not None else (_BATCHES if i == 0 else _LENGTHS)[which] for i, n in enumerate(shape)]

    found = []

    def body(*tensors):
        given = iter(tensors)

        def fill(value):
            return next(given) if isinstance(value, KerasTensor) else value

        inner = [_map(fill, a) for a in args]
        named = {k: _map(fill, v) for k, v in kwargs.items()}
        made = layer._run(tuple(inner), named)
        found.append(_map(lambda t: (tuple(t.lengths), t.dtype) if isinstance(t, _t.Tensor) else t, made))
        return [t for t in _nest.flatten(made) if isinstance(t, _t.Tensor)]

    function = _t.Function(body, None, None, False, True, False)
    outer = backend.call_context()
    backend.set_call_context(backend.CallContext())
    try:
        function.trace(*(_t.spec(t.dtype, sizes(t.shape), "keras_") for t in flat))
    finally:
        backend.set_call_context(outer)
        layer._clear_losses()
    return found[0]


def _map(f, value):
    if isinstance(value, dict):
        return type(value)((k, _map(f, value[k])) for k in sorted(value))
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(_map(f, v) for v in value)
    if isinstance(value, (list, tuple)):
        return type(value)(_map(f, v) for v in value)
    return f(value)


def spec_of_call(layer, args, kwargs):
    """Symbolic tensors for what a call gives."""
    kwargs = {k: kwargs[k] for k in sorted(kwargs)}
    open_ = any(n is None for t in _nest.flatten([list(args), kwargs]) if isinstance(t, KerasTensor) for n in t.shape)
    _build(layer, args, kwargs)
    first = _traced(layer, args, kwargs, 0)
    second = _traced(layer, args, kwargs, 1) if open_ else first
    return _join(first, second)


def _join(first, second):
    if isinstance(first, tuple) and len(first) == 2 and isinstance(first[1], _t.DType):
        shape = [a if a == b else None for a, b in zip(first[0], second[0])]
        return KerasTensor(shape, first[1])
    if isinstance(first, dict):
        return {k: _join(first[k], second[k]) for k in first}
    if isinstance(first, (list, tuple)):
        return type(first)(_join(a, b) for a, b in zip(first, second))
    return first


def _build(layer, args, kwargs):
    """Makes a layer's weights for the shapes as they are, open lengths included."""
    if layer.built:
        return
    from .saved import parameters

    takes = list(parameters(type(layer).call))[1:]
    if args:
        layer._check_inputs(args[0])
    layer._maybe_build(dict(zip(takes, args)) | kwargs)
