"""Inputs, products, activations, tables, noise: the plain layers."""

import weakref

from ... import _tonnage as _t
from ..._shape import TensorShape
from .. import activations, constraints, initializers, regularizers
from ..backend import unique_name
from .base import Layer
from .spec import InputSpec
from .symbolic import KerasTensor, Node
from ..._notices import ignores


class InputLayer(Layer):
    """The shape of an input."""

    def __init__(self, shape=None, batch_size=None, dtype=None, name=None, batch_shape=None, input_shape=None, **kwargs):
        shape = input_shape if shape is None else shape
        if batch_shape is None:
            if shape is None:
                raise ValueError("You must pass a `shape` argument.")
            batch_shape = (batch_size, *([shape] if isinstance(shape, int) else shape))
        super().__init__(name=name or unique_name("input_layer"), dtype=None)
        self.batch_shape = tuple(batch_shape)
        self.input_dtype = _t.DType(dtype or "float32").name
        self.built = True
        self._tensor = None

    @property
    def output(self):
        """The symbolic input. It holds the layer, and not the other way: that would be a circle."""
        made = self._tensor() if self._tensor is not None else None
        if made is None:
            made = KerasTensor(self.batch_shape, self.input_dtype, self.name)
            Node(self, (), {}, made)
            self._tensor = weakref.ref(made)
        return made

    input = output
    shape = property(lambda self: TensorShape(self.batch_shape), doc="Its shape, the batch included.")

    def get_config(self):
        """What it was made with, as plain data."""
        return {"batch_shape": list(self.batch_shape), "dtype": self.input_dtype, "name": self.name}


def Input(shape=None, batch_size=None, dtype=None, sparse=None, batch_shape=None, name=None, tensor=None, **unknown):
    """A symbolic input for functional models, of that shape without the batch."""
    if sparse or tensor is not None or unknown:
        raise ValueError(f"Input takes a shape, a dtype and a name; {sorted(unknown) or 'sparse and tensor'} is not there")
    return InputLayer(shape, batch_size, dtype, name, batch_shape).output


def dense_product(inputs, kernel):
    """The product with a matrix along the last axis."""
    return _t.mat_mul(inputs, kernel, False, False)


class Dense(Layer):
    """A product with a matrix, a bias, an activation.

    >>> tf.keras.layers.Dense(64, activation="relu")(tf.ones([2, 8])).shape
    TensorShape([2, 64])
    """

    supports_masking = True
    _takes_floats = True

    def __init__(self, units, activation=None, use_bias=True, kernel_initializer="glorot_uniform",
                 bias_initializer="zeros", kernel_regularizer=None, bias_regularizer=None, activity_regularizer=None,
                 kernel_constraint=None, bias_constraint=None, **kwargs):
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        if not isinstance(units, int) or units <= 0:
            raise ValueError(f"Received an invalid value for `units`, expected a positive integer. Received: units={units}")
        self.units, self.use_bias = units, use_bias
        self.activation = activations.get(activation)
        self.kernel_initializer, self.bias_initializer = map(initializers.get, (kernel_initializer, bias_initializer))
        self.kernel_regularizer, self.bias_regularizer = map(regularizers.get, (kernel_regularizer, bias_regularizer))
        self.kernel_constraint, self.bias_constraint = map(constraints.get, (kernel_constraint, bias_constraint))
        self.input_spec = InputSpec(min_ndim=2)
        self.kernel = self.bias = None

    def build(self, input_shape):
        """Makes the matrix and the bias."""
        inputs = TensorShape(input_shape)[-1]
        if inputs is None:
            raise ValueError(f"The last dimension of the inputs to a Dense layer should be defined. Found None. Full input "
                             f"shape received: {tuple(input_shape)}")
        self.kernel = self.add_weight((inputs, self.units), self.kernel_initializer, name="kernel",
                                      regularizer=self.kernel_regularizer, constraint=self.kernel_constraint)
        if self.use_bias:
            self.bias = self.add_weight((self.units,), self.bias_initializer, name="bias",
                                        regularizer=self.bias_regularizer, constraint=self.bias_constraint)
        self.input_spec = InputSpec(min_ndim=2, axes={-1: inputs})

    def call(self, inputs):
        """Computes."""
        made = dense_product(inputs, self.kernel)
        if self.use_bias:
            made = made + self.bias
        return self.activation(made)


class EinsumDense(Layer):
    """A product by an equation, a bias, an activation."""

    _takes_floats = True

    def __init__(self, equation, output_shape, activation=None, bias_axes=None, kernel_initializer="glorot_uniform",
                 bias_initializer="zeros", kernel_regularizer=None, bias_regularizer=None, **kwargs):
        super().__init__(**kwargs)
        self.equation, self.bias_axes = equation, bias_axes
        self.partial_output_shape = [output_shape] if isinstance(output_shape, int) else list(output_shape)
        self.activation = activations.get(activation)
        self._of = kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer

    def build(self, input_shape):
        """Makes the kernel and the bias."""
        inputs, _, rest = self.equation.replace(" ", "").partition(",")
        kernel, _, output = rest.partition("->")
        shape = tuple(TensorShape(input_shape))
        if inputs.startswith("..."):
            inputs, output = inputs[3:], output[3:]
            shape = shape[len(shape) - len(inputs):]
        lengths = dict(zip(inputs, shape))
        given = [None] * (len(output) - len(self.partial_output_shape)) + self.partial_output_shape
        for letter, length in zip(output, given):
            if length is not None:
                lengths[letter] = length
        first, bias_first, regularizer, bias_regularizer = self._of
        self.kernel = self.add_weight([lengths[n] for n in kernel], first, name="kernel", regularizer=regularizer)
        self.bias = None
        if self.bias_axes:
            start = min(output.index(n) for n in self.bias_axes)
            shape = [lengths[n] if n in self.bias_axes else 1 for n in output[start:]]
            self.bias = self.add_weight(shape, bias_first, name="bias", regularizer=bias_regularizer)

    def call(self, inputs):
        """Computes."""
        equation = self.equation
        if "..." in equation:
            letters = iter("ABCDEFGH")
            free = inputs.ndim - len(equation.partition(",")[0].replace("...", ""))
            equation = equation.replace("...", "".join(next(letters) for _ in range(free)))
        made = _t.einsum(equation, [inputs, self.kernel])
        return self.activation(made if self.bias is None else made + self.bias)


class Lambda(Layer):
    """A function as a layer. Variables that it makes belong to it, and are found again at each call."""

    @ignores("Lambda", "mask")
    def __init__(self, function, output_shape=None, mask=None, arguments=None, **kwargs):
        given = getattr(function, "__name__", "lambda")
        super().__init__(**{"name": unique_name(given if given.isidentifier() else "lambda"), **kwargs})
        from ..._function import Function

        self.arguments = arguments or {}
        self.function = function
        self._planned = function if isinstance(function, Function) else Function(function)

    def call(self, inputs):
        """Computes."""
        return self._planned(inputs, **self.arguments)

    def _own_variables(self):
        return [*super()._own_variables(), *self._planned.variables]


class Embedding(Layer):
    """Rows of a table by their numbers. The gradient stays rows, and updates change just those."""

    @ignores("Embedding", "input_length")
    def __init__(self, input_dim, output_dim, embeddings_initializer="uniform", embeddings_regularizer=None,
                 embeddings_constraint=None, mask_zero=False, weights=None, input_length=None, **kwargs):
        super().__init__(**kwargs)
        self.input_dim, self.output_dim, self.mask_zero = int(input_dim), int(output_dim), mask_zero
        if self.input_dim <= 0 or self.output_dim <= 0:
            raise ValueError(f"Both `input_dim` and `output_dim` should be positive, Received input_dim = {input_dim} and "
                             f"output_dim = {output_dim}")
        self._of = embeddings_initializer, embeddings_regularizer, embeddings_constraint
        self.autocast = False
        self._first = weights

    def build(self, input_shape):
        """Makes the table."""
        first, regularizer, constraint = self._of
        self.embeddings = self.add_weight((self.input_dim, self.output_dim), first, name="embeddings",
                                          regularizer=regularizer, constraint=constraint)
        if self._first is not None:
            self.embeddings.assign(self._first[0] if isinstance(self._first, (list, tuple)) else self._first)
            self._first = None

    def _hint(self):
        return "int32"

    def call(self, inputs):
        """Computes."""
        inputs = inputs if inputs.dtype.is_integer else _t.cast(inputs, "int32")
        made = _t.gather(self.embeddings, inputs, 0, 0)
        return made if self.compute_dtype == self.variable_dtype else _t.cast(made, self.compute_dtype)

    def compute_mask(self, inputs, mask=None):
        """Where the number is not 0, if asked for."""
        return inputs != _t.zeros_like(inputs) if self.mask_zero else None


class Masking(Layer):
    """Leaves out steps whose elements all are one value."""

    supports_masking = True

    def __init__(self, mask_value=0.0, **kwargs):
        super().__init__(**kwargs)
        self.mask_value = float(mask_value)

    def _kept(self, inputs):
        x = inputs if inputs.dtype.is_floating else _t.cast(inputs, self.compute_dtype)
        return _t.reduce_any(x != self.mask_value, -1, False)

    def compute_mask(self, inputs, mask=None):
        """Where some element is not the value."""
        return self._kept(inputs)

    def call(self, inputs):
        """Computes."""
        return inputs * _t.cast(_t.expand_dims(self._kept(inputs), -1), inputs.dtype)


class ActivityRegularization(Layer):
    """A penalty on what passes through."""

    supports_masking = True

    def __init__(self, l1=0.0, l2=0.0, **kwargs):
        super().__init__(activity_regularizer=regularizers.L1L2(l1, l2), **kwargs)

    def call(self, inputs):
        """Computes."""
        return inputs


class Identity(Layer):
    """The same."""

    supports_masking = True

    def call(self, inputs):
        """Computes."""
        return inputs


def _seed(seed):
    """Random numbers of layers come from the program's seed; one of a layer's own is said to do nothing."""
    if seed is not None:
        from ..._notices import once

        once("layer seed", "a layer's seed does nothing: tf.random.set_seed makes all random numbers the same again")
    return seed


class Dropout(Layer):
    """Elements left out in training, the rest scaled up. Keeps a random key for the gradient, not a mask."""

    supports_masking = True

    def __init__(self, rate, noise_shape=None, seed=None, **kwargs):
        super().__init__(**kwargs)
        if not 0 <= rate <= 1:
            raise ValueError(f"Invalid value received for argument `rate`. Expected a float value between 0 and 1. Received: "
                             f"rate={rate}")
        self.rate, self.noise_shape, self.seed = float(rate), noise_shape, _seed(seed)

    def _noise(self, inputs):
        if self.noise_shape is None:
            return None
        return [inputs.lengths[i] if n is None else n for i, n in enumerate(self.noise_shape)]

    def call(self, inputs, training=False):
        """Computes."""
        if not training or self.rate == 0:
            return inputs
        if self.rate == 1:
            return _t.zeros_like(inputs)
        shape = self._noise(inputs)
        if shape is None:
            return _t.dropout(inputs, self.rate)
        kept = _t.random_uniform(0.0, 1.0, shape, "float32", None) >= self.rate
        return inputs * (_t.cast(kept, inputs.dtype) / (1.0 - self.rate))


class SpatialDropout1D(Dropout):
    """Whole channels left out in training."""

    def __init__(self, rate, seed=None, **kwargs):
        super().__init__(rate, None, seed, **kwargs)

    def _noise(self, inputs):
        return [inputs.lengths[0], *[1] * (inputs.ndim - 2), inputs.lengths[-1]]


class SpatialDropout2D(SpatialDropout1D):
    """Whole channels left out in training."""


class SpatialDropout3D(SpatialDropout1D):
    """Whole channels left out in training."""


class GaussianNoise(Layer):
    """Normal random numbers added in training."""

    supports_masking = True

    def __init__(self, stddev, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.stddev, self.seed = float(stddev), _seed(seed)

    def call(self, inputs, training=False):
        """Computes."""
        if not training or not self.stddev:
            return inputs
        return inputs + _t.random_normal(inputs.lengths, inputs.dtype, None) * self.stddev


class GaussianDropout(Layer):
    """Times normal random numbers around 1 in training."""

    supports_masking = True

    def __init__(self, rate, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.rate, self.seed = float(rate), _seed(seed)

    def call(self, inputs, training=False):
        """Computes."""
        if not training or not self.rate:
            return inputs
        deviation = (self.rate / (1.0 - self.rate)) ** 0.5
        return inputs * (1.0 + _t.random_normal(inputs.lengths, inputs.dtype, None) * deviation)


class AlphaDropout(Layer):
    """Elements set to what ``selu`` has at its lowest in training, so that mean and variance stay."""

    supports_masking = True

    def __init__(self, rate, noise_shape=None, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.rate, self.noise_shape, self.seed = float(rate), noise_shape, _seed(seed)

    def call(self, inputs, training=False):
        """Computes."""
        if not training or not self.rate:
            return inputs
        low = -1.6732632423543772 * 1.0507009873554805
        kept = _t.random_uniform(0.0, 1.0, inputs.lengths, "float32", None) >= self.rate
        scale = ((1.0 - self.rate) * (1.0 + self.rate * low**2)) ** -0.5
        shift = -scale * low * self.rate
        held = _t.where_(kept, inputs, _t.ones_like(inputs) * low)
        return held * scale + shift
