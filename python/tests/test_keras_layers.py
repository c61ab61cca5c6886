"""Layers against plain NumPy, and what all layers have in common."""

import itertools

import numpy as np
import pytest

import tonnage as tf

L = tf.keras.layers
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(5, 6)).astype("f4")
STEPS = RNG.normal(size=(3, 7, 4)).astype("f4")
IMAGES = RNG.normal(size=(2, 6, 7, 3)).astype("f4")
VOLUMES = RNG.normal(size=(1, 4, 5, 4, 2)).astype("f4")


def close(made, expected, tolerance=2e-5):
    np.testing.assert_allclose(made.numpy() if hasattr(made, "numpy") else made, expected, rtol=1e-4, atol=tolerance)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def padded(x, kernel, strides, dilation, same, value=0.0):
    if not same:
        return x
    widths = [(0, 0)]
    for n, k, s, d in zip(x.shape[1:-1], kernel, strides, dilation):
        total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        widths.append((total // 2, total - total // 2))
    return np.pad(x, [*widths, (0, 0)], constant_values=value)


def windows(x, kernel, strides, dilation):
    """For each place of the result: where it is, and the window there, as ``[batch, taps..., channels]``."""
    lengths = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(x.shape[1:-1], kernel, strides, dilation)]
    for place in itertools.product(*map(range, lengths)):
        cut = tuple(slice(p * s, p * s + (k - 1) * d + 1, d) for p, k, s, d in zip(place, kernel, strides, dilation))
        yield lengths, place, x[(slice(None), *cut)]


def convolved(x, kernel, strides, dilation, same, groups=1):
    sizes = kernel.shape[:-2]
    x = padded(x.astype("f8"), sizes, strides, dilation, same)
    width, out = x.shape[-1] // groups, kernel.shape[-1] // groups
    made = None
    for lengths, place, window in windows(x, sizes, strides, dilation):
        made = np.zeros((len(x), *lengths, kernel.shape[-1])) if made is None else made
        for g in range(groups):
            part = window[..., g * width:(g + 1) * width].reshape(len(x), -1)
            made[(slice(None), *place, slice(g * out, (g + 1) * out))] = part @ kernel[..., g * out:(g + 1) * out].reshape(-1, out)
    return made


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("x, layer", [(STEPS, L.Conv1D), (IMAGES, L.Conv2D), (VOLUMES, L.Conv3D)])
@pytest.mark.parametrize("strides, dilation", [(1, 1), (2, 1), (1, 2)])
def test_convolutions_are_sums_over_windows(x, layer, same, strides, dilation):
    rank = x.ndim - 2
    made = layer(4, 2, strides=strides, dilation_rate=dilation, padding="same" if same else "valid", bias_initializer="ones")
    result = made(x)
    close(result, convolved(x, made.kernel.numpy(), [strides] * rank, [dilation] * rank, same) + 1)


def test_groups_depthwise_separable_and_causal_convolutions():
    x = RNG.normal(size=(2, 5, 6, 4)).astype("f4")
    grouped = L.Conv2D(6, 3, groups=2, use_bias=False)
    close(grouped(x), convolved(x, grouped.kernel.numpy(), [1, 1], [1, 1], False, 2))
    deep = L.DepthwiseConv2D(3, depth_multiplier=2, padding="same", use_bias=False)
    made = deep(x)
    per_channel = deep.kernel.numpy().reshape(3, 3, 1, 8)
    close(made, convolved(x, per_channel, [1, 1], [1, 1], True, 4))
    apart = L.SeparableConv2D(5, 3, use_bias=False)
    made = apart(x)
    inner = convolved(x, apart.depthwise_kernel.numpy().reshape(3, 3, 1, 4), [1, 1], [1, 1], False, 4)
    close(made, inner @ apart.pointwise_kernel.numpy()[0, 0])
    causal = L.Conv1D(3, 2, padding="causal", dilation_rate=2, use_bias=False)
    made = causal(STEPS)
    close(made, convolved(np.pad(STEPS, [(0, 0), (2, 0), (0, 0)]), causal.kernel.numpy(), [1], [2], False))
    first = L.Conv2D(4, 3, data_format="channels_first")
    made = first(np.moveaxis(x, -1, 1))
    close(np.moveaxis(made.numpy(), 1, -1), convolved(x, first.kernel.numpy(), [1, 1], [1, 1], False))


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize("x, layer, strides", [(STEPS, L.Conv1DTranspose, 3), (IMAGES, L.Conv2DTranspose, 2),
                                               (VOLUMES, L.Conv3DTranspose, 2)])
def test_transposed_convolutions_are_the_gradient_of_convolutions(x, layer, strides, padding):
    made = layer(5, 3, strides=strides, padding=padding, use_bias=False)
    image = made(x)
    rank = x.ndim - 2
    # <conv(image'), x> = <image', transposed(x)> for any image'.
    other = RNG.normal(size=image.shape).astype("f4")
    forward = convolved(other, made.kernel.numpy(), [strides] * rank, [1] * rank, padding == "same")
    assert forward.shape == x.shape
    np.testing.assert_allclose((forward * x).sum(), (other * image.numpy()).sum(), rtol=1e-3)
    if rank == 2:
        close(tf.nn.conv2d_transpose(x, made.kernel, image.shape, strides, padding.upper()), image)


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("x, rank", [(STEPS, 1), (IMAGES, 2), (VOLUMES, 3)])
def test_pooling_takes_the_largest_or_the_mean_of_windows(x, rank, same):
    padding = "same" if same else "valid"
    for name, low, fold in (("MaxPooling", -np.inf, np.max), ("AveragePooling", np.nan, np.nanmean)):
        wide = padded(x, [2] * rank, [2] * rank, [1] * rank, same, low)
        expected = None
        for lengths, place, window in windows(wide, [2] * rank, [2] * rank, [1] * rank):
            expected = np.zeros((len(x), *lengths, x.shape[-1])) if expected is None else expected
            expected[(slice(None), *place)] = fold(window, axis=tuple(range(1, rank + 1)))
        close(getattr(L, f"{name}{rank}D")(2, padding=padding)(x), expected)
    axes = tuple(range(1, rank + 1))
    close(getattr(L, f"GlobalMaxPooling{rank}D")()(x), x.max(axes))
    close(getattr(L, f"GlobalAveragePooling{rank}D")(keepdims=True)(x), x.mean(axes, keepdims=True))


def test_batch_normalization_learns_means_in_training_and_uses_them_after():
    layer = L.BatchNormalization(momentum=0.5, epsilon=1e-3)
    mean, variance = IMAGES.mean((0, 1, 2)), IMAGES.var((0, 1, 2))
    close(layer(IMAGES, training=True), (IMAGES - mean) / np.sqrt(variance + 1e-3), 1e-4)
    close(layer.moving_mean.numpy(), 0.5 * mean)
    close(layer.moving_variance.numpy(), 0.5 + 0.5 * variance)
    held = (IMAGES - 0.5 * mean) / np.sqrt(0.5 + 0.5 * variance + 1e-3)
    close(layer(IMAGES), held, 1e-4)
    layer.trainable = False
    close(layer(IMAGES, training=True), held, 1e-4)
    assert len(layer.weights) == 4 and not layer.trainable_weights and len(layer.non_trainable_weights) == 4


def test_other_normalizations():
    def normal(x, axes):
        return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-3)

    close(L.LayerNormalization()(IMAGES), normal(IMAGES, -1), 1e-4)
    close(L.LayerNormalization(axis=[1, 3], scale=False)(IMAGES), normal(IMAGES, (1, 3)), 1e-4)
    x = RNG.normal(size=(2, 5, 6)).astype("f4")
    close(L.GroupNormalization(3)(x), normal(x.reshape(2, 5, 3, 2), (1, 3)).reshape(2, 5, 6), 1e-4)
    close(L.UnitNormalization()(ROWS), ROWS / np.linalg.norm(ROWS, axis=-1, keepdims=True))
    close(L.RMSNormalization()(ROWS), ROWS / np.sqrt((ROWS**2).mean(-1, keepdims=True) + 1e-6))
    layer = L.Normalization()
    layer.adapt(ROWS)
    close(layer(ROWS), (ROWS - ROWS.mean(0)) / ROWS.std(0), 1e-4)


def gru(x, h, kernel, recurrent, bias):
    units = h.shape[-1]
    for t in range(x.shape[1]):
        given, inner = x[:, t] @ kernel + bias[0], h @ recurrent + bias[1]
        z, r = sigmoid(given[:, :units] + inner[:, :units]), sigmoid(given[:, units:2 * units] + inner[:, units:2 * units])
        h = z * h + (1 - z) * np.tanh(given[:, 2 * units:] + r * inner[:, 2 * units:])
        yield h


def lstm(x, h, kernel, recurrent, bias):
    c = np.zeros_like(h)
    for t in range(x.shape[1]):
        i, f, g, o = np.split(x[:, t] @ kernel + h @ recurrent + bias, 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        yield h


def plain(x, h, kernel, recurrent, bias):
    for t in range(x.shape[1]):
        h = np.tanh(x[:, t] @ kernel + h @ recurrent + bias)
        yield h


@pytest.mark.parametrize("kind, steps", [(L.SimpleRNN, plain), (L.GRU, gru), (L.LSTM, lstm)])
def test_recurrent_layers_are_loops_over_steps(kind, steps):
    layer = kind(5, return_sequences=True, bias_initializer="glorot_uniform" if kind is L.GRU else "ones")
    made = layer(STEPS)
    weights = [w.astype("f8") for w in layer.get_weights()]
    expected = np.stack(list(steps(STEPS, np.zeros((3, 5)), *weights)), 1)
    close(made, expected)
    last = kind(5, return_state=True)
    last(STEPS)
    last.set_weights(layer.get_weights())
    out, *states = last(STEPS)
    close(out, expected[:, -1])
    close(states[0], expected[:, -1])
    back = kind(5, go_backwards=True, return_sequences=True)
    back(STEPS)
    back.set_weights(layer.get_weights())
    close(back(STEPS), np.stack(list(steps(STEPS[:, ::-1], np.zeros((3, 5)), *weights)), 1))
    both = L.Bidirectional(kind(5, return_sequences=True))
    both(STEPS)
    both.set_weights(layer.get_weights() * 2)
    close(both(STEPS), np.concatenate([expected, back(STEPS).numpy()[:, ::-1]], -1))


def test_recurrent_layers_pass_over_masked_steps_and_keep_their_state():
    mask = np.array([[1, 1, 1, 0, 0, 0, 0], [1, 0, 1, 1, 1, 1, 0], [1] * 7], bool)
    layer = L.LSTM(4)
    made = layer(STEPS, mask=tf.constant(mask))
    for row in range(3):
        close(made[row], layer(STEPS[row:row + 1, mask[row]])[0])
    numbers = np.array([[3, 4, 0, 0], [5, 1, 2, 6]], "int32")
    table = L.Embedding(8, 4, mask_zero=True)
    masked = layer(table(numbers)).numpy()
    close(masked[0], layer(table(numbers[:1, :2]))[0])
    keeps = L.GRU(3, stateful=True)
    first, second = keeps(STEPS[:, :3]).numpy(), keeps(STEPS[:, 3:]).numpy()
    plain_layer = L.GRU(3)
    plain_layer(STEPS)
    plain_layer.set_weights(keeps.get_weights())
    close(second, plain_layer(STEPS).numpy())
    keeps.reset_state()
    close(keeps(STEPS[:, :3]), first)


def test_multi_head_attention_is_a_softmax_of_products():
    layer = L.MultiHeadAttention(2, 3)
    made, scores = layer(STEPS, STEPS, return_attention_scores=True)
    qk, qb, kk, kb, vk, vb, ok, ob = [w.astype("f8") for w in layer.get_weights()]
    q, k, v = (np.einsum("btw,whd->bhtd", STEPS, kernel) + bias[:, None] for kernel, bias in ((qk, qb), (kk, kb), (vk, vb)))

    def attended(low):
        e = np.exp(np.einsum("bhtd,bhsd->bhts", q, k) / np.sqrt(3) + low)
        p = e / e.sum(-1, keepdims=True)
        return np.einsum("bhtd,hdo->bto", np.einsum("bhts,bhsd->bhtd", p, v), ok) + ob, p

    close(made, attended(0.0)[0])
    close(scores, attended(0.0)[1])
    close(layer(STEPS, STEPS), attended(0.0)[0])
    causal = np.where(np.tril(np.ones((7, 7))) > 0, 0.0, -np.inf)
    close(layer(STEPS, STEPS, use_causal_mask=True), attended(causal)[0])
    allowed = RNG.random((3, 7, 7)) > 0.3
    allowed[..., 0] = True
    close(layer(STEPS, STEPS, attention_mask=allowed), attended(np.where(allowed, 0.0, -np.inf)[:, None])[0])


def test_layers_that_move_elements():
    close(L.Flatten()(IMAGES), IMAGES.reshape(2, -1))
    close(L.Reshape((-1, 3))(ROWS), ROWS.reshape(5, 2, 3))
    close(L.Permute((3, 1, 2))(IMAGES), IMAGES.transpose(0, 3, 1, 2))
    close(L.RepeatVector(3)(ROWS), np.repeat(ROWS[:, None], 3, 1))
    close(L.ZeroPadding2D(((1, 2), (0, 3)))(IMAGES), np.pad(IMAGES, [(0, 0), (1, 2), (0, 3), (0, 0)]))
    close(L.Cropping2D(((1, 2), (0, 3)))(IMAGES), IMAGES[:, 1:-2, :-3])
    close(L.UpSampling1D(2)(STEPS), STEPS.repeat(2, 1))
    other = STEPS[::-1].copy()
    for layer, expected in ((L.Add(), STEPS + other), (L.Subtract(), STEPS - other), (L.Multiply(), STEPS * other),
                            (L.Average(), (STEPS + other) / 2), (L.Maximum(), np.maximum(STEPS, other)),
                            (L.Minimum(), np.minimum(STEPS, other)), (L.Concatenate(1), np.concatenate([STEPS, other], 1)),
                            (L.Dot(2), np.einsum("btw,bsw->bts", STEPS, other))):
        close(layer([STEPS, other]), expected)
    inner = L.Dense(2)
    timed = L.TimeDistributed(inner)
    close(timed(STEPS), STEPS @ inner.kernel.numpy())
    close(L.Rescaling(0.5, 1.0)(np.array([[2, 4]], "uint8")), [[2.0, 3.0]])


def test_dropout_leaves_elements_out_in_training_alone():
    x = np.ones((100, 100), "f4")
    layer = L.Dropout(0.25)
    assert (layer(x).numpy() == x).all()
    made = layer(x, training=True).numpy()
    assert set(np.unique(made)) == {0.0, np.float32(1 / 0.75)} and abs((made == 0).mean() - 0.25) < 0.03
    channels = L.SpatialDropout1D(0.5)(np.ones((8, 9, 16), "f4"), training=True).numpy()
    assert all(len(np.unique(channels[b, :, c])) == 1 for b in range(8) for c in range(16))
    model = tf.keras.Sequential([layer])
    assert (model(x, training=True).numpy() == 0).any() and (model(x).numpy() == x).all()


def test_rows_of_an_embedding_are_updated_alone():
    table = L.Embedding(1000, 4)
    optimizer = tf.keras.optimizers.Adam(0.1)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(table(np.array([3, 5, 3])) ** 2)
    gradient = tape.gradient(loss, table.embeddings)
    assert isinstance(gradient, tf.IndexedSlices)
    before = table.embeddings.numpy().copy()
    optimizer.apply_gradients([(gradient, table.embeddings)])
    changed = np.nonzero((table.embeddings.numpy() != before).any(1))[0]
    assert changed.tolist() == [3, 5]


LAYERS = [
    (L.Dense(3), (6,)), (L.Conv2D(3, 2, activation="relu"), (6, 7, 3)), (L.Conv2DTranspose(3, 2, strides=2), (6, 7, 3)),
    (L.LSTM(3, return_sequences=True), (7, 4)), (L.Bidirectional(L.GRU(3)), (7, 4)), (L.BatchNormalization(), (6,)),
    (L.MaxPooling2D(), (6, 7, 3)), (L.Flatten(), (6, 7)), (L.Reshape((3, 2)), (6,)), (L.Embedding(9, 4), (5,)),
    (L.TimeDistributed(L.Dense(2)), (7, 4)), (L.PReLU(), (6,)), (L.RNN([L.LSTMCell(2), L.GRUCell(3)]), (7, 4)),
    (L.SeparableConv2D(4, 2), (6, 7, 3)), (L.Rescaling(2.0), (6,)), (L.Activation("gelu"), (6,)),
]


@pytest.mark.parametrize("layer, shape", LAYERS, ids=lambda v: type(v).__name__ if isinstance(v, L.Layer) else "")
def test_layers_are_made_again_from_their_configuration(layer, shape):
    x = np.abs(RNG.normal(size=(2, *shape))).astype("f4")
    again = type(layer).from_config(layer.get_config())
    made = layer(x)
    symbol = again(tf.keras.Input(shape))
    assert symbol.shape == (None, *made.shape[1:]) and again.get_config() == layer.get_config()
    again.set_weights(layer.get_weights())
    assert (again(x).numpy() == made.numpy()).all()


def test_wrong_shapes_name_the_layer_and_both_sides():
    dense = L.Dense(3, name="wide")
    dense(ROWS)
    with pytest.raises(ValueError, match=r'"wide".*expected axis -1.*6.*\(5, 5\)'):
        dense(ROWS[:, :5])
    with pytest.raises(ValueError, match=r'"conv".*expected ndim=4, found ndim=2.*\(5, 6\)'):
        L.Conv2D(3, 2, name="conv")(ROWS)
    with pytest.raises(ValueError, match=r"\(7, 4\).*\(6, 4\)"):
        L.Add()([STEPS, STEPS[:, :6]])
    with pytest.raises(ValueError, match="groups"):
        L.Conv2D(4, 2, groups=2)(IMAGES)
    with pytest.raises(ValueError, match="Unrecognized keyword"):
        L.Dense(3, unit_norm=True)
    with pytest.raises(ValueError, match="identifier"):
        L.Dense(3, kernel_initializer="unknown")
    with pytest.raises(AttributeError, match="did you mean 'Dense'"):
        L.Dence(3)

    class Forgetful(L.Layer):
        def __init__(self):
            pass

    with pytest.raises(RuntimeError, match="super"):
        Forgetful()(ROWS)


def test_a_layer_that_was_built_by_hand_is_built():
    class Plain(L.Layer):
        def build(self, input_shape):
            self.w = self.add_weight(shape=(input_shape[-1],), initializer="ones", name="w")

        def call(self, inputs):
            return inputs * self.w

    class Further(Plain):
        def build(self, input_shape):
            super().build(input_shape)
            assert not self.built
            self.b = self.add_weight(shape=(input_shape[-1],), name="b")

    for layer in [L.Dense(3), L.Embedding(9, 2), L.LSTM(2), L.BatchNormalization(), Plain(), Further()]:
        layer.build([None, 6] if not isinstance(layer, L.LSTM) else [None, 4, 6])
        weights = layer.weights
        assert layer.built and weights
        made = layer(tf.ones([2, 4, 6] if isinstance(layer, L.LSTM) else [2, 6]))
        again = type(layer).from_config(layer.get_config()) if not isinstance(layer, Plain) else type(layer)()
        again.build_from_config(layer.get_build_config())
        assert len(layer.weights) == len(weights) and all(a is b for a, b in zip(layer.weights, weights)), layer
        assert [w.shape for w in again.weights] == [w.shape for w in weights]
        assert made.shape[0] == 2 and layer.get_build_config()["input_shape"][-1] == 6

    class Counted(Plain):
        def build(self, count):
            super().build([count])

    layer = Counted()
    layer.build(6)
    assert layer.built and layer(tf.ones([2, 6])).shape == (2, 6)


def test_policies_compute_in_16_bits_and_keep_weights_in_32():
    layer = L.Dense(3, dtype="mixed_bfloat16")
    made = layer(ROWS)
    assert made.dtype == tf.bfloat16 and layer.kernel.dtype == tf.float32
    close(tf.cast(made, tf.float32), ROWS @ layer.kernel.numpy(), 0.05)
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    tf.random.set_seed(1)
    try:
        model = tf.keras.Sequential([L.Dense(4, "relu"), L.Dense(1, dtype="float32")])
        model.compile(tf.keras.optimizers.SGD(0.05), "mse")
        assert isinstance(model.optimizer, tf.keras.mixed_precision.LossScaleOptimizer)
        losses = model.fit(ROWS, ROWS[:, :1], epochs=20, verbose=0).history["loss"]
        assert losses[-1] < 0.5 * losses[0] and float(model.optimizer.dynamic_scale) >= 1.0
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")
