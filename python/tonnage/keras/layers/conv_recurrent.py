"""Recurrent layers whose products are convolutions: a long short-term memory over sequences, images or volumes."""

from ... import _tonnage as _t
from ..._shape import TensorShape
from ..backend import standardize_data_format
from .cells import LSTMCell
from .conv import _CONV
from .recurrent import RNN, _first_shape
from .spec import InputSpec, of_rank


class ConvLSTMCell(LSTMCell):
    """One step of a long short-term memory by convolutions; channels come last."""

    def __init__(self, rank, filters, kernel_size, strides=1, padding="valid", dilation_rate=1, **kwargs):
        super().__init__(filters, **kwargs)
        self.rank, self.padding = rank, padding.lower()
        if self.padding not in ("valid", "same"):
            raise ValueError(f"Invalid padding for ConvLSTM{rank}D: {padding!r}")
        self.kernel_size, self.strides, self.dilation_rate = (
            self._sizes(value, what) for value, what in ((kernel_size, "kernel_size"), (strides, "strides"),
                                                         (dilation_rate, "dilation_rate")))
        self._places = None

    def _sizes(self, value, what):
        sizes = [value] * self.rank if isinstance(value, int) else [int(v) for v in value]
        if len(sizes) != self.rank or min(sizes) <= 0:
            raise ValueError(f"The `{what}` argument must be a tuple of {self.rank} positive integers. Received {value}")
        return sizes

    def build(self, input_shape):
        """Makes the kernels and the bias."""
        width = self.units * self.gates
        channels = TensorShape(input_shape)[-1]
        shapes = (*self.kernel_size, channels, width), (*self.kernel_size, self.units, width), self._bias_shape()
        self._add_kernels(shapes)

    def look(self, lengths):
        """Takes the lengths of the axes that are convolved from an input's."""
        def made(n, size, stride, dilation):
            return -(-n // stride) if self.padding == "same" else (n - (size - 1) * dilation - 1) // stride + 1

        self._places = [made(*each) for each in zip(lengths, self.kernel_size, self.strides, self.dilation_rate)]

    def get_initial_state(self, batch_size=None, dtype=None):
        """Zeros."""
        shape = [batch_size, *self._places, self.units]
        return [_t.fill(shape, 0, dtype or self.compute_dtype) for _ in range(self.states)]

    def call(self, inputs, states, training=None):
        """Computes."""
        x, h = self._dropped(inputs, states[0])
        conv, ones = _CONV[self.rank], [1] * self.rank
        made = conv(x, self.kernel, self.strides, self.padding == "same", [], self.dilation_rate, 1)
        made = made + conv(h, self.recurrent_kernel, ones, True, [], ones, 1)
        return self._gated(made, states[1])


class _ConvLSTM(RNN):
    rank = None

    def __init__(self, filters, kernel_size, strides=1, padding="valid", data_format=None, dilation_rate=1,
                 activation="tanh", recurrent_activation="sigmoid", use_bias=True, kernel_initializer="glorot_uniform",
                 recurrent_initializer="orthogonal", bias_initializer="zeros", unit_forget_bias=True,
                 kernel_regularizer=None, recurrent_regularizer=None, bias_regularizer=None, kernel_constraint=None,
                 recurrent_constraint=None, bias_constraint=None, dropout=0.0, recurrent_dropout=0.0,
                 return_sequences=False, return_state=False, go_backwards=False, stateful=False, **kwargs):
        cell = ConvLSTMCell(
            self.rank, filters, kernel_size, strides, padding, dilation_rate, activation=activation,
            recurrent_activation=recurrent_activation, use_bias=use_bias, kernel_initializer=kernel_initializer,
            recurrent_initializer=recurrent_initializer, bias_initializer=bias_initializer,
            unit_forget_bias=unit_forget_bias, kernel_regularizer=kernel_regularizer,
            recurrent_regularizer=recurrent_regularizer, bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint, recurrent_constraint=recurrent_constraint,
            bias_constraint=bias_constraint, dropout=dropout, recurrent_dropout=recurrent_dropout,
            dtype=kwargs.get("dtype"))
        super().__init__(cell, return_sequences, return_state, go_backwards, stateful, **kwargs)
        self.data_format, self.filters = standardize_data_format(data_format), filters
        self.input_spec = InputSpec(ndim=self.rank + 3)

    def build(self, input_shape):
        """Makes the cell's weights, and what is kept between batches."""
        shape = _first_shape(input_shape).as_list()
        if self.data_format == "channels_first":
            shape = [*shape[:2], *shape[3:], shape[2]]
        if None not in shape[2:-1]:
            self.cell.look(shape[2:-1])
        spec, self.input_spec = self.input_spec, None
        super().build(TensorShape(shape))
        self.input_spec = spec

    def call(self, inputs, initial_state=None, mask=None, training=None):
        """Computes."""
        states = inputs[1:] if isinstance(inputs, list) else initial_state
        x = inputs[0] if isinstance(inputs, list) else inputs
        first = self.data_format == "channels_first"
        if first:
            x = _t.transpose(x, [0, 1, *range(3, x.ndim), 2])
            states = None if states is None else [_t.transpose(s, [0, *range(2, s.ndim), 1]) for s in states]
        self.cell.look(x.lengths[2:-1])
        made = super().call(x, states, mask, training)
        if not first:
            return made
        back = lambda t: _t.transpose(t, [*range(t.ndim - self.rank - 1), t.ndim - 1,  # noqa: E731
                                          *range(t.ndim - self.rank - 1, t.ndim - 1)])
        return tuple(back(t) for t in made) if isinstance(made, tuple) else back(made)


ConvLSTM1D = of_rank(__name__, _ConvLSTM, "ConvLSTM1D", 1, "A long short-term memory by convolutions over sequences.")
ConvLSTM2D = of_rank(__name__, _ConvLSTM, "ConvLSTM2D", 2, "A long short-term memory by convolutions over images.")
ConvLSTM3D = of_rank(__name__, _ConvLSTM, "ConvLSTM3D", 3, "A long short-term memory by convolutions over volumes.")
