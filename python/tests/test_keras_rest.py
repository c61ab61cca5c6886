"""What Keras has besides: sums of gradients, means that take their variables' place, attention along any axes,
recurrent convolutions."""

import numpy as np
import pytest

import tonnage as tf

keras = tf.keras


def _stepped(gradients, **options):
    optimizer, w = keras.optimizers.SGD(0.5, **options), tf.Variable([1.0, 2.0])
    seen = []
    for gradient in gradients:
        optimizer.apply_gradients([(tf.constant(gradient), w)])
        seen.append(w.numpy().tolist())
    return seen, optimizer


def test_gradients_are_added_up_and_their_mean_is_one_step():
    seen, optimizer = _stepped([[1.0, 0.0], [2.0, 4.0], [4.0, 0.0], [8.0, 2.0]], gradient_accumulation_steps=2)
    assert seen == [[1.0, 2.0], [0.25, 1.0], [0.25, 1.0], [-2.75, 0.5]]
    assert int(optimizer.iterations) == 2


def test_fit_adds_gradients_up():
    def trained(batch, **options):
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, kernel_initializer="ones")])
        model.compile(keras.optimizers.Adam(0.1, **options), "mse")
        x = np.arange(24, dtype="float32").reshape(8, 3) / 24
        model.fit(x, x[:, :2], batch_size=batch, epochs=3, shuffle=False, verbose=0)
        return model.get_weights()

    for one, other in zip(trained(2, gradient_accumulation_steps=4), trained(8)):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_scaled_loss_takes_the_same_steps():
    optimizer, w = keras.optimizers.SGD(0.1, loss_scale_factor=8.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        loss = optimizer.scale_loss(w * w)
    gradient = tape.gradient(loss, w)
    optimizer.apply_gradients([(gradient, w)])
    assert (float(gradient), float(w)) == (32.0, pytest.approx(1.6))


def test_means_take_their_variables_place_every_so_many_steps():
    seen, _ = _stepped([[1.0, 1.0]] * 3, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=2)
    # The mean starts at the first step's value.
    assert [first for first, _ in seen] == [0.5, 0.25, -0.25]


@pytest.mark.parametrize("name, value", [("gradient_accumulation_steps", 1), ("ema_overwrite_frequency", 0)])
def test_numbers_that_make_no_sense_are_refused(name, value):
    with pytest.raises(ValueError, match=name):
        keras.optimizers.SGD(0.1, **{name: value})


@pytest.mark.parametrize("axes, order", [((2,), [0, 1, 2, 3]), ((1,), [0, 2, 1, 3])])
def test_attention_is_along_the_axes_that_are_asked_for(axes, order):
    layer = keras.layers.MultiHeadAttention(2, 3, attention_axes=axes)
    x = tf.random.stateless_normal([2, 3, 4, 5], [1, 2])
    made = layer(x, x)
    turned = tf.transpose(x, order)
    rows = tf.reshape(turned, [-1, turned.shape[2], 5])
    expected = tf.transpose(tf.reshape(layer(rows, rows), turned.shape), order)
    np.testing.assert_allclose(made, expected, atol=1e-6)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _convolved(x, kernel, padding):
    """A convolution of sequences, window by window."""
    size = kernel.shape[0]
    if padding == "same":
        x = np.pad(x, [(0, 0), ((size - 1) // 2, size // 2), (0, 0)])
    return np.stack([np.einsum("bkc,kco->bo", x[:, i:i + size], kernel) for i in range(x.shape[1] - size + 1)], 1)


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize("backwards", [False, True])
def test_recurrent_convolutions_are_those_of_their_formulas(padding, backwards):
    layer = keras.layers.ConvLSTM1D(3, 3, padding=padding, return_sequences=True, return_state=True,
                                    go_backwards=backwards)
    x = np.random.RandomState(0).randn(2, 4, 6, 2).astype("float32")
    out, h, c = layer(x)
    kernel, recurrent, bias = [w.astype("float64") for w in layer.get_weights()]
    state = carry = 0.0
    expected = []
    for t in (reversed if backwards else list)(range(4)):
        given = _convolved(x[:, t].astype("float64"), kernel, padding) + bias
        state = np.zeros((2, given.shape[1], 3)) if np.isscalar(state) else state
        i, f, g, o = np.split(given + _convolved(state, recurrent, "same"), 4, -1)
        carry = _sigmoid(f) * carry + _sigmoid(i) * np.tanh(g)
        state = _sigmoid(o) * np.tanh(carry)
        expected.append(state)
    np.testing.assert_allclose(out, np.stack(expected, 1), atol=1e-5)
    np.testing.assert_allclose(h, state, atol=1e-5)
    np.testing.assert_allclose(c, carry, atol=1e-5)


def test_recurrent_convolutions_train_with_channels_anywhere():
    x = np.random.RandomState(0).randn(2, 3, 5, 6, 2).astype("float32")
    last, first = (keras.layers.ConvLSTM2D(4, 3, data_format=f) for f in ("channels_last", "channels_first"))
    made = last(x)
    first.build([2, 3, 2, 5, 6])
    first.set_weights(last.get_weights())
    np.testing.assert_allclose(tf.transpose(first(x.transpose(0, 1, 4, 2, 3)), [0, 2, 3, 1]), made, atol=1e-5)
    model = keras.Sequential([keras.Input((3, 5, 6, 2)), last, keras.layers.Flatten(), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    losses = model.fit(x, np.ones((2, 1)), epochs=20, verbose=0).history["loss"]
    assert losses[-1] < losses[0] / 2
