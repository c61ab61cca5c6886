"""Cells of recurrent layers: one step each, ``call(inputs, states) -> (output, states)``."""

from ... import _tonnage as _t
from ..._shape import TensorShape
from .. import activations, constraints, initializers, regularizers
from .base import Layer


class _Cell(Layer):
    """What cells share: a kernel for inputs, one for the state, a bias, masks of dropout."""

    gates = states = 1
    _takes_floats = True

    def __init__(self, units, activation="tanh", use_bias=True, kernel_initializer="glorot_uniform",
                 recurrent_initializer="orthogonal", bias_initializer="zeros", kernel_regularizer=None,
                 recurrent_regularizer=None, bias_regularizer=None, kernel_constraint=None, recurrent_constraint=None,
                 bias_constraint=None, dropout=0.0, recurrent_dropout=0.0, **kwargs):
        kwargs.pop("seed", None)
        super().__init__(**kwargs)
        if units <= 0:
            raise ValueError(f"Received an invalid value for argument `units`, expected a positive integer, got {units}.")
        self.units, self.activation, self.use_bias = int(units), activations.get(activation), use_bias
        self._of = tuple((initializers.get(first), regularizers.get(regularizer), constraints.get(constraint))
                         for first, regularizer, constraint in (
                             (kernel_initializer, kernel_regularizer, kernel_constraint),
                             (recurrent_initializer, recurrent_regularizer, recurrent_constraint),
                             (bias_initializer, bias_regularizer, bias_constraint)))
        self.dropout, self.recurrent_dropout = float(dropout), float(recurrent_dropout)
        self.state_size = self.units if self.states == 1 else [self.units] * self.states
        self.output_size = self.units
        self._masks = None, None
        self.bias = None

    def _bias_shape(self):
        return (self.units * self.gates,)

    def build(self, input_shape):
        """Makes the kernels and the bias."""
        width = self.units * self.gates
        self._add_kernels(((TensorShape(input_shape)[-1], width), (self.units, width), self._bias_shape()))

    def _add_kernels(self, shapes):
        names = "kernel", "recurrent_kernel", "bias"
        for name, shape, (first, regularizer, constraint) in zip(names, shapes, self._of):
            if name != "bias" or self.use_bias:
                made = self.add_weight(shape, self._first(name, first), name=name, regularizer=regularizer,
                                       constraint=constraint)
                setattr(self, name, made)

    def _first(self, name, initializer):
        return initializer

    def get_initial_state(self, batch_size=None, dtype=None):
        """Zeros."""
        return [_t.fill([batch_size, self.units], 0, dtype or self.compute_dtype) for _ in range(self.states)]

    def begin(self, inputs, states, training):
        """Draws what a sequence leaves out at each step, the same at all of them."""
        def mask(x, rate):
            return _t.dropout(_t.ones_like(x), rate) if rate and training else None

        self._masks = mask(inputs, self.dropout), mask(states[0], self.recurrent_dropout)

    def end(self):
        """Forgets it."""
        self._masks = None, None

    def _dropped(self, inputs, h):
        drop, recurrent = self._masks
        return (inputs if drop is None else inputs * drop), (h if recurrent is None else h * recurrent)

    def _parts(self, x):
        return _t.split_evenly(x, self.gates, -1) if self.gates > 1 else [x]


class SimpleRNNCell(_Cell):
    """One step of a plain recurrent layer."""

    def call(self, inputs, states, training=None):
        """Computes."""
        x, h = self._dropped(inputs, states[0])
        made = _t.mat_mul(x, self.kernel, False, False)
        if self.use_bias:
            made = made + self.bias
        made = self.activation(made + _t.mat_mul(h, self.recurrent_kernel, False, False))
        return made, [made]


class GRUCell(_Cell):
    """One step of a gated recurrent unit."""

    gates = 3

    def __init__(self, units, activation="tanh", recurrent_activation="sigmoid", use_bias=True,
                 kernel_initializer="glorot_uniform", recurrent_initializer="orthogonal", bias_initializer="zeros",
                 reset_after=True, **kwargs):
        self.reset_after = reset_after
        super().__init__(units, activation, use_bias, kernel_initializer, recurrent_initializer, bias_initializer, **kwargs)
        self.recurrent_activation = activations.get(recurrent_activation)

    def _bias_shape(self):
        return (2, 3 * self.units) if self.reset_after else (3 * self.units,)

    def call(self, inputs, states, training=None):
        """Computes."""
        before = states[0]
        x, h = self._dropped(inputs, before)
        given = _t.mat_mul(x, self.kernel, False, False)
        if self.use_bias:
            given = given + (self.bias[0] if self.reset_after else self.bias)
        gz, gr, gh = self._parts(given)
        if self.reset_after:
            inner = _t.mat_mul(h, self.recurrent_kernel, False, False)
            if self.use_bias:
                inner = inner + self.bias[1]
            iz, ir, ih = self._parts(inner)
            z, r = self.recurrent_activation(gz + iz), self.recurrent_activation(gr + ir)
            new = self.activation(gh + r * ih)
        else:
            kz, kr, kh = self._parts(_t.to_tensor(self.recurrent_kernel, None, None))
            z = self.recurrent_activation(gz + _t.mat_mul(h, kz, False, False))
            r = self.recurrent_activation(gr + _t.mat_mul(h, kr, False, False))
            new = self.activation(gh + _t.mat_mul(r * h, kh, False, False))
        made = z * before + (1.0 - z) * new
        return made, [made]


class LSTMCell(_Cell):
    """One step of a long short-term memory."""

    gates, states = 4, 2

    def __init__(self, units, activation="tanh", recurrent_activation="sigmoid", use_bias=True,
                 kernel_initializer="glorot_uniform", recurrent_initializer="orthogonal", bias_initializer="zeros",
                 unit_forget_bias=True, **kwargs):
        self.unit_forget_bias = unit_forget_bias
        super().__init__(units, activation, use_bias, kernel_initializer, recurrent_initializer, bias_initializer, **kwargs)
        self.recurrent_activation = activations.get(recurrent_activation)

    def _first(self, name, initializer):
        if name != "bias" or not self.unit_forget_bias:
            return initializer
        units = self.units

        def first(shape, dtype=None):
            return _t.concat([initializer([units], dtype=dtype), _t.fill([units], 1, dtype),
                              initializer([2 * units], dtype=dtype)], 0)

        return first

    def call(self, inputs, states, training=None):
        """Computes."""
        x, h = self._dropped(inputs, states[0])
        made = _t.mat_mul(x, self.kernel, False, False) + _t.mat_mul(h, self.recurrent_kernel, False, False)
        return self._gated(made, states[1])

    def _gated(self, made, before):
        if self.use_bias:
            made = made + self.bias
        i, f, c, o = self._parts(made)
        gate = self.recurrent_activation
        carry = gate(f) * before + gate(i) * self.activation(c)
        out = gate(o) * self.activation(carry)
        return out, [out, carry]


def _output_size(cell):
    """How long the outputs of a cell are; one that does not say so gives its first state."""
    states = cell.state_size
    return getattr(cell, "output_size", states[0] if isinstance(states, (list, tuple)) else states)


def first_states(cell, batch, dtype):
    """The states that a cell starts from: its own, or zeros."""
    if hasattr(cell, "get_initial_state"):
        made = cell.get_initial_state(batch_size=batch, dtype=dtype)
        return list(made) if isinstance(made, (list, tuple)) else [made]
    sizes = cell.state_size if isinstance(cell.state_size, (list, tuple)) else [cell.state_size]
    return [_t.fill([batch, *([n] if isinstance(n, int) else n)], 0, dtype) for n in sizes]


class StackedRNNCells(Layer):
    """Cells one after the other, as one."""

    def __init__(self, cells, **kwargs):
        super().__init__(**kwargs)
        self.cells = list(cells)
        self.state_size = [c.state_size for c in self.cells]
        self.output_size = _output_size(self.cells[-1])

    def build(self, input_shape):
        """Makes the weights of each."""
        shape = TensorShape(input_shape)
        for cell in self.cells:
            if not cell.built:
                cell.build(shape)
            shape = TensorShape([shape[0], _output_size(cell)])

    def get_initial_state(self, batch_size=None, dtype=None):
        """Those of each."""
        return [state for cell in self.cells for state in first_states(cell, batch_size, dtype)]

    def call(self, inputs, states, training=None):
        """Computes."""
        made, start = [], 0
        for cell in self.cells:
            count = len(cell.state_size) if isinstance(cell.state_size, (list, tuple)) else 1
            inputs, after = cell(inputs, states[start:start + count])
            made.extend(after if isinstance(after, (list, tuple)) else [after])
            start += count
        return inputs, made
