"""The model: a layer that is trained. By subclassing, or from symbolic inputs to symbolic results."""

from ... import _nest
from ..._shape import TensorShape
from ..backend import unique_name
from ..layers.base import Layer
from ..layers.symbolic import KerasTensor, all_tensors, single
from ..saving import Configured, serialize_keras_object
from . import graph
from .training import Trainer
from ..._notices import ignores, refuse


class Model(Trainer, Layer):
    """A layer that is trained: a subclass with a ``call``, or ``Model(inputs, outputs)``.

    >>> x = tf.keras.Input((4,))
    >>> model = tf.keras.Model(x, tf.keras.layers.Dense(2)(x))
    >>> model.compile("adam", "mse")
    >>> model.predict(tf.ones([3, 4])).shape
    (3, 2)
    """

    _builds_itself = True  # or its layers do, as the inputs come to them
    _not_tracked = (*Layer._not_tracked, "_graph", "optimizer", "loss", "history", "_compiled", "_compile_with", "_functions", "_input_types")

    def __init__(self, *args, **kwargs):
        inputs, outputs = kwargs.pop("inputs", None), kwargs.pop("outputs", None)
        if args and inputs is None:
            inputs, args = args[0], args[1:]
        if args and outputs is None:
            outputs, args = args[0], args[1:]
        if args:
            kwargs["name"] = args[0]
        if (inputs is None) != (outputs is None):
            raise ValueError("a functional model needs both `inputs` and `outputs`")
        if inputs is not None and type(self) is Model and not kwargs.get("name"):
            kwargs["name"] = unique_name("functional")
        super().__init__(**kwargs)
        self._compiled, self._functions, self._graph, self._input_types = None, {}, None, None
        self.optimizer = self.loss = self.history = None
        self.stop_training = False
        if inputs is not None:
            self._set_graph(graph.Graph(inputs, outputs, self.name))

    def _set_graph(self, made):
        self._graph = made
        self._graph_layers = made.layers
        self.built = True

    # Its layers.

    @property
    def layers(self):
        """The layers that it holds itself."""
        if self._graph is not None:
            return list(self._graph_layers)
        return list(self._flatten_layers(include_self=False, recursive=False))

    def get_layer(self, name=None, index=None):
        """A layer by its name or its place."""
        layers = self.layers
        if index is not None:
            if not -len(layers) <= index < len(layers):
                raise ValueError(f"Was asked to retrieve layer at index {index} but model only has {len(layers)} layers.")
            return layers[index]
        for layer in layers:
            if layer.name == name:
                return layer
        raise ValueError(f"No such layer: {name}. Existing layers are: {[layer.name for layer in layers]}.")

    @property
    def inputs(self):
        """The symbolic inputs, as a list."""
        return list(self._graph.flat_inputs) if self._graph is not None else None

    @property
    def outputs(self):
        """The symbolic results, as a list."""
        return _nest.flatten(self._graph.outputs) if self._graph is not None else None

    @property
    def input(self):
        """The symbolic inputs."""
        return super().input if self._graph is None else single(self._graph.inputs)

    @property
    def output(self):
        """The symbolic results."""
        return super().output if self._graph is None else single(self._graph.outputs)

    @property
    def input_names(self):
        """The names of the inputs."""
        return [t.node.layer.name for t in self.inputs or []]

    @property
    def output_names(self):
        """The names of the layers that give the results."""
        return [t.node.layer.name for t in self.outputs or []]

    # Calls.

    def build(self, input_shape):
        """Makes the weights for inputs of that shape, by tracing a call."""
        if self._graph is not None or type(self).call is Model.call:
            return
        from ..layers.symbolic import spec_of_call

        self.built = True  # its own call, which is traced, must not come here again
        inputs = _symbols(input_shape)
        try:
            spec_of_call(self, (inputs,), {})
        except Exception:
            self.built = False
            raise
        self._keep_input_types(inputs)

    def _keep_input_types(self, inputs):
        """Remembers what it was first called with, for ``plan``; a functional model knows its inputs."""
        if self._graph is None and all_tensors(inputs):
            self._input_types = _nest.map_structure(lambda t: KerasTensor(t.shape, t.dtype), inputs)

    def _maybe_build(self, bound):
        self._keep_input_types(next(iter(bound.values()), None))
        # The weights of layers inside are made as the call comes to them.
        if type(self).build is not Model.build:
            super()._maybe_build(bound)
        elif not self.built:
            first = next(iter(bound.values()), None)
            self._build_shapes = _shapes(first)
            self.built = True

    def call(self, inputs, training=None, mask=None):
        """Computes: what the layers between inputs and results make of it."""
        if self._graph is None:
            raise NotImplementedError(f"Model {type(self).__name__} does not have a `call()` method implemented.")
        return self._graph.run(inputs, self.name, training)

    def _converted(self, value):
        if self._graph is None:
            return super()._converted(value)
        # Each input has a dtype of its own.
        keep, self.autocast = self.autocast, False
        try:
            return super()._converted(value)
        finally:
            self.autocast = keep

    # As data.

    def get_config(self):
        """Its layers and how they are called, as plain data."""
        if self._graph is not None and type(self) is Model:
            return {"name": self.name, "trainable": self.trainable, "dtype": serialize_keras_object(self.dtype_policy),
                    **self._graph.config()}
        config = Configured.get_config(self)
        config.update(name=self.name)
        takes = _init_parameters(type(self))
        if not any(p.kind is p.VAR_KEYWORD for p in takes.values()):
            config = {k: v for k, v in config.items() if k in takes}
        return config

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Made again from what :meth:`get_config` gave."""
        from ..saving import custom_object_scope, deserialize_keras_object

        with custom_object_scope(custom_objects or {}):
            if "layers" in config and "input_layers" in config:
                inputs, outputs = graph.from_config(config)
                made = cls(inputs, outputs, name=config.get("name"))
                made._trainable = config.get("trainable", True)
                return made
            return cls(**{k: deserialize_keras_object(v) for k, v in config.items()})

    def to_json(self, **kwargs):
        """Its layers as text, without weights."""
        import json

        config = serialize_keras_object(self)
        config.pop("compile_config", None)
        return json.dumps(config, **kwargs)

    def get_build_config(self):
        """The shapes that it was built for, where it has no graph to say them."""
        return None if self._graph is not None else super().get_build_config()

    # What others have.

    @ignores("Model.summary", "line_length", "positions", "layer_range")
    def summary(self, line_length=None, positions=None, print_fn=None, expand_nested=False, show_trainable=False,
                layer_range=None):
        """Prints its layers: shapes, numbers, bytes; and what training takes besides."""
        from .summary import summary

        summary(self, print_fn, expand_nested, show_trainable)

    def save(self, filepath, overwrite=True, include_optimizer=True, **kwargs):
        """Writes all of it to one file: layers, weights, how it was compiled, and where its optimizer is."""
        from .files import save_model

        save_model(self, filepath, overwrite, include_optimizer, **kwargs)

    def save_weights(self, filepath, overwrite=True):
        """Writes its weights to a file, a tensor at a time."""
        from .files import save_weights

        save_weights(self, filepath, overwrite)

    def load_weights(self, filepath, skip_mismatch=False, **kwargs):
        """Gives it the weights of a file, a tensor at a time."""
        from .files import load_weights

        refuse("Model.load_weights", kwargs)
        load_weights(self, filepath, skip_mismatch)


Functional = Model


def _symbols(shape):
    if isinstance(shape, dict):
        return {k: _symbols(v) for k, v in shape.items()}
    if isinstance(shape, (list, tuple)) and shape and isinstance(shape[0], (list, tuple, TensorShape)):
        return [_symbols(s) for s in shape]
    return KerasTensor(shape)


def _shapes(value):
    from ..layers.saved import plain_shapes

    return plain_shapes(_nest.map_structure(lambda t: TensorShape(t.shape), value)) if value is not None else None


def _init_parameters(cls):
    from ..layers.saved import parameters

    return parameters(cls.__init__)
