"""Layers: modules whose weights are made when the first input comes."""

import inspect

from .. import _tonnage as _t
from .. import nn as _nn
from .._shape import TensorShape
from .._variable import Variable
from ..autograph import converted
from ..module import Module, camel_to_snake, name_scope
from . import activations, initializers


class Layer(Module):
    """A base for layers: ``build`` makes the weights, ``call`` computes."""

    def __init__(self, trainable=True, name=None, dtype=None, **kwargs):
        super().__init__(name or camel_to_snake(type(self).__name__))
        self.trainable = trainable
        self.dtype = _t.DType(dtype or "float32")
        self.built = False
        if "input_shape" in kwargs:
            self._input_shape = kwargs.pop("input_shape")

    def build(self, input_shape):
        """Makes the weights for inputs of that shape."""

    def call(self, inputs):
        """Computes."""
        return inputs

    def add_weight(self, shape=None, initializer=None, dtype=None, trainable=True, name=None, **_):
        """A weight of the layer."""
        initializer = initializers.get(initializer or "glorot_uniform")
        dtype = dtype or self.dtype
        lengths = TensorShape(() if shape is None else shape).as_list()
        made = Variable(initializer(lengths, dtype=dtype), trainable=trainable, name=name or "weight", dtype=dtype)
        vars(self).setdefault("_weights", []).append(made)
        return made

    def _build_once(self, inputs):
        if not self.built:
            shape = inputs.shape if isinstance(inputs, _t.Tensor) else [i.shape for i in inputs]
            with name_scope(self.name):
                self.build(shape)
            self.built = True

    def __call__(self, inputs, *args, **kwargs):
        if isinstance(inputs, (list, tuple)):
            inputs = type(inputs)(_t.to_tensor(i, None, self.dtype) for i in inputs)
        else:
            inputs = _t.to_tensor(inputs, None, self.dtype)
        self._build_once(inputs)
        if "training" in kwargs and "training" not in inspect.signature(self.call).parameters:
            kwargs.pop("training")
        call = converted(self.call) if _t.is_tracing() else self.call
        return call(inputs, *args, **kwargs)

    @property
    def weights(self):
        """All its variables."""
        return list(self.variables)

    @property
    def trainable_weights(self):
        """Those that are trained."""
        return list(self.trainable_variables)

    @property
    def trainable_variables(self):
        """Those that are trained; none where the layer is frozen."""
        return [v for v in self.variables if v.trainable] if self.trainable else []

    @property
    def variables(self):
        """All its variables."""
        return list(super().variables)

    def get_weights(self):
        """The values of all its variables."""
        return [v.numpy() for v in self.variables]

    def set_weights(self, weights):
        """Gives all its variables other values."""
        if len(weights) != len(self.variables):
            raise ValueError(f"{len(weights)} values for {len(self.variables)} weights")
        for variable, value in zip(self.variables, weights):
            variable.assign(value)

    def count_params(self):
        """How many numbers its variables have."""
        return sum(v.shape.num_elements() for v in self.variables)


class InputLayer(Layer):
    """The shape of an input."""

    def __init__(self, shape=None, batch_size=None, dtype=None, name=None, input_shape=None):
        super().__init__(name=name, dtype=dtype)
        self.shape = TensorShape([batch_size] + list(shape if shape is not None else input_shape or []))


class Dense(Layer):
    """A product with a matrix, a bias, an activation.

    >>> tf.keras.layers.Dense(64, activation="relu")(x)
    """

    def __init__(self, units, activation=None, use_bias=True, kernel_initializer="glorot_uniform",
                 bias_initializer="zeros", **kwargs):
        super().__init__(**kwargs)
        if int(units) <= 0:
            raise ValueError(f"Received an invalid value for `units`, expected a positive integer. Received: {units}")
        self.units, self.use_bias = int(units), use_bias
        self.activation = activations.get(activation)
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer
        self.kernel = self.bias = None

    def build(self, input_shape):
        """Makes the matrix and the bias."""
        inputs = TensorShape(input_shape)[-1]
        if inputs is None:
            raise ValueError("The last dimension of the inputs to a Dense layer should be defined. Found None.")
        self.kernel = self.add_weight([inputs, self.units], self._kernel_initializer, name="kernel")
        if self.use_bias:
            self.bias = self.add_weight([self.units], self._bias_initializer, name="bias")

    def call(self, inputs):
        """Computes."""
        if inputs.ndim < 2:
            raise ValueError(f"Input 0 of layer {self.name!r} is incompatible with the layer: expected min_ndim=2, found "
                             f"ndim={inputs.ndim}. Full shape received: {inputs.shape}")
        made = _t.mat_mul(inputs, self.kernel, False, False)
        if self.use_bias:
            made = made + self.bias
        return self.activation(made)


class Activation(Layer):
    """An activation."""

    def __init__(self, activation, **kwargs):
        super().__init__(**kwargs)
        self.activation = activations.get(activation)

    def call(self, inputs):
        """Computes."""
        return self.activation(inputs)


class ReLU(Activation):
    """The positive part."""

    def __init__(self, **kwargs):
        super().__init__("relu", **kwargs)


class Softmax(Activation):
    """Exponentials along the last axis, scaled to a sum of 1."""

    def __init__(self, **kwargs):
        super().__init__("softmax", **kwargs)


class Flatten(Layer):
    """All axes but the first as one."""

    def call(self, inputs):
        """Computes."""
        return _t.reshape(inputs, [_t.shape_of(inputs, "int32")[0], -1])


class Reshape(Layer):
    """Another shape, the first axis apart."""

    def __init__(self, target_shape, **kwargs):
        super().__init__(**kwargs)
        self.target_shape = list(target_shape)

    def call(self, inputs):
        """Computes."""
        return _t.reshape(inputs, [_t.shape_of(inputs, "int32")[0], *self.target_shape])


class Dropout(Layer):
    """Elements left out in training."""

    def __init__(self, rate, noise_shape=None, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.rate = float(rate)

    def call(self, inputs, training=False):
        """Computes."""
        return _t.dropout(inputs, self.rate) if training and self.rate > 0 else inputs


class Embedding(Layer):
    """Rows of a table."""

    def __init__(self, input_dim, output_dim, embeddings_initializer="random_uniform", **kwargs):
        super().__init__(**kwargs)
        self.input_dim, self.output_dim = int(input_dim), int(output_dim)
        self._initializer = embeddings_initializer

    def build(self, input_shape):
        """Makes the table."""
        self.embeddings = self.add_weight([self.input_dim, self.output_dim], self._initializer, name="embeddings")

    def __call__(self, inputs, *args, **kwargs):
        inputs = _t.to_tensor(inputs, None, "int32")
        if not inputs.dtype.is_integer:
            inputs = _t.cast(inputs, "int32")
        self._build_once(inputs)
        return _t.gather(self.embeddings, inputs, 0, 0)


class LayerNormalization(Layer):
    """A mean of 0 and a deviation of 1 along the last axis."""

    def __init__(self, axis=-1, epsilon=1e-3, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = float(epsilon)

    def build(self, input_shape):
        """Makes scale and bias."""
        self.gamma = self.add_weight([TensorShape(input_shape)[-1]], "ones", name="gamma")
        self.beta = self.add_weight([TensorShape(input_shape)[-1]], "zeros", name="beta")

    def call(self, inputs):
        """Computes."""
        return _t.layer_norm(inputs, self.gamma, self.beta, self.epsilon)


class Conv2D(Layer):
    """Filters over images."""

    def __init__(self, filters, kernel_size, strides=1, padding="valid", activation=None, use_bias=True,
                 kernel_initializer="glorot_uniform", bias_initializer="zeros", dilation_rate=1, **kwargs):
        super().__init__(**kwargs)
        pair = (lambda v: [v, v] if isinstance(v, int) else list(v))
        self.filters, self.kernel_size, self.strides = int(filters), pair(kernel_size), pair(strides)
        self.padding, self.use_bias, self.dilation_rate = padding.upper(), use_bias, pair(dilation_rate)
        self.activation = activations.get(activation)
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    def build(self, input_shape):
        """Makes the filters and the bias."""
        shape = [*self.kernel_size, TensorShape(input_shape)[-1], self.filters]
        self.kernel = self.add_weight(shape, self._kernel_initializer, name="kernel")
        if self.use_bias:
            self.bias = self.add_weight([self.filters], self._bias_initializer, name="bias")

    def call(self, inputs):
        """Computes."""
        made = _nn.conv2d(inputs, self.kernel, self.strides, self.padding, dilations=self.dilation_rate)
        return self.activation(made + self.bias if self.use_bias else made)


class _Pooling(Layer):
    _pool = None

    def __init__(self, pool_size=2, strides=None, padding="valid", **kwargs):
        super().__init__(**kwargs)
        self.pool_size, self.padding = pool_size, padding.upper()
        self.strides = pool_size if strides is None else strides

    def call(self, inputs):
        """Computes."""
        return type(self)._pool(inputs, self.pool_size, self.strides, self.padding)


class MaxPooling2D(_Pooling):
    """The largest element of each window."""

    _pool = staticmethod(_nn.max_pool)


class AveragePooling2D(_Pooling):
    """The mean of each window."""

    _pool = staticmethod(_nn.avg_pool)


class GlobalAveragePooling2D(Layer):
    """The mean of each channel."""

    def call(self, inputs):
        """Computes."""
        return _t.reduce_mean(inputs, [1, 2], False)


class Lambda(Layer):
    """A function as a layer. Variables that it makes belong to it, and are found again at each call."""

    def __init__(self, function, **kwargs):
        super().__init__(name=kwargs.pop("name", None) or getattr(function, "__name__", "lambda"), **kwargs)
        from .._function import Function

        self._planned = function if isinstance(function, Function) else Function(function)

    def call(self, inputs):
        """Computes."""
        return self._planned(inputs)

    @property
    def variables(self):
        """The variables that were made while it was traced."""
        return self._planned.variables
