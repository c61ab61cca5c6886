"""What Tonnage has that others have not, and errors about memory."""

import contextlib

import numpy as np
import pytest

import tonnage as tf


def test_a_plan_says_the_peak_before_anything_runs():
    def f(x):
        return tf.tanh(x @ x)

    plan = tf.memory.plan(f, tf.TensorSpec([256, 256], tf.float32))
    assert plan.peak >= 2 * 256 * 256 * 4
    planned = tf.function(f)
    planned(tf.constant(np.ones([256, 256], "f4")))
    ran = planned.last_run()
    assert ran["used"] == ran["predicted"] == planned.plan(tf.constant(np.ones([256, 256], "f4"))).peak
    assert "peak" in tf.memory.explain(f, tf.TensorSpec([2, 2])) and "<svg" in plan._repr_html_()
    assert any("test_memory.py" in h["source"] for h in plan.live_at_peak())


def test_the_largest_batch_fits_and_one_more_does_not():
    def f(x):
        return tf.reduce_sum(tf.exp(x @ tf.transpose(x)))

    spec = tf.TensorSpec([None, 64], tf.float32, name="batch")
    most = tf.memory.max_batch(f, "1MiB", spec)
    assert tf.memory.plan(f, tf.TensorSpec([most, 64])).peak <= 1 << 20
    assert tf.memory.plan(f, tf.TensorSpec([2 * most, 64])).peak > 1 << 20


def test_the_ledger_knows_the_users_line():
    x = tf.constant(np.ones([100_000], "f4"))
    held = [h for h in tf.memory.info()["holders"] if "test_memory.py" in h["source"]]
    assert any(h["bytes"] >= 400_000 for h in held)
    assert tf.config.experimental.get_memory_info()["current"] >= 400_000
    del x


def test_a_limit_is_a_limit_and_the_error_lists_the_holders():
    x = tf.constant(np.ones([1 << 18], "f4"))
    device = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(device, [tf.config.LogicalDeviceConfiguration(memory_limit=8)])
    try:
        with pytest.raises(tf.errors.ResourceExhaustedError, match="asked for"):
            tf.sort(tf.random.normal([1 << 24]))
        with pytest.raises(MemoryError):
            tf.sort(tf.random.normal([1 << 24]))
    finally:
        tf.memory.set_limit(None)
    assert x.numpy()[0] == 1.0 and tf.reduce_sum(x).numpy() == 1 << 18


def test_the_peak_starts_again():
    tf.config.experimental.reset_memory_stats()
    y = tf.constant(np.ones([1 << 18], "f4")) + 1.0
    info = tf.config.experimental.get_memory_info("CPU:0")
    assert info["peak"] >= info["current"] >= 1 << 20
    with pytest.raises(ValueError):
        tf.config.experimental.get_memory_info("GPU:0")
    del y


def test_what_ops_do_is_listed():
    x = tf.constant([1.0, 2.0])
    made, events = tf.memory.trace(lambda: x * 2.0 + 1.0)
    assert made.numpy().tolist() == [3.0, 5.0] and any(op == "mul" for op, *_ in events)


def test_steady_programs_pass_and_growing_ones_do_not():
    kept = []
    tf.memory.steady(lambda: tf.exp(tf.constant([1.0, 2.0])))
    with pytest.raises(tf.memory.NotSteady, match="test_memory.py"):
        tf.memory.steady(lambda: kept.append(tf.constant(np.ones([1 << 14], "f4"))))


def test_large_recipes_take_nothing():
    before = tf.memory.info()["current"]
    x = tf.random.normal([1000, 1000, 1000])
    y = x * 2.0 + 1.0
    assert y.is_recipe and tf.memory.info()["current"] == before
    v = tf.Variable(tf.zeros([1000, 1000, 1000]))
    assert v.bytes == 0 and v.read_value().is_recipe


def test_an_arrays_bytes_stay_where_they_are_while_others_leave():
    expected = np.arange(1 << 18, dtype="f4")
    view = tf.constant(expected).numpy()
    with tf.memory.limit(tf.memory.info()["current"] + (4 << 20)):
        others = [tf.constant(np.full([1 << 18], i, "f4")) for i in range(12)]
        assert tf.memory.info()["away"] > 0
        assert (view == expected).all()
        assert [float(o[0]) for o in others] == list(range(12))
    assert (view == expected).all()


def test_a_model_in_files_learns_what_it_learns_in_memory():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(64, 512)).astype("float32"), rng.normal(size=(64, 1)).astype("float32")

    def trained(in_files):
        scope = tf.memory.variables_in_files() if in_files else contextlib.nullcontext()
        with scope:
            model = tf.keras.Sequential([tf.keras.Input([512]), tf.keras.layers.Dense(512, activation="tanh"),
                                         tf.keras.layers.Dense(512, activation="tanh"), tf.keras.layers.Dense(1)])
        for i, w in enumerate(model.weights):
            w.assign(np.random.default_rng(i).normal(size=w.shape).astype("float32") * 0.05)
        model.compile(tf.keras.optimizers.Adam(1e-3), "mse")
        history = model.fit(x, y, epochs=3, batch_size=32, verbose=0, shuffle=False)
        return model, history.history["loss"]

    there, losses = trained(True)
    here, expected = trained(False)
    assert [w.in_files for w in there.weights] == [True, False, True, False, False, False]
    assert not any(w.in_files for w in here.weights)
    assert losses == expected and losses[-1] < losses[0]
    for a, b in zip(there.get_weights(), here.get_weights()):
        assert (a == b).all()
    batch = (tf.TensorSpec([32, 512]), tf.TensorSpec([32, 1]))
    assert there.plan(batch).peak < here.plan(batch).peak


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad", "adam"])
def test_an_embedding_in_files_learns_what_it_learns_in_memory(optimizer):
    rng = np.random.default_rng(5)
    x, y = rng.integers(0, 30_000, size=(128, 9)), rng.normal(size=(128, 1)).astype("float32")

    def trained(in_files):
        tf.random.set_seed(7)
        with tf.memory.variables_in_files() if in_files else contextlib.nullcontext():
            table = tf.keras.layers.Embedding(30_000, 24)
            table.build([None, None])
        model = tf.keras.Sequential([table, tf.keras.layers.GlobalAveragePooling1D(), tf.keras.layers.Dense(1)])
        model.compile(optimizer, "mse")
        history = model.fit(x, y, epochs=2, batch_size=32, verbose=0, shuffle=False)
        assert table.embeddings.in_files == in_files
        plan = model.plan((tf.TensorSpec([32, 9], "int64"), tf.TensorSpec([32, 1])))
        return history.history["loss"], table.embeddings.numpy(), plan.peak

    (losses, values, peak), (expected, others, more) = trained(True), trained(False)
    assert losses == expected and losses[-1] < losses[0]
    assert (values == others).all()
    assert peak < 30_000 * 24 * 4 < more


def test_a_model_in_files_is_saved_and_loaded(tmp_path):
    with tf.memory.variables_in_files():
        model = tf.keras.Sequential([tf.keras.Input([512]), tf.keras.layers.Dense(512)])
        other = tf.keras.Sequential([tf.keras.Input([512]), tf.keras.layers.Dense(512)])
    model.save_weights(tmp_path / "w.weights.h5")
    other.load_weights(tmp_path / "w.weights.h5")
    assert other.weights[0].in_files
    assert (model.get_weights()[0] == other.get_weights()[0]).all()


@pytest.mark.parametrize("wrong", [-1, 2**64, 3.5, "-1", "much"])
def test_bytes_that_are_none_are_refused_with_what_is_needed(wrong):
    with pytest.raises(ValueError, match="bytes|MiB"):
        tf.function(lambda x: x, budget=wrong)(tf.ones([2]))
    with pytest.raises(ValueError, match="bytes|MiB"):
        tf.memory.limit(wrong).__enter__()


def test_fresh_tables_in_files_are_read_by_rows():
    with tf.memory.variables_in_files():
        table = tf.Variable(tf.zeros([200_000, 16]))
    tf.config.experimental.reset_memory_stats("CPU:0")
    before = tf.memory.info()["peak"]
    assert tf.gather(table, [1, 2]).numpy().tolist() == [[0.0] * 16] * 2
    assert tf.memory.info()["peak"] - before < 200_000 * 16


def test_errors_of_budgets_and_limits_end_in_the_line_of_the_program():
    with pytest.raises(ValueError, match=r"test_memory\.py:\d+"):
        tf.function(lambda x: x, budget=0)(tf.ones([2]))
    with pytest.raises(ValueError, match=r"test_memory\.py:\d+"):
        tf.memory.limit("0").__enter__()


@pytest.mark.parametrize("shape", [(2, 0, 66), (0, 3, 66), (2, 3, 0)])
def test_tensors_without_elements_run_in_every_piece_of_a_batch(shape):
    x, row = tf.zeros(shape), tf.constant(np.linspace(0.5, 2.0, shape[-1]).astype("f4"))

    def program(x, row):
        return tf.nn.batch_normalization(x, row, tf.square(row), row, row, 1e-3)

    peak = tf.function(program).plan(x, row).peak
    for budget in range(peak, 0, -64):
        try:
            made = tf.function(program, budget=budget)(x, row)
        except tf.errors.ResourceExhaustedError:
            break
        assert made.shape == shape, budget


def test_the_least_budget_is_the_one_that_a_refusal_names():
    w = tf.Variable(tf.ones([64, 64]))

    def step(x):
        with tf.GradientTape() as tape:
            h = x
            for _ in range(8):
                h = tf.tanh(h @ w)
            loss = tf.reduce_mean(h)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    x = tf.ones([256, 64])
    least = tf.function(step, budget="least").plan(x).peak
    with pytest.raises(tf.errors.ResourceExhaustedError, match=rf"least that would do is .* \({least} bytes\)"):
        tf.function(step, budget=least - 1).plan(x)
    free = tf.function(step)
    with tf.memory.budgeted("least"):
        assert free.plan(x).peak == tf.memory.budget(step, "least").plan(x).peak == least
        free(x)
    assert free.plan(x).peak > least and free.last_run()["used"] == least
    with tf.memory.budgeted("least"), pytest.raises(tf.errors.ResourceExhaustedError):
        tf.function(step, budget=least - 1).plan(x)
    with pytest.raises(ValueError, match="leaner"):
        tf.function(step, budget="leaner")
