"""Keras in programs of tensors and tapes; the examples of docstrings."""

import doctest
import importlib

import numpy as np
import pytest

import tonnage as tf

X = np.random.default_rng(0).normal(size=(8, 5)).astype("f4")


def test_dense_is_a_product_a_bias_and_an_activation():
    layer = tf.keras.layers.Dense(3, activation="relu")
    y = layer(X).numpy()
    np.testing.assert_allclose(y, np.maximum(X @ layer.kernel.numpy() + layer.bias.numpy(), 0), rtol=1e-5, atol=1e-6)
    assert [v.shape.as_list() for v in layer.trainable_variables] == [[5, 3], [3]]
    assert layer.count_params() == 18
    with pytest.raises(ValueError):
        tf.keras.layers.Dense(0)
    with pytest.raises(ValueError):
        tf.keras.layers.Dense(2, activation="unknown")


def test_sequential_trains_with_a_persistent_tape():
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, activation="tanh"), tf.keras.layers.Dense(1)])
    y = X[:, :1] * 2.0
    first = None
    for _ in range(100):
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.keras.losses.MSE(y, model(X))
        gradients = tape.gradient(loss, model.trainable_variables)
        del tape
        first = first or float(tf.reduce_mean(loss))
        for v, g in zip(model.trainable_variables, gradients):
            v.assign_sub(0.02 * g)
    assert len(gradients) == 4 and float(tf.reduce_mean(loss)) < 0.2 * first


def test_layers_made_inside_of_a_function_belong_to_it():
    @tf.function
    def process(batch):
        hidden = tf.keras.layers.Dense(6, activation="relu")(batch)
        return tf.keras.layers.Dense(2)(hidden)

    a, b = process(tf.constant(X)).numpy(), process(tf.constant(X)).numpy()
    assert (a == b).all() and len(process.variables) == 4
    process(tf.constant(X[:4]))
    assert len(process.variables) == 4


def test_a_function_with_a_gradient_of_its_own_is_a_layer():
    @tf.custom_gradient
    def custom_layer(x):
        y = tf.keras.layers.Dense(64, activation="relu")(x)

        def grad(dy):
            return tf.gradients(y, x, grad_ys=dy)[0]

        return y, grad

    model = tf.keras.Sequential([custom_layer])
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = model(x)
        loss = tf.reduce_sum(y * y)
    slope = tape.gradient(loss, x).numpy()
    kernel, bias = model.variables[0].numpy(), model.variables[1].numpy()
    out = np.maximum(X @ kernel + bias, 0)
    np.testing.assert_allclose(slope, (2 * out) @ kernel.T, rtol=1e-4, atol=1e-4)
    assert (model(x).numpy() == y.numpy()).all()


def test_layers_of_ones_own():
    class Scale(tf.keras.layers.Layer):
        def build(self, input_shape):
            self.scale = self.add_weight([input_shape[-1]], "ones", name="scale")

        def call(self, inputs):
            if tf.reduce_sum(inputs) > 1e9:
                inputs = -inputs
            return inputs * self.scale

    layer = Scale()
    model = tf.keras.Sequential([layer, tf.keras.layers.Flatten()])
    assert (tf.function(lambda x: model(x))(tf.constant(X)).numpy() == X).all()
    assert layer.scale.name == "scale/scale:0" and len(model.submodules) == 2


def test_losses_agree_with_numpy():
    y = X * 0.5
    np.testing.assert_allclose(tf.keras.losses.MSE(y, X).numpy(), ((y - X) ** 2).mean(-1), rtol=1e-5)
    assert tf.keras.losses.MeanSquaredError()(y, X).shape == ()
    labels = [1, 0, 2, 3, 4, 1, 2, 3]
    expected = -np.log(np.exp(X)[range(8), labels] / np.exp(X).sum(1))
    made = tf.keras.losses.sparse_categorical_crossentropy(labels, X, from_logits=True)
    np.testing.assert_allclose(made.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "RMSprop", "AdamW"])
def test_optimizers_train_in_functions_and_out_of_them(optimizer):
    def trained(planned):
        w = tf.Variable([5.0, -3.0])
        made = getattr(tf.keras.optimizers, optimizer)(learning_rate=0.1)

        def step():
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(w * w)
            made.apply_gradients([(tape.gradient(loss, w), w)])
            return loss

        run = tf.function(step) if planned else step
        losses = [float(run()) for _ in range(40)]
        return losses, w.numpy()

    (losses, w), (_, planned) = trained(False), trained(True)
    assert losses[-1] < 0.6 * losses[0]
    np.testing.assert_allclose(planned, w, rtol=1e-4, atol=1e-5)


def test_adam_agrees_with_a_plain_loop():
    w, g = tf.Variable(1.0), 0.5
    adam = tf.keras.optimizers.Adam(0.1)
    m = v = 0.0
    expected = 1.0
    for t in range(1, 6):
        adam.apply_gradients([(tf.constant(g), w)])
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        expected -= 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-7)
    np.testing.assert_allclose(w.numpy(), expected, rtol=1e-4)


@pytest.mark.parametrize("name", ["keras.layers.base", "keras.layers.core", "keras.metrics.base", "keras.models.model",
                                  "keras.models.sequential", "keras.models.training", "data.dataset", "train.checkpoint", "train.manager"])
def test_examples_of_docstrings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(f"tonnage.{name}")
    failed, tried = doctest.testmod(module, extraglobs={"tf": tf}, optionflags=doctest.ELLIPSIS)
    assert tried and not failed
