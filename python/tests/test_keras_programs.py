"""Programs as Keras' users write them; what they give was compared with Keras 3.15 on TensorFlow 2.21 with the same weights."""

import csv
import gc
import os

import numpy as np
import pytest

import tonnage as tf

K, L = tf.keras, tf.keras.layers


def numbers(*shape, seed=1):
    return np.random.default_rng(seed).normal(size=shape).astype("f4")


def with_weights(model, scale=0.3):
    model.set_weights([np.random.default_rng(i).normal(size=w.shape).astype("f4") * scale for i, w in enumerate(model.get_weights())])
    return model


def line(**compiled):
    model = with_weights(K.Sequential([L.Input((3,)), L.Dense(1)]))
    model.compile(**{"optimizer": "sgd", "loss": "mse", **compiled})
    return model


def test_a_training_step_gets_inputs_alone_as_they_are():
    class Alone(K.Model):
        def train_step(self, real):
            seen.append((type(real), tuple(real.shape)))
            return {"mean": tf.reduce_mean(real)}

    seen, model = [], Alone()
    model.compile()
    assert list(model.fit(numbers(20, 3), batch_size=10, verbose=0).history) == ["mean"]
    model.fit(tf.data.Dataset.from_tensor_slices(numbers(20, 3)).batch(5), verbose=0)
    assert seen == [(tf.Tensor, (10, 3)), (tf.Tensor, (5, 3))]

    class Several(K.Model):
        def train_step(self, data):
            (a, b), = data
            return {"sum": tf.reduce_sum(a) + tf.reduce_sum(b)}

    several = Several()
    several.compile()
    history = several.fit([np.ones((4, 1), "f4"), np.ones((4, 2), "f4")], verbose=0).history
    assert history["sum"] == [12.0]


def test_functions_of_callbacks_always_get_figures():
    seen = []
    hear = K.callbacks.LambdaCallback(on_train_begin=lambda logs: seen.append("begin"), on_train_batch_begin=lambda batch, logs: seen.append(batch),
                                      on_epoch_begin=lambda epoch, logs: seen.append(f"epoch {epoch}"), on_train_end=lambda logs: seen.append(sorted(logs)))
    line().fit(numbers(4, 3), numbers(4, 1), batch_size=2, verbose=0, callbacks=[hear])
    assert seen == ["begin", "epoch 0", 0, 1, ["loss"]]


def test_weighted_metrics_beside_plain_ones_of_the_same_name():
    model = line(metrics=["mae", K.metrics.MeanAbsoluteError(name="mae")], weighted_metrics=["mae"])
    x, y, weight = numbers(8, 3), numbers(8, 1), np.linspace(0, 2, 8).astype("f4")
    logs = model.evaluate(x, y, sample_weight=weight, return_dict=True, verbose=0)
    assert sorted(logs) == ["loss", "mae", "mae_1", "weighted_mae"]
    wrong = np.abs(model.predict(x, verbose=0) - y)[:, 0]
    np.testing.assert_allclose([logs["mae"], logs["mae_1"], logs["weighted_mae"]],
                               [wrong.mean(), wrong.mean(), (wrong * weight).sum() / weight.sum()], rtol=1e-5)


def test_a_metric_has_the_name_that_it_was_asked_for_by():
    model = line(loss="binary_crossentropy", metrics=["AUC", "mse"])
    assert sorted(model.evaluate(numbers(4, 3), np.array([[0.0], [1], [1], [0]], "f4"), return_dict=True, verbose=0)) == ["AUC", "loss", "mse"]


def test_figures_of_several_outputs_are_listed_by_name_at_the_end():
    x = L.Input((3,))
    model = K.Model(x, [L.Dense(1, name="size")(x), L.Dense(2, name="kind")(x)])
    model.compile("sgd", ["mse", "mse"], metrics={"size": ["mae"], "kind": ["mae"]})
    given = numbers(6, 3), [numbers(6, 1), numbers(6, 2)]
    listed, named = model.evaluate(*given, verbose=0), model.evaluate(*given, verbose=0, return_dict=True)
    assert listed == [named[n] for n in ("loss", "size_loss", "kind_loss", "kind_mae", "size_mae")]


def test_one_batch_has_the_figures_of_that_batch():
    model, x, y = line(metrics=["mae"]), numbers(4, 3), numbers(4, 1)
    for _ in range(3):
        wrong = model.predict(x, verbose=0) - y
        np.testing.assert_allclose(model.train_on_batch(x, y), [(wrong**2).mean(), np.abs(wrong).mean()], rtol=1e-5)
    wrong = model.predict(x, verbose=0) - y
    np.testing.assert_allclose(model.test_on_batch(x, y), [(wrong**2).mean(), np.abs(wrong).mean()], rtol=1e-5)


def test_clones_have_classes_of_ones_own_and_layers_that_a_function_makes():
    class Twice(L.Layer):
        def call(self, inputs):
            return inputs * 2.0

    x = L.Input((3,))
    shared = L.Dense(3, name="shared")
    model = K.Model(x, Twice()(shared(shared(x))))
    clone = K.models.clone_model(model)
    assert len(clone.weights) == 2 and clone.weights[0] is not model.weights[0]
    clone.set_weights(model.get_weights())
    given = numbers(4, 3)
    np.testing.assert_array_equal(clone.predict(given, verbose=0), model.predict(given, verbose=0))

    def other(layer):
        config = layer.get_config()
        return type(layer).from_config({**config, "activation": "relu"} if isinstance(layer, L.Dense) else config)

    relu = K.models.clone_model(model, clone_function=other)
    w, b = with_weights(relu).get_weights()
    expected = np.maximum(given @ w + b, 0.0)
    np.testing.assert_allclose(relu.predict(given, verbose=0), 2 * np.maximum(expected @ w + b, 0.0), rtol=1e-5)
    sequential = K.Sequential([L.Input((3,)), L.Dense(2), Twice()])
    again = K.models.clone_model(sequential, clone_function=other)
    assert [w.shape for w in again.get_weights()] == [(3, 2), (2,)] and again.layers[0].activation.__name__ == "relu"
    same = K.models.clone_model(sequential, clone_function=lambda layer: layer)
    assert same.layers[0] is sequential.layers[0]


def test_the_rate_of_a_schedule_is_that_of_the_next_step():
    model = line(optimizer=K.optimizers.SGD(K.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)))
    model.fit(numbers(10, 3), numbers(10, 1), batch_size=2, epochs=2, verbose=0)
    np.testing.assert_allclose(float(model.optimizer.learning_rate), 0.1 * 0.5**5, rtol=1e-6)


def test_schedules_and_running_means_count_each_batch_where_gradients_add_up():
    rate = K.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)
    model = line(optimizer=K.optimizers.SGD(rate, gradient_accumulation_steps=3, use_ema=True, ema_momentum=0.9))
    x, y, w, mean, sums = numbers(8, 3), numbers(8, 1), model.get_weights(), None, 0.0
    model.fit(x, y, batch_size=1, epochs=1, shuffle=False, verbose=0)
    kernel, bias = w[0].astype("f8"), w[1].astype("f8")
    for i in range(8):
        wrong = 2 * (x[i] @ kernel + bias - y[i])
        sums = sums + np.concatenate([np.outer(x[i], wrong).ravel(), wrong])
        if i % 3 == 2:
            step = 0.1 * 0.5 ** (i / 2) * sums / 3
            kernel, bias, sums = kernel - step[:3, None], bias - step[3:], 0.0
        now = np.concatenate([kernel.ravel(), bias])
        mean = now if i // 3 == 0 else 0.9 * mean + 0.1 * now
    # At the end of training variables become their means.
    np.testing.assert_allclose(np.concatenate([w.ravel() for w in model.get_weights()]), mean, rtol=1e-5)


def test_backups_go_on_with_the_epoch_that_was_interrupted(tmp_path):
    class Stop(K.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 2:
                raise RuntimeError("the power is gone")

    given, whole = (numbers(8, 3), numbers(8, 1)), line()
    expected = whole.fit(*given, epochs=4, verbose=0, shuffle=False).history["loss"]
    with pytest.raises(RuntimeError, match="power"):
        line().fit(*given, epochs=4, verbose=0, shuffle=False, callbacks=[K.callbacks.BackupAndRestore(tmp_path / "b"), Stop()])
    again = K.Sequential([L.Input((3,)), L.Dense(1)])
    again.compile("sgd", "mse")
    history = again.fit(*given, epochs=4, verbose=0, shuffle=False, callbacks=[K.callbacks.BackupAndRestore(tmp_path / "b")])
    assert history.epoch == [2, 3] and os.listdir(tmp_path / "b") == []
    np.testing.assert_allclose(history.history["loss"], expected[2:], rtol=1e-6)


def test_a_log_has_columns_for_validation_that_comes_later(tmp_path):
    line(metrics=["mae"]).fit(numbers(8, 3), numbers(8, 1), epochs=2, verbose=0, validation_split=0.5, validation_freq=2,
                              callbacks=[K.callbacks.CSVLogger(tmp_path / "log.csv")])
    first, second = csv.DictReader(open(tmp_path / "log.csv"))
    assert list(first) == ["epoch", "loss", "mae", "val_loss", "val_mae"]
    assert first["val_loss"] == "NA" and float(second["val_loss"]) > 0


def attended(x, kernel, heads):
    """Attention over rows of ``x`` by the plain formula, with the weights of a layer."""
    wq, bq, wk, bk, wv, bv, wo, bo = kernel
    q, k, v = (np.einsum("...tc,chd->...htd", x, w) + b[:, None] for w, b in ((wq, bq), (wk, bk), (wv, bv)))
    scores = np.einsum("...htd,...hsd->...hts", q, k) / np.sqrt(wq.shape[-1])
    return scores, v, lambda shares: np.einsum("...hts,...hsd,hdo->...to", shares, v, wo) + bo


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_masks_and_scores_of_attention_over_inputs_of_higher_rank():
    x = numbers(2, 4, 5, 6)
    allowed = np.random.default_rng(0).random((2, 4, 5, 5)) > 0.4
    allowed[..., 0] = True
    layer = L.MultiHeadAttention(2, 3, attention_axes=2)
    layer(x, x)
    with_weights(layer)
    scores, _, end = attended(x.astype("f8"), [w.astype("f8") for w in layer.get_weights()], 2)
    shares = softmax(np.where(allowed[:, :, None], scores, -1e9))
    made, got = layer(x, x, attention_mask=allowed, return_attention_scores=True)
    np.testing.assert_allclose(made, end(shares), atol=1e-5)
    np.testing.assert_allclose(got, shares, atol=1e-5)
    np.testing.assert_allclose(layer(x, x, attention_mask=allowed), end(shares), atol=1e-5)
    # One for all rows but those that are attended along, and one that says which values are there.
    few = layer(x, x, attention_mask=allowed[:, 0])
    np.testing.assert_allclose(few, end(softmax(np.where(allowed[:, :1, None], scores, -1e9))), atol=1e-5)
    there = allowed[:, :, 0]
    masked = layer(x, x, value_mask=there)
    np.testing.assert_allclose(masked, end(softmax(np.where(there[:, :, None, None], scores, -1e9))), atol=1e-5)
    # Along two axes at once, which are one of their product.
    both = L.MultiHeadAttention(2, 3, attention_axes=(1, 2))
    both(x, x)
    with_weights(both)
    flat, pairs = x.reshape(2, 20, 6), np.random.default_rng(2).random((2, 4, 5, 4, 5)) > 0.3
    scores, _, end = attended(flat.astype("f8"), [w.astype("f8") for w in both.get_weights()], 2)
    shares = softmax(np.where(pairs.reshape(2, 1, 20, 20), scores, -1e9))
    made, got = both(x, x, attention_mask=pairs, return_attention_scores=True)
    np.testing.assert_allclose(made, end(shares).reshape(2, 4, 5, 6), atol=1e-5)
    assert tuple(got.shape) == (2, 2, 4, 5, 4, 5)
    with pytest.raises(ValueError, match="one rank"):
        layer(x, x[0])
    with pytest.raises(ValueError, match=r"mask of shape \(2, 4\)"):
        layer(x, x, value_mask=allowed[:, :, 0, 0])
    with pytest.raises(TypeError, match="'value'"):
        L.MultiHeadAttention(2, 3)(x)


def test_attention_is_trained_in_planned_steps_on_inputs_of_higher_rank():
    x = L.Input((4, 5, 6))
    model = K.Model(x, L.Dense(1)(L.Flatten()(L.MultiHeadAttention(2, 3, attention_axes=2)(x, x, attention_mask=np.tri(5, dtype=bool)))))
    model.compile("sgd", "mse")
    losses = model.fit(numbers(6, 4, 5, 6), numbers(6, 1), epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


def test_padded_queries_see_the_mean_of_all_values():
    ids = np.array([[1, 2, 0], [0, 4, 5]])
    x = L.Input((3,), dtype="int32")
    h = L.Embedding(6, 4, mask_zero=True)(x)
    layer = L.MultiHeadAttention(1, 4)
    model = with_weights(K.Model(x, layer(h, h)))
    causal = K.Model(x, layer(h, h, use_causal_mask=True))
    rows = model.layers[1].get_weights()[0].astype("f8")[ids]
    scores, _, end = attended(rows, [w.astype("f8") for w in layer.get_weights()], 1)
    there = ids != 0
    allowed = there[:, None, :, None] & there[:, None, None, :]
    for made, mask in ((model, allowed), (causal, allowed & np.tri(3, dtype=bool))):
        np.testing.assert_allclose(made.predict(ids, verbose=0), end(softmax(np.where(mask, scores, -1e9))), atol=1e-5)


def test_steps_have_masks_of_their_own_and_figures_of_their_own_batch():
    ids = np.array([[[1, 2, 0], [3, 0, 0]], [[4, 5, 1], [2, 3, 0]]])
    inner = K.Sequential([L.Input((3,), dtype="int32"), L.Embedding(6, 4, mask_zero=True), L.LSTM(3)])
    outer = K.Sequential([L.Input((2, 3), dtype="int32"), L.Embedding(6, 4, mask_zero=True), L.TimeDistributed(L.LSTM(3))])
    outer.set_weights(with_weights(inner).get_weights())
    by_step = np.stack([inner.predict(ids[:, i], verbose=0) for i in range(2)], 1)
    np.testing.assert_allclose(outer.predict(ids, verbose=0), by_step, atol=1e-6)
    steps = L.TimeDistributed(L.BatchNormalization(momentum=0.5))
    x = numbers(6, 2, 3) + np.array([0.0, 5.0], "f4")[:, None]
    made = steps(x, training=True).numpy()
    np.testing.assert_allclose(made.mean(0), np.zeros((2, 3)), atol=1e-5)
    mean = 0.5 * (0.5 * x[:, 0].mean(0)) + 0.5 * x[:, 1].mean(0)
    np.testing.assert_allclose(steps.layer.moving_mean.numpy(), mean, rtol=1e-5)


def test_weights_that_are_not_there_and_padding_that_is_too_short(tmp_path):
    with pytest.raises(FileNotFoundError, match="none.weights.h5"):
        line().load_weights(tmp_path / "none.weights.h5")
    data = tf.data.Dataset.from_generator(lambda: iter([[1, 2, 3]]), output_signature=tf.TensorSpec([None], tf.int32))
    with pytest.raises(tf.errors.DataLossError, match="smaller size"):
        list(data.padded_batch(1, padded_shapes=[2]))


@pytest.mark.parametrize("kind", ["table", "deep"])
def test_a_model_of_nine_tenths_of_the_budget_is_trained_saved_and_loaded_in_it(tmp_path, kind):
    budget = 8 << 20

    def made():
        if kind == "table":
            layers = [L.Input((4,), dtype="int32"), L.Embedding(int(0.9 * budget) // 4 // 256, 256), L.GlobalAveragePooling1D(), L.Dense(1)]
        else:
            width = int((0.9 * budget / 4 / 16) ** 0.5)
            layers = [L.Input((width,)), *(L.Dense(width, activation="relu") for _ in range(16))]
        model = K.Sequential(layers)
        model.compile(K.optimizers.SGD(0.1), "mse")
        return model

    gc.collect()
    with tf.memory.limit(budget + tf.memory.info()["current"]):
        model = made()
        assert sum(w.shape.num_elements() * 4 for w in model.weights) > 0.89 * budget
        x = np.arange(8).reshape(2, 4) if kind == "table" else np.ones((2, model.input_shape[1]), "f4")
        y = np.ones((2, model.output_shape[1]), "f4")
        model.fit(x, y, verbose=0)
        model.save(tmp_path / "model.keras")
        model.save_weights(tmp_path / "model.weights.h5")
        expected = model.predict(x, verbose=0)
        model.fit(x, y, verbose=0)
        assert not np.array_equal(model.predict(x, verbose=0), expected)
        model.load_weights(tmp_path / "model.weights.h5")  # over what it holds
        np.testing.assert_array_equal(model.predict(x, verbose=0), expected)
        del model
        again = K.models.load_model(tmp_path / "model.keras")
        np.testing.assert_array_equal(again.predict(x, verbose=0), expected)
        again.fit(x, y, verbose=0)


def test_merged_inputs_are_masked_where_none_of_them_has_anything():
    first, second = np.array([[1, 2, 0, 0]]), np.array([[3, 0, 4, 0]])
    a, b = L.Input((4,), dtype="int32"), L.Input((4,), dtype="int32")
    embed, plain = L.Embedding(5, 3, mask_zero=True), L.Embedding(5, 3)
    mean = L.GlobalAveragePooling1D()
    outputs = [mean(L.Add()([embed(a), embed(b)])), mean(L.Concatenate()([embed(a), embed(b)])), mean(L.Add()([embed(a), plain(b)])),
               mean(L.Concatenate(axis=1)([embed(a), embed(b)])), L.Multiply()([embed(a), embed(b)])]
    model = with_weights(K.Model([a, b], outputs))
    x, y = (embed.get_weights()[0][ids] for ids in (first, second))
    z = plain.get_weights()[0][second]
    there = [0, 1, 2]
    expected = [(x + y)[:, there].mean(1), np.concatenate([x, y], -1)[:, there].mean(1), (x + z).mean(1),
                np.concatenate([x[:, :2], y[:, [0, 2]]], 1).mean(1),
                # Of a product, what is masked is left out.
                np.stack([x[:, 0] * y[:, 0], x[:, 1], y[:, 2], 0 * x[:, 3]], 1)]
    for made, wanted in zip(model.predict([first, second], verbose=0), expected):
        np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-6)


def test_additive_attention_gives_nothing_for_queries_that_are_masked():
    layer = L.AdditiveAttention()
    made = layer([numbers(1, 3, 4), numbers(1, 2, 4)], mask=[np.array([[True, True, False]]), np.array([[True, False]])]).numpy()
    np.testing.assert_allclose(made[0, :2], np.repeat(numbers(1, 2, 4)[0, :1], 2, 0), rtol=1e-5)
    assert not made[0, 2].any()


def test_weights_that_start_as_an_array_are_saved_with_the_model(tmp_path):
    table = numbers(5, 3)
    model = K.Sequential([L.Input((2,), dtype="int32"), L.Embedding(5, 3, embeddings_initializer=K.initializers.Constant(table), trainable=False)])
    np.testing.assert_array_equal(model.predict(np.array([[1, 4]]), verbose=0)[0], table[[1, 4]])
    model.save(tmp_path / "model.keras")
    again = K.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again.get_weights()[0], table)


def test_cells_of_ones_own_are_stacked():
    class Cell(L.Layer):
        def __init__(self, units, **kwargs):
            super().__init__(**kwargs)
            self.units = self.state_size = units

        def build(self, input_shape):
            self.kernel = self.add_weight(shape=(input_shape[-1], self.units), name="kernel")
            self.recurrent = self.add_weight(shape=(self.units, self.units), name="recurrent")

        def call(self, inputs, states):
            made = tf.tanh(inputs @ self.kernel + states[0] @ self.recurrent)
            return made, [made]

    model = with_weights(K.Sequential([L.Input((5, 3)), L.RNN([Cell(4), Cell(2)])]))
    x = numbers(6, 5, 3)
    a, b, c, d = model.get_weights()
    h, g = np.zeros((6, 4)), np.zeros((6, 2))
    for step in range(5):
        h = np.tanh(x[:, step] @ a + h @ b)
        g = np.tanh(h @ c + g @ d)
    np.testing.assert_allclose(model.predict(x, verbose=0), g, atol=1e-5)


def test_added_losses_come_before_penalties():
    class Penalty(L.Layer):
        def call(self, inputs):
            self.add_loss(tf.reduce_sum(inputs) * 0.0 + 7.0)
            return inputs

    model = K.Sequential([L.Input((3,)), L.Dense(2, kernel_regularizer="l2"), Penalty()])
    model(numbers(1, 3))
    assert float(model.losses[0]) == 7.0 and len(model.losses) == 2


def test_predictions_of_a_batch_reach_callbacks():
    seen = []
    hear = K.callbacks.LambdaCallback(on_predict_batch_end=lambda batch, logs: seen.append((batch, tuple(logs["outputs"].shape))))
    line().predict(numbers(5, 3), batch_size=2, verbose=0, callbacks=[hear])
    assert seen == [(0, (2, 1)), (1, (2, 1)), (2, (1, 1))]


def test_sequences_are_padded_and_cut_at_either_end():
    given = [[1], [2, 3], [4, 5, 6]]
    pad = K.utils.pad_sequences
    assert pad(given).tolist() == [[0, 0, 1], [0, 2, 3], [4, 5, 6]]
    assert pad(given, 2, padding="post", truncating="post", value=9).tolist() == [[1, 9], [2, 3], [4, 5]]
    assert pad([[[1.5, 2.0]], []], dtype="float32").tolist() == [[[1.5, 2.0]], [[0.0, 0.0]]]
    with pytest.raises(ValueError, match="padding"):
        pad(given, padding="middle")
    with pytest.raises(ValueError, match="list of iterables"):
        pad([1, 2])
