"""Models: layers one after the other, and classes of one's own."""

from .layers import InputLayer, Lambda, Layer


class Model(Layer):
    """A layer that holds others."""

    def summary(self, print_fn=None):
        """Prints its layers and how many numbers they have."""
        lines = [f"Model: {self.name!r}"]
        for layer in getattr(self, "layers", self.submodules):
            if isinstance(layer, Layer):
                lines.append(f"  {layer.name:<30}{layer.count_params():>12,}")
        lines.append(f"Total params: {self.count_params():,}")
        (print_fn or print)("\n".join(lines))

    def predict(self, x, batch_size=None, verbose=0):
        """Its result as an array."""
        return self(x).numpy()


class Sequential(Model):
    """Layers one after the other. A plain function is one too.

    >>> model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
    """

    def __init__(self, layers=None, name=None, **kwargs):
        super().__init__(name=name, **kwargs)
        self.layers = []
        self._first = None
        for layer in layers or []:
            self.add(layer)

    def add(self, layer):
        """One more layer at the end."""
        if isinstance(layer, InputLayer):
            self._first = layer.shape
            return
        if not isinstance(layer, Layer):
            if not callable(layer):
                raise TypeError(f"Only layers and functions can be added to a Sequential model. Received: {layer!r} (of "
                                f"type {type(layer)})")
            layer = Lambda(layer)
        if self._first is None and not self.layers and getattr(layer, "_input_shape", None) is not None:
            from .._shape import TensorShape

            self._first = TensorShape([None] + list(layer._input_shape))
        self.layers.append(layer)

    def pop(self):
        """Without the last layer, which it gives."""
        return self.layers.pop()

    def build(self, input_shape):
        """Weights are made as inputs come."""

    def call(self, inputs, training=None):
        """Computes."""
        for layer in self.layers:
            inputs = layer(inputs) if training is None else layer(inputs, training=training)
        return inputs

    @property
    def variables(self):
        """All variables of its layers, in their order."""
        return [v for layer in self.layers for v in layer.variables]

    @property
    def trainable_variables(self):
        """Those that are trained."""
        return [v for layer in self.layers if layer.trainable for v in layer.trainable_variables]
