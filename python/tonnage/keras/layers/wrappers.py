"""Layers around a layer."""

from ... import _tonnage as _t
from ..._shape import TensorShape
from ..saving import deserialize_keras_object, serialize_keras_object
from .base import Layer
from .normalization import BatchNormalization
from .saved import parameters


class Wrapper(Layer):
    """A layer that holds another one."""

    def __init__(self, layer, **kwargs):
        if not isinstance(layer, Layer):
            raise ValueError(f"Layer {layer} supplied to {type(self).__name__} wrapper isn't a supported layer type. Please "
                             "ensure wrapped layer is a valid Keras layer.")
        super().__init__(**kwargs)
        self.layer = layer

    @classmethod
    def from_config(cls, config):
        """Made again from what :meth:`get_config` gave."""
        return cls(**{k: deserialize_keras_object(v) for k, v in config.items()})


class TimeDistributed(Wrapper):
    """A layer on every step of ``[batch, steps, ...]``: all steps at once, as one larger batch."""

    supports_masking = True

    def build(self, input_shape):
        """Makes the layer's weights."""
        shape = TensorShape(input_shape)
        if len(shape) < 3:
            raise ValueError(f"`TimeDistributed` Layer should be passed an `input_shape` with at least 3 dimensions, "
                             f"received: {tuple(shape)}")
        if not self.layer.built:
            self.layer.build(TensorShape([shape[0], *shape[2:]]))

    def call(self, inputs, training=None, mask=None):
        """Computes."""
        steps = inputs.lengths[1]
        if steps is None:
            raise ValueError(f"the number of steps of layer {self.name!r} is open: {tuple(inputs.shape)}")
        masked = mask is not None and "mask" in parameters(type(self.layer).call)
        if training and any(isinstance(layer, BatchNormalization) for layer in self.layer._flatten_layers()):
            # Figures of a batch are of one step here: a larger batch of all steps would have others.
            return _t.stack([self.layer(inputs[:, i], **({"mask": mask[:, i]} if masked else {})) for i in range(steps)], 1)
        given = {"mask": _t.reshape(mask, [-1, *mask.lengths[2:]])} if masked else {}
        made = self.layer(_t.reshape(inputs, [-1, *inputs.lengths[2:]]), **given)
        return _t.reshape(made, [inputs.lengths[0] or -1, steps, *made.lengths[1:]])


class Bidirectional(Wrapper):
    """A recurrent layer forwards and another one backwards, merged."""

    supports_masking = True

    def __init__(self, layer, merge_mode="concat", weights=None, backward_layer=None, **kwargs):
        if merge_mode not in ("sum", "mul", "concat", "ave", None):
            raise ValueError(f"Invalid merge mode. Received: {merge_mode}. Merge mode should be one of {{'sum', 'mul', 'ave', "
                             "'concat', None}")
        super().__init__(layer, **kwargs)
        self.merge_mode = merge_mode
        # Made from what the layer was made with: each has weights of its own.
        self.forward_layer = self._again(layer, layer.go_backwards, "forward")
        self.backward_layer = backward_layer or self._again(layer, not layer.go_backwards, "backward")
        if self.forward_layer.go_backwards == self.backward_layer.go_backwards:
            raise ValueError("Forward layer and backward layer should have different `go_backwards` value.")
        self.return_sequences, self.return_state = layer.return_sequences, layer.return_state
        for each in (self.forward_layer, self.backward_layer):
            # A masked step is 0 from both sides: what each would repeat there is from different steps.
            each.zero_output_for_mask = each.return_sequences
        del self.layer
        self._first_weights = weights

    @staticmethod
    def _again(layer, backwards, lead):
        config = layer.get_config()
        config.update(go_backwards=backwards, name=f"{lead}_{layer.name}")
        return type(layer).from_config(config)

    def get_config(self):
        """What it was made with, as plain data."""
        config = super().get_config()
        config["layer"] = serialize_keras_object(self._made_with["layer"])
        config["layer"].pop("build_config", None)
        return config

    def build(self, input_shape):
        """Makes the weights of both."""
        for layer in (self.forward_layer, self.backward_layer):
            if not layer.built:
                layer.build(input_shape)
        if self._first_weights is not None:
            self.set_weights(self._first_weights)
            self._first_weights = None

    def reset_state(self):
        """Starts from zeros again what is kept between batches."""
        self.forward_layer.reset_state()
        self.backward_layer.reset_state()

    def call(self, inputs, initial_state=None, mask=None, training=None):
        """Computes."""
        ahead = behind = None
        if initial_state is not None:
            half = len(initial_state) // 2
            ahead, behind = initial_state[:half], initial_state[half:]
        there = self.forward_layer(inputs, initial_state=ahead, mask=mask)
        back = self.backward_layer(inputs, initial_state=behind, mask=mask)
        states = []
        if self.return_state:
            states = [*there[1:], *back[1:]]
            there, back = there[0], back[0]
        if self.return_sequences:
            back = _t.reverse(back, [1])
        made = {"concat": lambda: _t.concat([there, back], -1), "sum": lambda: there + back,
                "ave": lambda: (there + back) / 2.0, "mul": lambda: there * back, None: lambda: (there, back)}[self.merge_mode]()
        if self.return_state:
            return (*made, *states) if self.merge_mode is None else (made, *states)
        return made

    def compute_mask(self, inputs, mask=None):
        """The mask of the input, where all steps are returned; of both directions, where they are not merged."""
        if not self.return_sequences:
            return None
        return [mask, mask] if self.merge_mode is None else mask
