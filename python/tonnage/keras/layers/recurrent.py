"""Recurrent layers: a cell at each step, as one loop that is planned. Its gradient keeps carried states at checkpoints."""

import inspect

from ... import _tonnage as _t
from ..._shape import TensorShape
from ..._variable import Variable
from ..backend import eagerly
from ..saving import deserialize_keras_object, serialize_keras_object
from .base import Layer
from .cells import GRUCell, LSTMCell, SimpleRNNCell, StackedRNNCells, first_states
from .spec import InputSpec


def _first_shape(shape):
    """The shape of the sequences, where those of states may stand behind it."""
    several = isinstance(shape, list) and bool(shape) and isinstance(shape[0], (list, tuple, TensorShape))
    return TensorShape(shape[0] if several else shape)


class RNN(Layer):
    """A cell along the second axis of ``[batch, steps, features]``."""

    supports_masking = True
    _takes_floats = True
    _not_tracked = (*Layer._not_tracked, "_kept")

    def __init__(self, cell, return_sequences=False, return_state=False, go_backwards=False, stateful=False, unroll=False,
                 zero_output_for_mask=False, **kwargs):
        super().__init__(**kwargs)
        if isinstance(cell, (list, tuple)):
            cell = StackedRNNCells(cell)
        if not hasattr(cell, "call") or not hasattr(cell, "state_size"):
            raise ValueError(f"Argument `cell` must have a `call` method and a `state_size`. Received: cell={cell!r}")
        self.cell = cell
        self.return_sequences, self.return_state, self.go_backwards = return_sequences, return_state, go_backwards
        self.stateful, self.unroll, self.zero_output_for_mask = stateful, unroll, zero_output_for_mask
        self.input_spec = InputSpec(ndim=3) if isinstance(cell, (SimpleRNNCell, GRUCell, LSTMCell, StackedRNNCells)) else None
        self._kept = None

    def build(self, input_shape):
        """Makes the cell's weights, and what is kept between batches."""
        shape = _first_shape(input_shape)
        if not self.cell.built:
            self.cell.build(TensorShape([shape[0], *shape[2:]]))
        if self.input_spec is not None:
            self.input_spec = InputSpec(ndim=3, axes={-1: shape[-1]})
        if self.stateful:
            if shape[0] is None:
                raise ValueError("When using `stateful=True` in a RNN, the batch size must be static. Found dynamic batch "
                                 f"size in layer {self.name!r}")
            first = lambda: [Variable(s, trainable=False, name="state")  # noqa: E731
                             for s in self._first_states(shape[0], self.compute_dtype)]
            self._kept = eagerly(first)

    def _first_states(self, batch, dtype):
        return first_states(self.cell, batch, dtype)

    def reset_state(self):
        """Starts from zeros again what is kept between batches."""
        for state in self._kept or []:
            state.assign(_t.zeros_like(state))

    reset_states = reset_state

    def _check_inputs(self, inputs):
        super()._check_inputs(inputs[0] if isinstance(inputs, list) else inputs)

    def call(self, inputs, initial_state=None, mask=None, training=None):
        """Computes."""
        if isinstance(inputs, list):
            inputs, initial_state = inputs[0], inputs[1:]
            mask = mask[0] if isinstance(mask, list) else mask
        if initial_state is not None:
            states = list(initial_state) if isinstance(initial_state, (list, tuple)) else [initial_state]
            states = [self._converted(s) for s in states]
        elif self._kept is not None:
            states = [s.read_value() for s in self._kept]
        else:
            states = self._first_states(inputs.lengths[0], inputs.dtype)
        steps = _t.transpose(inputs, [1, 0, *range(2, inputs.ndim)])
        if hasattr(self.cell, "begin"):
            self.cell.begin(steps[0], states, training)
        try:
            last, states, all_ = self._along(steps, states, mask)
        finally:
            if hasattr(self.cell, "end"):
                self.cell.end()
        for kept, state in zip(self._kept or [], states):
            kept.assign(state)
        made = last
        if self.return_sequences:
            made = _t.transpose(all_, [1, 0, *range(2, all_.ndim)])
        return (made, *states) if self.return_state else made

    def _along(self, steps, states, mask):
        count = len(states)
        # Outputs of the built-in cells are their first state; others are carried beside it.
        own = not isinstance(self.cell, (SimpleRNNCell, GRUCell, LSTMCell))
        carried = list(states)
        if own:
            out, _ = self._cell(steps[0], states)
            carried.append(_t.zeros_like(out))
        rows = [steps]
        if mask is not None:
            mask = _t.transpose(mask if mask.dtype.name == "bool" else _t.cast(mask, "bool"), [1, 0])
            rows.append(mask)

        def step(carried, row):
            before = list(carried[:count])
            out, after = self._cell(row[0], before)
            previous = carried[-1] if own else before[0]
            if len(row) > 1:
                kept = row[1]
                for _ in range(out.ndim - 1):
                    kept = _t.expand_dims(kept, -1)
                after = [_t.where_(kept, a, b) for a, b in zip(after, before)]
                held = _t.zeros_like(out) if self.zero_output_for_mask else previous
                out = _t.where_(kept, out, held)
            return [*after, out] if own else list(after), out if self.return_sequences else []

        made, all_ = _t.scan(step, carried, rows, bool(self.go_backwards))
        if self.return_sequences and self.go_backwards:
            all_ = _t.reverse(all_, [0])
        last = made[-1] if own else made[0]
        if mask is not None and self.zero_output_for_mask and not own:
            # The state is held over masked steps, the output is not.
            kept = mask[0 if self.go_backwards else -1]
            for _ in range(last.ndim - 1):
                kept = _t.expand_dims(kept, -1)
            last = _t.where_(kept, last, _t.zeros_like(last))
        return last, list(made[:count]), all_

    def _cell(self, inputs, states):
        out, after = self.cell(inputs, states)
        return out, list(after) if isinstance(after, (list, tuple)) else [after]

    def compute_mask(self, inputs, mask=None):
        """The mask of the input, where all steps are returned."""
        mask = mask[0] if isinstance(mask, list) else mask
        return mask if self.return_sequences else None

    def get_config(self):
        """What it was made with, as plain data."""
        config = super().get_config()
        if type(self) is RNN:
            config["cell"] = serialize_keras_object(self.cell)
        return config

    @classmethod
    def from_config(cls, config):
        """Made again from what :meth:`get_config` gave."""
        return cls(**{k: deserialize_keras_object(v) for k, v in config.items()})


_RNN_SETTINGS = ("return_sequences", "return_state", "go_backwards", "stateful", "unroll", "zero_output_for_mask")
_LAYER_SETTINGS = ("name", "trainable", "dtype", "activity_regularizer", "input_shape", "batch_input_shape")


def _layer_of(name, cell, doc):
    """The layer of a cell: it takes what both take."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    own = [p for p in inspect.signature(cell.__init__).parameters.values() if p.kind is kind]
    rest = [p for p in inspect.signature(SimpleRNNCell.__init__).parameters.values()
            if p.kind is kind and p.name not in {o.name for o in own}]
    flags = [inspect.Parameter(n, kind, default=False) for n in _RNN_SETTINGS]
    options = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)
    signature = inspect.Signature([*own, *rest, *flags, options])

    def __init__(self, *args, **kwargs):
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        given.update(given.pop("kwargs"))
        del given["self"]
        given.pop("seed", None)
        given.pop("implementation", None)
        of_rnn = {k: given.pop(k) for k in (*_RNN_SETTINGS, *_LAYER_SETTINGS) if k in given}
        RNN.__init__(self, cell(**given, dtype=of_rnn.get("dtype")), **of_rnn)
        # The layer's settings are the cell's.
        self.units = self.cell.units

    __init__.__signature__ = signature
    return type(name, (RNN,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})


SimpleRNN = _layer_of("SimpleRNN", SimpleRNNCell, "A plain recurrent layer: the output is the next state.")
GRU = _layer_of("GRU", GRUCell, "A gated recurrent unit along the steps.")
LSTM = _layer_of("LSTM", LSTMCell, "A long short-term memory along the steps.")
