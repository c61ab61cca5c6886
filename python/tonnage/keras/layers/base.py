"""The base of layers: ``build`` makes weights when the first input comes, ``call`` computes.

Weights and layers that a layer holds are found by walking its attributes in the order in which they were set, so nothing has
to be registered and nothing goes stale. A call of a symbolic input (``tf.keras.Input``) is remembered as a node of a graph.
"""

import functools
import inspect

from ... import _nest
from ... import _tonnage as _t
from ..._shape import TensorShape
from ...autograph import converted
from ...module import name_scope
from .. import backend, mixed_precision, regularizers
from . import symbolic
from .saved import Saved, parameters, plain_shapes
from .tracked import Tracked


def _marking(build):
    """``build`` of a layer that is built then: also where somebody else calls it than the first call."""

    @functools.wraps(build)
    def marking(self, *args, **kwargs):
        if self._is_building:  # a class below calls it
            return build(self, *args, **kwargs)
        self._is_building = True
        try:
            with name_scope(self.name):
                build(self, *args, **kwargs)
        finally:
            self._is_building = False
        self.built = True
        given = inspect.signature(build).bind(self, *args, **kwargs).arguments
        try:
            shapes = {name: plain_shapes(shape) for name, shape in list(given.items())[1:]}
        except TypeError:  # a layer may ask for anything; what is no shape cannot be saved
            return
        self._build_shapes = next(iter(shapes.values())) if len(shapes) == 1 else shapes

    return marking


class Layer(Saved, Tracked):
    """A base for layers.

    >>> class Scale(tf.keras.layers.Layer):
    ...     def build(self, input_shape):
    ...         self.scale = self.add_weight(shape=(input_shape[-1],), initializer="ones", name="scale")
    ...     def call(self, inputs):
    ...         return inputs * self.scale
    >>> Scale()(tf.ones([2])).numpy()
    array([1., 1.], dtype=float32)
    """

    built = False
    input_spec = None
    supports_masking = False
    _takes_floats = False
    """Whether it computes with floats alone, so that integers are cast to them."""

    _in_trace = False
    _is_building = False

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "build" in vars(cls) and not vars(cls).get("_builds_itself"):
            cls.build = _marking(cls.build)

    def __init__(self, trainable=True, name=None, dtype=None, activity_regularizer=None, autocast=True, **kwargs):
        shape = kwargs.pop("input_shape", None)
        batch = kwargs.pop("batch_input_shape", kwargs.pop("batch_shape", None))
        if kwargs.get("input_dim") is not None:
            shape = (kwargs["input_dim"],)
        kwargs.pop("input_dim", None)
        if kwargs:
            raise ValueError(f"Unrecognized keyword arguments passed to {type(self).__name__}: {kwargs}")
        super().__init__(str(name) if name else backend.name_of(type(self)))
        self._trainable = bool(trainable)
        self.dtype_policy = mixed_precision.get(dtype)
        self.activity_regularizer = regularizers.get(activity_regularizer)
        self.autocast = autocast
        self._first_shape = tuple(batch) if batch is not None else None if shape is None else (None, *shape)
        self._in_trace = _t.is_tracing()
        self._losses = []
        self._nodes = []

    # What it is.

    @property
    def trainable(self):
        """Whether its weights are trained; said of all layers inside, too."""
        return self._trainable

    @trainable.setter
    def trainable(self, value):
        self._trainable = bool(value)
        for layer in self._flatten_layers(include_self=False):
            layer._trainable = bool(value)

    @property
    def dtype(self):
        """The dtype of its weights."""
        return _t.DType(self.dtype_policy.variable_dtype)

    variable_dtype = property(lambda self: self.dtype_policy.variable_dtype, doc="The dtype of its weights.")
    compute_dtype = property(lambda self: self.dtype_policy.compute_dtype, doc="The dtype that it computes in.")

    @_marking
    def build(self, input_shape):
        """Makes the weights for inputs of that shape."""

    def call(self, inputs):
        """Computes."""
        return inputs

    # Calls.

    def compute_mask(self, inputs, previous_mask=None):
        """The mask of its result."""
        return previous_mask if self.supports_masking else None

    def _shapes(self, value):
        return _nest.map_structure(lambda t: None if t is None else TensorShape(t.shape), value)

    def _check_inputs(self, inputs):
        if self.input_spec is None:
            return
        specs, flat = _nest.flatten(self.input_spec), _nest.flatten(inputs)
        if len(specs) != len(flat):
            raise ValueError(f'Layer "{self.name}" expects {len(specs)} input(s), but it received {len(flat)} input tensors. '
                             f"Inputs received: {[tuple(t.shape) for t in flat]}")
        for i, (spec, value) in enumerate(zip(specs, flat)):
            if spec is not None and value is not None:
                spec.check(self, i, tuple(value.shape))

    def _maybe_build(self, bound):
        if self.built:
            return
        shapes = {name: self._shapes(value) for name, value in bound.items() if symbolic.all_tensors(value)}
        names = list(parameters(type(self).build))[1:]
        if len(names) == 1:
            self.build(next(iter(shapes.values()), None))
        else:
            self.build(**{n: shapes.get(n.removesuffix("_shape")) for n in names})

    def __call__(self, *args, **kwargs):
        if "_name" not in vars(self):
            raise RuntimeError(f"In layer {type(self).__name__!r}, you forgot to call `super().__init__()` as the first "
                               "statement in the `__init__()` method.")
        if symbolic.has_symbols(args) or symbolic.has_symbols(kwargs):
            return symbolic.call(self, args, kwargs)
        return self._run(args, kwargs)

    def _converted(self, value):
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, dict):
            return type(value)((k, self._converted(v)) for k, v in value.items())
        if isinstance(value, (list, tuple)) and not symbolic.is_plain_data(value):
            made = [self._converted(v) for v in value]
            return value._make(made) if hasattr(value, "_make") else type(value)(made)
        # An array has a dtype and keeps it: integers that are moved or added stay integers.
        tensor = _t.to_tensor(value, None, None if hasattr(value, "dtype") else self._hint())
        if self._takes_floats and tensor.dtype.is_integer:
            return _t.cast(tensor, self.compute_dtype)
        if self.autocast and tensor.dtype.is_floating and tensor.dtype.name != self.compute_dtype:
            mask = getattr(tensor, "_keras_mask", None)
            tensor = _t.cast(tensor, self.compute_dtype)
            if mask is not None:
                tensor._keras_mask = mask
        return tensor

    def _hint(self):
        return self.compute_dtype

    def _run(self, args, kwargs):
        if args:
            rest = (self._converted(a) if isinstance(a, _t.Tensor) or hasattr(a, "__array__") else a for a in args[1:])
            args = (self._converted(args[0]), *rest)
        takes = parameters(type(self).call)
        outer = backend.call_context()
        if outer is None:
            self._clear_losses()
        context = backend.CallContext()
        training = kwargs.pop("training", None)
        if training is None and outer is not None:
            training = outer.training
        if training is None and "training" in takes and takes["training"].default not in (None, inspect.Parameter.empty):
            training = takes["training"].default
        context.training = training
        if "training" in takes:
            kwargs["training"] = training
        previous = _nest.map_structure(lambda t: getattr(t, "_keras_mask", None), args[0]) if args else None
        if "mask" in takes and kwargs.get("mask") is None and previous is not None and args:
            kwargs["mask"] = previous if any(m is not None for m in _nest.flatten(previous)) else None
        if args:
            self._check_inputs(args[0])
        if not self.built:
            self._maybe_build(dict(zip(list(takes)[1:], args)) | {k: v for k, v in kwargs.items() if k in takes})
            if args:
                self._check_inputs(args[0])
        backend.set_call_context(context)
        try:
            made = self._call_with_weights(args, kwargs)
        finally:
            backend.set_call_context(outer)
        self._after(made, args, previous)
        return made

    def _call_with_weights(self, args, kwargs):
        call = converted(self.call) if _t.is_tracing() else self.call
        if self.compute_dtype == self.variable_dtype or not self.autocast:
            return call(*args, **kwargs)
        # Weights are read in the dtype that is computed in: while it is called, attributes are what was read.
        own, swapped = vars(self), {}
        for key, value in own.items():
            if isinstance(value, _t.Variable) and value.trainable and value.dtype.is_floating:
                swapped[key] = value
        own.update({key: _t.cast(value, self.compute_dtype) for key, value in swapped.items()})
        try:
            return call(*args, **kwargs)
        finally:
            own.update(swapped)

    def _after(self, made, args, previous):
        if self.activity_regularizer is not None:
            for tensor in _nest.flatten(made):
                # By row: a larger batch is no larger penalty.
                self.add_loss(self.activity_regularizer(tensor) / float(tensor.lengths[0] or 1))
        outputs = made if isinstance(made, (tuple, list)) else [made]
        if args and outputs and all(isinstance(tensor, _t.Tensor) for tensor in outputs):
            masked = previous is not None and any(m is not None for m in _nest.flatten(previous))
            if masked or type(self).compute_mask is not Layer.compute_mask:
                masks = self.compute_mask(args[0], previous)
                # One mask is that of the first output: states and scores behind it have none.
                for tensor, mask in zip(outputs, masks if isinstance(masks, (tuple, list)) else [masks]):
                    if mask is not None and tensor is not args[0]:
                        tensor._keras_mask = mask

    # Shapes, and what was called.

    def compute_output_spec(self, *args, **kwargs):
        """The type of what a call with such inputs gives."""
        return symbolic.spec_of_call(self, args, kwargs)

    def compute_output_shape(self, input_shape):
        """The shape of what a call with inputs of that shape gives."""
        def spec(shape):
            return symbolic.KerasTensor(shape, self.compute_dtype)

        if isinstance(input_shape, (list, dict)) and not all(isinstance(n, (int, type(None))) for n in _nest.flatten(
                input_shape)[:1]) or (isinstance(input_shape, list) and input_shape and
                                      isinstance(input_shape[0], (list, tuple, TensorShape))):
            inputs = type(input_shape)(spec(s) for s in input_shape) if not isinstance(input_shape, dict) else {
                k: spec(s) for k, s in input_shape.items()}
        else:
            inputs = spec(input_shape)
        return _nest.map_structure(lambda t: t.shape, self.compute_output_spec(inputs))

    def _node(self, place=0):
        nodes = [node for node in (ref() for ref in self._nodes) if node is not None]
        if len(nodes) <= place:
            raise AttributeError(f"The layer {self.name!r} has never been called with symbolic inputs and thus has no "
                                 "defined input or output.")
        return nodes[place]

    @property
    def input(self):
        """The symbolic input of its first call."""
        return symbolic.single(self._node().inputs)

    @property
    def output(self):
        """The symbolic result of its first call."""
        return self._node().outputs

    @property
    def input_shape(self):
        """The shape of the input of its first call."""
        return _nest.map_structure(lambda t: tuple(t.shape), self.input)

    @property
    def output_shape(self):
        """The shape of the result of its first call."""
        return _nest.map_structure(lambda t: tuple(t.shape), self.output)
