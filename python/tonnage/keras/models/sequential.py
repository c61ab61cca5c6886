"""Layers one after the other."""

from ..._shape import TensorShape
from ..layers.base import Layer
from ..layers.core import Input, InputLayer, Lambda
from ..layers.symbolic import KerasTensor
from ..saving import deserialize_keras_object, serialize_keras_object
from . import graph
from .model import Model


class Sequential(Model):
    """Layers one after the other. A plain function is one too.

    >>> model = tf.keras.Sequential([tf.keras.layers.Dense(10), tf.nn.relu])
    >>> model(tf.ones([3, 4])).shape
    TensorShape([3, 10])
    """

    _builds_itself = True

    def __init__(self, layers=None, name=None, trainable=True, **kwargs):
        super().__init__(name=name, trainable=trainable, **kwargs)
        self._layers = []
        self._start = None
        for layer in layers or []:
            self._append(layer)
        self._rebuild()

    def add(self, layer, rebuild=True):
        """One more layer at the end."""
        self._append(layer)
        if self._graph is None:
            self._rebuild()
            return
        # Only what is new is traced.
        start, made = self._graph.inputs, self._layers[-1](self._graph.outputs)
        self._functions = {}
        self._set_graph(graph.Graph(start, made, self.name))

    def _append(self, layer):
        if isinstance(layer, KerasTensor):
            layer = layer.node.layer
        if isinstance(layer, InputLayer):
            if self._start is not None or self._layers:
                raise ValueError(f"Sequential model {self.name!r} has already been configured to use input shape "
                                 f"{getattr(self._start, 'batch_shape', None)}. You cannot add a different Input layer to it.")
            self._start = layer
            return
        if not isinstance(layer, Layer):
            if not callable(layer):
                raise TypeError(f"Only layers and functions can be added to a Sequential model. Received: {layer!r} (of "
                                f"type {type(layer)})")
            layer = Lambda(layer)
        if any(other.name == layer.name for other in self._layers):
            raise ValueError(f"All layers added to a Sequential model should have unique names. Name {layer.name!r} is already "
                             f"the name of a layer in this model.")
        first = getattr(layer, "_first_shape", None)
        if self._start is None and not self._layers:
            if isinstance(layer, Model) and layer._graph is not None and len(layer.inputs) == 1:
                first = layer.inputs[0].shape
            if first is not None:
                self._start = InputLayer(batch_shape=first)
        self._layers.append(layer)

    def pop(self, rebuild=True):
        """Without the last layer, which it gives."""
        layer = self._layers.pop()
        self._rebuild()
        return layer

    def _rebuild(self):
        self._graph, self._functions, self._input_types = None, {}, None
        self.built = False
        if self._start is not None and self._layers:
            self._connect(self._start.output)

    def _connect(self, start):
        made = start
        for layer in self._layers:
            made = layer(made)
        self._set_graph(graph.Graph(start, made, self.name))
        self._build_shapes = [None, *start.shape[1:]]

    @property
    def layers(self):
        """Its layers."""
        return list(self._layers)

    def build(self, input_shape=None):
        """Makes the weights for inputs of that shape."""
        if self._graph is None and input_shape is not None and self._layers:
            shape = tuple(TensorShape(input_shape))
            self._connect(Input(batch_shape=(None, *shape[1:])))

    def _maybe_build(self, bound):
        # Layers are built as the inputs come to them; a symbolic pass would trace each of them besides.
        value = next(iter(bound.values()), None)
        self._keep_input_types(value)
        shape = getattr(value, "shape", None)
        self._build_shapes = None if shape is None else [None, *tuple(shape)[1:]]
        self.built = True

    def call(self, inputs, training=None, mask=None):
        """Computes."""
        if self._graph is not None:
            inputs = self._graph._checked(self._graph.flat_inputs[0], inputs, self.name)
        for layer in self._layers:
            inputs = layer(inputs)
        return inputs

    def build_from_config(self, config):
        """Makes the weights for the shapes that :meth:`get_build_config` gave."""
        self.build(config["input_shape"])

    def get_build_config(self):
        """The shape that it was built for."""
        shapes = vars(self).get("_build_shapes")
        return None if shapes is None or self._start is not None else {"input_shape": shapes}

    def get_config(self):
        """Its layers, as plain data."""
        layers = ([self._start] if self._start is not None else []) + self._layers
        return {"name": self.name, "trainable": self.trainable, "layers": [serialize_keras_object(la) for la in layers]}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """Made again from what :meth:`get_config` gave."""
        layers = [deserialize_keras_object(la, custom_objects) for la in config["layers"]]
        made = cls(layers, name=config.get("name"))
        made._trainable = config.get("trainable", True)
        return made
