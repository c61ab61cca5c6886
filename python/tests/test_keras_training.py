"""Models that are trained: compile, fit, evaluate, predict, steps of one's own, callbacks, budgets."""

import csv
import gc
import math

import numpy as np
import pytest

import tonnage as tf

K, L = tf.keras, tf.keras.layers
RNG = np.random.default_rng(0)
X = RNG.normal(size=(96, 6)).astype("f4")
Y = (X @ RNG.normal(size=(6, 1)) + 0.3).astype("f4")
LABELS = (X[:, :3]).argmax(1)


def regression(**kwargs):
    model = K.Sequential([L.Input((6,)), L.Dense(8, "tanh"), L.Dense(1)])
    model.compile(**{"optimizer": K.optimizers.SGD(0.05), "loss": "mse", **kwargs})
    return model


def test_fit_is_gradient_descent_as_numpy_does_it():
    model = K.Sequential([L.Input((6,)), L.Dense(1)])
    model.compile(K.optimizers.SGD(0.1), "mse")
    w, b = (v.astype("f8") for v in model.get_weights())
    history = model.fit(X, Y, batch_size=40, epochs=3, shuffle=False, verbose=0).history["loss"]
    for epoch in range(3):
        total = 0.0
        for at in range(0, 96, 40):
            x, y = X[at:at + 40], Y[at:at + 40]
            off = x @ w + b - y
            total += (off**2).sum()
            w, b = w - 0.1 * 2 * x.T @ off / len(x), b - 0.1 * 2 * off.mean(0)
        np.testing.assert_allclose(history[epoch], total / 96, rtol=1e-4)
    np.testing.assert_allclose(model.get_weights()[0], w, rtol=1e-4, atol=1e-5)


def test_figures_have_the_names_and_values_that_keras_gives_them():
    model = K.Sequential([L.Input((6,)), L.Dense(3, "softmax")])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy", K.metrics.SparseTopKCategoricalAccuracy(2)])
    history = model.fit(X, LABELS, validation_split=0.25, epochs=2, verbose=0).history
    assert list(history) == ["accuracy", "loss", "sparse_top_k_categorical_accuracy", "val_accuracy", "val_loss",
                             "val_sparse_top_k_categorical_accuracy"]
    p = model.predict(X)
    loss, accuracy, _ = model.evaluate(X, LABELS, verbose=0)
    np.testing.assert_allclose(loss, -np.log(p[range(96), LABELS]).mean(), rtol=1e-4)
    np.testing.assert_allclose(accuracy, (p.argmax(1) == LABELS).mean(), rtol=1e-6)
    assert set(model.evaluate(X, LABELS, verbose=0, return_dict=True)) == {"loss", "accuracy", "sparse_top_k_categorical_accuracy"}
    model.compile("sgd", "mse", metrics=["mae", "mse", K.losses.huber])
    assert list(model.fit(X, X[:, :3], verbose=0).history) == ["huber", "loss", "mae", "mse"]


def test_models_of_several_inputs_and_outputs_train_by_place_and_by_name():
    a, b = K.Input((6,), name="a"), K.Input((2,), name="b")
    inner = L.Dense(4, "relu")(L.Concatenate()([a, b]))
    one, two = L.Dense(1, name="one")(inner), L.Dense(2, name="two")(inner + 1.0)
    model = K.Model([a, b], [one, two])
    model.compile("sgd", ["mse", "mae"], loss_weights=[1.0, 0.5], metrics=[["mae"], ["mse"]])
    history = model.fit([X, X[:, :2]], [Y, X[:, :2]], verbose=0).history
    assert list(history) == ["loss", "one_loss", "one_mae", "two_loss", "two_mse"]
    np.testing.assert_allclose(history["loss"][0], history["one_loss"][0] + 0.5 * history["two_loss"][0], rtol=1e-5)
    outputs = model.predict({"a": X, "b": X[:, :2]})
    assert [o.shape for o in outputs] == [(96, 1), (96, 2)]
    named = K.Model({"a": a, "b": b}, {"one": one, "two": two})
    named.compile("sgd", {"one": "mse", "two": "mae"}, metrics={"two": ["mse"]})
    logs = named.fit({"a": X, "b": X[:, :2]}, {"one": Y, "two": X[:, :2]}, verbose=0).history
    assert list(logs) == ["loss", "one_loss", "two_loss", "two_mse"]
    with pytest.raises(ValueError, match="2 output"):
        model.fit([X, X[:, :2]], [Y], verbose=0)
    with pytest.raises(ValueError, match="expects 2 input"):
        model([X])


def test_subclassed_models_and_steps_of_ones_own():
    class Noisy(K.Model):
        def __init__(self):
            super().__init__()
            self.blocks = [L.Dense(8, "relu", kernel_regularizer=K.regularizers.L2(0.01)), L.Dropout(0.5)]
            self.head = L.Dense(1)
            self.seen = K.metrics.Sum(name="seen")

        def call(self, x, training=False):
            for block in self.blocks:
                x = block(x, training=training)
            if training:
                self.add_loss(0.1 * tf.reduce_mean(x**2))
            return self.head(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = self.compute_loss(x, y, self(x, training=True))
            self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
            self.seen.update_state(tf.ones([len(x)]))
            return {"loss": loss, "seen": self.seen.result()}

    model = Noisy()
    model.compile("adam", "mse")
    logs = model.fit(X, Y, epochs=3, verbose=0).history
    assert logs["seen"] == [96.0] * 3 and len(model.trainable_variables) == 4
    assert [v.shape.as_list() for v in model.weights] == [[6, 8], [8], [8, 1], [1]]
    kernel = model.blocks[0].kernel.numpy()
    np.testing.assert_allclose(float(model.losses[0]), 0.01 * (kernel**2).sum(), rtol=1e-5)
    model.blocks[0].trainable = False
    assert len(model.trainable_variables) == 2 and len(model.non_trainable_variables) == 2


def test_old_training_steps_with_metrics_in_a_loop():
    class Old(K.Model):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                pred = self(x, training=True)
                loss = self.compute_loss(y=y, y_pred=pred)
            self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(loss)
                else:
                    metric.update_state(y, pred)
            return {metric.name: metric.result() for metric in self.metrics}

    x = K.Input((6,))
    model = Old(x, L.Dense(1)(x))
    model.compile("sgd", "mse", metrics=["mae"])
    assert list(model.fit(X, Y, verbose=0).history) == ["mae", "loss"]  # "compile_metrics" is before "loss"


def test_weights_of_samples_and_classes_weigh_losses():
    model = regression()
    weight = np.linspace(0, 1, 96).astype("f4")
    loss = model.evaluate(X, Y, sample_weight=weight, batch_size=96, verbose=0)
    np.testing.assert_allclose(loss, (((model.predict(X) - Y) ** 2)[:, 0] * weight).mean(), rtol=1e-4)
    a, b = (K.Sequential([L.Input((6,)), L.Dense(3, "softmax", kernel_initializer="ones")]) for _ in range(2))
    for model in (a, b):
        model.compile("sgd", "sparse_categorical_crossentropy")
    table = {0: 2.0, 1: 0.5, 2: 0.0}
    a.fit(X, LABELS, class_weight=table, shuffle=False, verbose=0)
    b.fit(X, LABELS, sample_weight=np.array([table[i] for i in LABELS]), shuffle=False, verbose=0)
    np.testing.assert_allclose(a.get_weights()[0], b.get_weights()[0], rtol=1e-6)


def test_datasets_generators_and_sequences_are_trained_on():
    data = tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(96, seed=0).batch(32).prefetch(1)
    model = regression()
    assert len(model.fit(data, epochs=2, validation_data=data, verbose=0).history["val_loss"]) == 2
    assert model.predict(tf.data.Dataset.from_tensor_slices(X).batch(50)).shape == (96, 1)
    with pytest.raises(ValueError, match="infinitely repeating"):
        model.fit(data.repeat(), verbose=0)
    model.fit(data.repeat(), steps_per_epoch=4, epochs=2, verbose=0)

    def endless():
        while True:
            yield X[:8], Y[:8]

    assert model.fit(endless(), steps_per_epoch=3, epochs=2, verbose=0).epoch == [0, 1]
    with pytest.warns(UserWarning, match="ran out of data.*2 of 5"):
        model.fit(iter([(X, Y)] * 2), steps_per_epoch=5, verbose=0)

    def broken():
        yield X[:8], Y[:8]
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        model.fit(broken(), verbose=0)

    class Halves(K.utils.Sequence):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return X[i * 48:(i + 1) * 48], Y[i * 48:(i + 1) * 48]

    assert model.evaluate(Halves(), verbose=0) > 0


def test_a_step_is_traced_once_for_each_shape_of_a_batch():
    model = regression(metrics=["mae"])
    model.fit(X, Y, batch_size=32, epochs=4, verbose=0)
    step = model.make_train_function()
    assert step.traces == 1
    model.fit(X, Y, batch_size=40, epochs=2, verbose=0)
    assert step.traces == 3
    model.optimizer.learning_rate = 0.001
    model.fit(X, Y, batch_size=32, verbose=0)
    assert step.traces == 3


def test_the_plan_of_a_step_says_what_it_takes():
    model = regression(optimizer="adam")
    planned = model.plan(32)
    model.train_on_batch(X[:32], Y[:32])
    ran = model.make_train_function().last_run()
    assert ran["predicted"] == planned.peak == ran["used"]
    assert model.plan(64).peak > planned.peak and model.plan((X[:32], Y[:32])).peak == model.plan(32).peak
    assert K.Sequential([L.Input((4,)), L.Dense(2)]).plan(8).peak > 0
    with pytest.raises(ValueError, match="TensorSpec"):
        unknown = K.Sequential([L.Dense(2)])
        unknown.compile("sgd", "mse")
        unknown.plan(8)


def test_a_budget_holds_or_is_refused_before_the_first_step():
    def deep():
        K.utils.set_random_seed(0)
        made = K.Sequential([L.Input((64,)), *(L.Dense(64, "tanh") for _ in range(12)), L.Dense(1)])
        made.compile("sgd", "mse")
        return made

    x, y = RNG.normal(size=(512, 64)).astype("f4"), np.ones((512, 1), "f4")
    free, held = deep(), deep()
    held.set_weights(free.get_weights())
    whole = free.plan((x, y)).peak
    budget = whole * 2 // 3
    a = free.fit(x, y, batch_size=512, verbose=0).history["loss"]
    b = held.fit(x, y, batch_size=512, verbose=0, budget=budget).history["loss"]
    np.testing.assert_allclose(a, b, rtol=1e-5)
    assert held._step("train", budget).last_run()["used"] <= budget
    before = held.get_weights()
    with pytest.raises(tf.errors.ResourceExhaustedError, match="least|at least|needs"):
        held.fit(x, y, batch_size=512, verbose=0, budget="1KiB")
    assert all((a == b).all() for a, b in zip(before, held.get_weights()))


def test_callbacks_watch_stop_and_write(tmp_path):
    rates = []
    stop = K.callbacks.EarlyStopping("loss", patience=2, min_delta=1e9, restore_best_weights=True)
    record = K.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: rates.append(logs["learning_rate"]))
    model = regression()
    history = model.fit(X, Y, epochs=10, verbose=0, callbacks=[
        stop, K.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5), record, K.callbacks.CSVLogger(tmp_path / "log.csv"),
        K.callbacks.ModelCheckpoint(tmp_path / "best-{epoch}.keras", monitor="loss", save_best_only=True)])
    assert len(history.epoch) == 3 and stop.stopped_epoch == 2
    np.testing.assert_allclose(rates, [0.025, 0.0125, 0.00625])
    with open(tmp_path / "log.csv") as file:
        assert [float(row["loss"]) for row in csv.DictReader(file)] == history.history["loss"]
    assert (tmp_path / "best-1.keras").exists()
    plateau = regression()
    plateau.fit(X, Y, epochs=5, verbose=0, callbacks=[
        K.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_delta=1e9)])
    np.testing.assert_allclose(float(plateau.optimizer.learning_rate), 0.05 * 0.5**4)
    nan = regression()
    assert len(nan.fit(X * np.nan, Y, epochs=5, verbose=0, callbacks=[K.callbacks.TerminateOnNaN()]).epoch) == 1


def test_the_progress_bar_shows_figures_and_bytes(capsys):
    regression().fit(X, Y, epochs=2, verbose=1)
    out = capsys.readouterr().out
    assert out.startswith("Epoch 1/2\n3/3 ━━━") and "- loss: " in out and "planned" in out and "measured" in out
    regression().summary()
    out = capsys.readouterr().out
    assert "Total params: 65 (260 B)" in out and "A training step of 32 rows" in out
    model = regression()
    model.fit(X, Y, verbose=0)
    model.evaluate(X, Y, verbose=0)
    assert capsys.readouterr().out == ""


def test_what_is_not_ready_says_what_to_do():
    model = K.Sequential([L.Dense(1)])
    with pytest.raises(ValueError, match="compile"):
        model.fit(X, Y)
    with pytest.raises(ValueError, match="not yet been built"):
        model.summary()
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match=r"\(96, 6\), \(90, 1\)"):
        model.fit(X, Y[:90])
    with pytest.raises(ValueError, match="No loss"):
        other = K.Sequential([L.Dense(1)])
        other.compile("sgd")
        other.fit(X, Y, verbose=0)
    with pytest.raises(ValueError, match="optimizer identifier"):
        model.compile("sdg", "mse")
    with pytest.raises(ValueError, match="loss function"):
        model.compile("sgd", "mes")
        model.fit(X, Y, verbose=0)
    with pytest.raises(ValueError, match="not connected"):
        K.Model(K.Input((2,)), L.Dense(1)(K.Input((2,))))
    with pytest.raises(NotImplementedError, match="call"):
        K.Model()(X)
    with pytest.raises(ValueError, match="KerasTensor"):
        tf.square(K.Input((2,)))


def test_models_that_are_dropped_are_gone_at_once():
    def functional():
        x = K.Input((6,))
        model = K.Model(x, L.Dense(1)(L.Concatenate()([L.Dense(4)(x), x]) * 2.0))
        model.compile("adam", "mse", metrics=["mae"])
        return model

    class Own(K.Model):
        def __init__(self):
            super().__init__()
            self.inner = [L.Dense(4), L.BatchNormalization(), L.Dense(1)]
            self.compile("adam", "mse")

        def call(self, x):
            for layer in self.inner:
                x = layer(x)
            return x

    def trained(make):
        model = make()
        model.fit(X, Y, verbose=0, validation_data=(X, Y))
        model.predict(X)

    for make in (regression, functional, Own):
        trained(make)
        gc.collect()
        before = tf.memory.info()["current"]
        gc.disable()  # by counting references alone: what waits for the collector would add up meanwhile
        try:
            for _ in range(3):
                trained(make)
            assert tf.memory.info()["current"] <= before, make
        finally:
            gc.enable()


def test_predicting_again_and_again_takes_no_more():
    model = regression()
    tf.memory.steady(lambda: model.predict(X, verbose=0), iterations=20)
    whole = model.predict(X, batch_size=7)
    np.testing.assert_allclose(whole, model.predict_on_batch(X), rtol=1e-5, atol=1e-6)
    assert math.isclose(model.test_on_batch(X, Y), float(((whole - Y) ** 2).mean()), rel_tol=1e-4)


def test_predictions_in_a_dtype_that_numpy_has_not_are_put_together():
    model = K.Sequential([L.Input((6,)), L.Dense(2, dtype="mixed_bfloat16")])
    made = model.predict(X, batch_size=7)
    assert made.dtype == model.predict_on_batch(X).dtype and made.shape == (len(X), 2)
    np.testing.assert_allclose(made, model.predict_on_batch(X), rtol=2e-2, atol=2e-2)
