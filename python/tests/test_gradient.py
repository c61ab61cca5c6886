"""Tapes and gradients."""

import gc

import numpy as np
import pytest

import tonnage as tf


def test_a_tape_watches_variables_and_tensors_on_request():
    v, x = tf.Variable(2.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = v * x * x
    dv, dx = tape.gradient(y, [v, x])
    assert dv.numpy() == 9.0 and dx.numpy() == 12.0
    with pytest.raises(RuntimeError):
        tape.gradient(y, v)


def test_what_was_not_watched_or_not_used_has_no_gradient():
    v, other, x = tf.Variable(2.0), tf.Variable(1.0), tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = v * x
    assert tape.gradient(y, [other, x]) == [None, None]
    zero = tape.gradient(y, {"a": other}, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert zero["a"].numpy() == 0.0
    assert tape.gradient(y, v, output_gradients=tf.constant(5.0)).numpy() == 15.0


def test_tapes_nest_pause_and_start_again():
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = x * x * x
        slope = inner.gradient(y, x)
    assert outer.gradient(slope, x).numpy() == 18.0
    with tf.GradientTape() as tape:
        with tape.stop_recording():
            y = x * 2.0
        z = x * 5.0
    assert tape.gradient([y, z], x).numpy() == 5.0
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        y = x * x
    assert tape.gradient(y, x) is None


def test_integers_have_no_gradient():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape, pytest.warns(UserWarning):
        y = tf.cast(x, tf.int32)
        assert tape.gradient(y, x) is None


def test_jacobians_agree_with_differences():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.sin(x) * x
    a = x.numpy()
    slope = np.cos(a) * a + np.sin(a)
    made = tape.jacobian(y, x).numpy()
    np.testing.assert_allclose(np.einsum("ijij->ij", made), slope, rtol=1e-5)
    rows = tape.batch_jacobian(y, x).numpy()
    np.testing.assert_allclose(np.einsum("ijj->ij", rows), slope, rtol=1e-5)


def test_a_function_with_a_gradient_of_its_own():
    @tf.custom_gradient
    def log1pexp(x):
        e = tf.exp(x)
        return tf.math.log(1.0 + e), lambda dy: dy * (1.0 - 1.0 / (1.0 + e))

    x = tf.constant(100.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = log1pexp(x)
    assert tape.gradient(y, x).numpy() == 1.0


def test_a_gradient_of_its_own_may_ask_for_the_usual_one_and_leaves_variables_theirs():
    v = tf.Variable(4.0)

    @tf.custom_gradient
    def f(x):
        y = v * x * x

        def grad(dy):
            return 10.0 * tf.gradients(y, x, grad_ys=dy)[0]

        return y, grad

    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
    assert tape.gradient(y, x).numpy() == 240.0 and tape.gradient(y, v).numpy() == 9.0


def test_gradients_of_graphs_are_for_graphs():
    @tf.function
    def slopes(x):
        y = x * x * x
        return tf.gradients(y, x)[0], tf.hessians(y, x)[0]

    first, second = slopes(tf.constant([2.0, 3.0]))
    assert first.numpy().tolist() == [12.0, 27.0]
    assert second.numpy().tolist() == [[12.0, 0.0], [0.0, 18.0]]
    with pytest.raises(RuntimeError):
        tf.gradients(tf.constant(1.0), tf.constant(1.0))


def test_rows_of_a_table_get_rows_as_gradient():
    table = tf.Variable(np.arange(8.0, dtype="f4").reshape(4, 2))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.gather(table, [1, 3, 1]))
    rows = tape.gradient(y, table)
    assert isinstance(rows, tf.IndexedSlices)
    assert tf.convert_to_tensor(rows).numpy().tolist() == [[0, 0], [2, 2], [0, 0], [1, 1]]
    table.assign_sub(rows)
    assert table.numpy().tolist() == [[0, 1], [0, 1], [4, 5], [5, 6]]


@pytest.mark.parametrize("dtypes", [("int32", "int64"), ("int64", "int32"), ("int32", "int32"), ("uint8", "int32", "int64")])
@pytest.mark.parametrize("traced", [False, True])
def test_rows_that_were_looked_up_by_indices_of_several_dtypes_add_up(dtypes, traced):
    table = tf.Variable(np.arange(8.0, dtype="f4").reshape(4, 2))

    def program():
        with tf.GradientTape() as tape:
            y = sum(tf.reduce_sum(tf.gather(table, tf.constant([1, 3 - i], d))) for i, d in enumerate(dtypes))
        return tape.gradient(y, table)

    rows = tf.function(program)() if traced else program()
    expected = np.zeros([4, 2])
    for i in range(len(dtypes)):
        np.add.at(expected, [1, 3 - i], 1)
    assert tf.convert_to_tensor(rows).numpy().tolist() == expected.tolist()
    if isinstance(rows, tf.IndexedSlices):
        assert rows.indices.dtype == (dtypes[0] if len(set(dtypes)) == 1 else tf.int64)
    tf.keras.optimizers.SGD(1.0).apply_gradients([(rows, table)])
    np.testing.assert_array_equal(table, np.arange(8.0).reshape(4, 2) - expected)


def test_what_is_computed_again_gives_the_same_gradient():
    @tf.recompute_grad
    def f(x):
        return tf.exp(tf.sin(x))

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), np.exp(np.sin(1.0)) * np.cos(1.0), rtol=1e-6)


def test_stop_gradient_stops():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * tf.stop_gradient(x)
    assert tape.gradient(y, x).numpy() == 3.0


def test_a_tape_that_is_gone_holds_nothing():
    x = tf.Variable(np.ones([64, 1024], "f4"))
    before = tf.memory.info()["current"]
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(tf.exp(x))
    assert tf.memory.info()["current"] > before + 100_000
    del tape, y
    gc.collect()
    assert tf.memory.info()["current"] <= before + 4096


def test_products_and_quotients_without_nan_have_slopes_without_it():
    def slopes(f, x, y):
        x, y = tf.constant(x), tf.constant(y)
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            made = f(x, y)
        return [made.numpy().tolist(), *(g.numpy().tolist() for g in tape.gradient(made, [x, y]))]

    inf = float("inf")
    for wrap in (lambda f: f, tf.function):
        product, quotient, logarithm = (wrap(f) for f in (tf.math.multiply_no_nan, tf.math.xdivy, tf.math.xlog1py))
        assert slopes(product, [3.0, inf], [0.0, 0.0]) == [[0, 0], [0, 0], [3, inf]]
        assert slopes(product, [[3.0], [2.0]], [0.0, 4.0]) == [[[0, 12], [0, 8]], [[4], [4]], [5, 5]]
        assert slopes(quotient, [0.0, 0.0, 6.0], [2.0, 0.0, 2.0]) == [[0, 0, 3], [0, 0, 0.5], [0, 0, -1.5]]
        assert slopes(logarithm, [0.0, 0.0, 2.0], [2.0, -1.0, 0.0]) == [[0, 0, 0], [0, 0, 0], [0, 0, 2]]


X = np.array([[0.3, -1.2, 0.0], [1.7, -0.4, 0.9]], "f4")
CONNECTED = {  # as TensorFlow has it: whether a result depends on its input, though its slope is 0
    "sign": (tf.sign, True), "zeros times it": (lambda x: x * 0.0, True), "clipped": (lambda x: tf.clip_by_value(x, 5.0, 6.0), True),
    "relu of negatives": (lambda x: tf.nn.relu(-tf.abs(x) - 1.0), True), "maximum": (lambda x: tf.maximum(x, 9.0), True),
    "where": (lambda x: tf.where(x > 9.0, x, 1.0), True), "floor": (tf.floor, False), "ceil": (tf.math.ceil, False),
    "round": (tf.round, False), "rint": (tf.math.rint, False), "floor division": (lambda x: x // 0.7, False),
    "compared": (lambda x: tf.cast(x > 0.0, tf.float32), False), "whole": (lambda x: tf.cast(tf.cast(x, tf.int32), tf.float32), False),
    "zeros like it": (tf.zeros_like, False), "ones like it": (tf.ones_like, False), "stopped": (tf.stop_gradient, False),
    "argmax": (lambda x: tf.cast(tf.argmax(x, -1), tf.float32), False), "finite": (lambda x: tf.cast(tf.math.is_finite(x), tf.float32), False)}


@pytest.mark.parametrize("name", CONNECTED)
@pytest.mark.parametrize("planned", [False, True])
def test_a_slope_of_zero_is_zeros_or_none_as_in_tensorflow(name, planned):
    f, connected = CONNECTED[name]
    given = []

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        made = tape.gradient(y, x)
        given.append(made is not None)
        return tf.zeros_like(x) if made is None else made

    made = (tf.function(gradient) if planned else gradient)(tf.constant(X))
    assert given[-1] == connected
    np.testing.assert_array_equal(abs(made.numpy()), np.zeros_like(X))


@pytest.mark.parametrize("planned", [False, True])
def test_gradients_reach_what_fills_and_ranges_are_made_of(planned):
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.fill([2, 2], x[0])) + tf.reduce_sum(tf.linspace(x[0], x[1], 5) * [1.0, 2.0, 3.0, 4.0, 5.0])
        return tape.gradient(y, x)

    made = (tf.function(gradient) if planned else gradient)(tf.constant([1.0, 2.0]))
    np.testing.assert_allclose(made.numpy(), [4 + 5.0, 10.0])


SPREADS = {
    "reduce_variance": (lambda x, axis: tf.math.reduce_variance(x, axis), lambda far, n, std: 2 * far / n),
    "reduce_std": (lambda x, axis: tf.math.reduce_std(x, axis), lambda far, n, std: far / (n * std)),
    "moments": (lambda x, axis: tf.nn.moments(x, [0, 1] if axis is None else [axis])[1], lambda far, n, std: 2 * far / n),
}


@pytest.mark.parametrize("name", SPREADS)
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("traced", [False, True])
def test_gradients_of_spreads_keep_their_digits_far_from_zero(name, axis, traced):
    spread, slope = SPREADS[name]

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            made = spread(x, axis)
        return tape.gradient(made, x)

    run = tf.function(gradient) if traced else gradient
    small = np.random.default_rng(7).integers(-40, 40, [7, 13]) / 64
    for offset in (0, -1631, 20001):
        x = offset + small
        n = x.size if axis is None else x.shape[axis]
        expected = slope(x - x.mean(axis, keepdims=True), n, x.std(axis, keepdims=True))
        assert (x.astype("float32") == x).all()
        got = run(tf.constant(x.astype("float32"))).numpy()
        np.testing.assert_allclose(got, expected, 1e-5, 1e-6 * np.abs(expected).max(), err_msg=str(offset))


def test_gradients_of_batch_normalization_are_those_of_the_formula_at_every_order():
    rng = np.random.default_rng(5)
    x, g = (tf.constant(rng.normal(2.0, 1.0, size=(6, 5, 3))) for _ in range(2))
    row = [tf.constant(rng.uniform(0.5, 2.0, size=3)) for _ in range(4)]

    def plain(x, mean, variance, offset, scale, epsilon):
        made = (x - mean) * (scale if scale is not None else 1.0) / tf.sqrt(variance + epsilon)
        return made if offset is None else made + offset

    def gradients(normalize, *given):
        with tf.GradientTape() as outer:
            outer.watch(given)
            with tf.GradientTape() as tape:
                tape.watch(given)
                made = normalize(*given, 1e-3) if len(given) == 5 else normalize(*given, None, None, 1e-3)
                loss = tf.reduce_sum(tf.square(made) * g)
            first = tape.gradient(loss, given)
            total = sum(tf.reduce_sum(tf.sin(slope)) for slope in first)
        return [made, *first, *outer.gradient(total, given)]

    for given in [(x, *row), (x, *row[:2])]:
        for way in (gradients, tf.function(gradients)):
            for ours, wanted in zip(way(tf.nn.batch_normalization, *given), gradients(plain, *given), strict=True):
                np.testing.assert_allclose(ours.numpy(), wanted.numpy(), rtol=1e-9, atol=1e-11)


def test_a_variance_shares_its_mean_with_the_program():
    @tf.function
    def both(x):
        return tf.nn.moments(x, [0, 1])

    steps = [step["op"] for step in both.plan(tf.TensorSpec([64, 64, 16])).steps()]
    # The mean, and the mean of the squares.
    assert steps.count("mean") == 1 and steps.count("fused") == 1, steps
