"""Names that programs use now and then, against NumPy or a formula."""

import ctypes
import math
import statistics

import numpy as np
import pytest

import tonnage as tf


def test_erfinv_is_the_inverse_of_erf_to_the_last_bits_with_its_derivatives():
    y = np.array([0.0, 1e-9, 0.3, -0.7, 2.5, -4.0, 5.5])
    x = tf.constant([math.erf(v) for v in y], tf.float64)
    near_one = np.abs(y) > 3  # there erf itself is rounded to few different numbers
    np.testing.assert_allclose(tf.math.erfinv(x).numpy()[~near_one], y[~near_one], rtol=1e-12)
    np.testing.assert_allclose(tf.math.erf(tf.math.erfinv(x)), x, rtol=1e-15)
    v = tf.Variable([0.0, 0.3, -0.8], dtype=tf.float64)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            made = tf.math.erfinv(v)
        slope = tape.gradient(made, v)
    expected = math.sqrt(math.pi) / 2 * np.exp(made.numpy() ** 2)
    np.testing.assert_allclose(slope, expected, rtol=1e-12)
    np.testing.assert_allclose(outer.gradient(slope, v), 2 * made.numpy() * expected ** 2, rtol=1e-10, atol=1e-12)


def test_erfinv_at_the_edges():
    made = tf.math.erfinv([1.0, -1.0, 1.5, float("nan")]).numpy()
    assert made[0] == math.inf and made[1] == -math.inf and np.isnan(made[2:]).all()
    with pytest.raises(TypeError):
        tf.math.erfinv([1])


def test_ndtri_gives_the_quantiles_of_the_normal_distribution():
    np.testing.assert_allclose(tf.math.ndtri(tf.constant([0.025, 0.5, 0.975], tf.float64)), [-1.959963985, 0, 1.959963985])
    small = tf.math.ndtri(tf.constant([1e-10, 1e-20, 1e-37])).numpy()
    np.testing.assert_allclose(small, [-6.361340902, -9.262340090, -12.784556727], rtol=3e-7)
    p = np.concatenate([10.0 ** -np.arange(1, 300, 7), np.linspace(0.01, 0.99, 50), 1 - 10.0 ** -np.arange(1, 15)])
    quantile = statistics.NormalDist().inv_cdf
    np.testing.assert_allclose(tf.math.ndtri(p), [quantile(v) for v in p], rtol=1e-13, atol=1e-16)
    ends = tf.math.ndtri([0.0, 1.0, -0.1, 1.1, math.nan]).numpy()
    assert ends[0] == -math.inf and ends[1] == math.inf and np.isnan(ends[2:]).all()


def test_the_slopes_of_quantiles_are_one_over_the_density():
    p = tf.constant([1e-20, 0.1, 0.3, 0.8, 1 - 1e-8], tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(p)
        with tf.GradientTape() as tape:
            tape.watch(p)
            made = tf.math.ndtri(p)
        slope = tape.gradient(made, p)
    expected = math.sqrt(2 * math.pi) * np.exp(made.numpy() ** 2 / 2)
    np.testing.assert_allclose(slope, expected, rtol=1e-12)
    np.testing.assert_allclose(outer.gradient(slope, p), made.numpy() * expected ** 2, rtol=1e-10)


def test_logarithms_of_one_and_a_little_keep_the_little():
    made = tf.math.xlog1py([1.0, 2.0, 0.0], [1e-10, 1.0, -1.0]).numpy()
    np.testing.assert_allclose(made, [1e-10, 2 * math.log(2), 0.0], rtol=1e-6)
    assert tf.math.xlog1py(2, tf.constant(1.0, tf.float64)).dtype == tf.float64


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_of_exponentials_do_not_overflow(exclusive, reverse):
    x = np.array([[1.0, -2.0, 800.0, 3.0], [-900.0, 0.0, 5.0, -math.inf]])
    made = tf.math.cumulative_logsumexp(x, axis=1, exclusive=exclusive, reverse=reverse).numpy()
    with np.errstate(divide="ignore"):
        turned = x[:, ::-1] if reverse else x
        expected = np.logaddexp.accumulate(turned, axis=1)
        if exclusive:
            expected = np.concatenate([np.full((2, 1), -math.inf), expected[:, :-1]], 1)
    np.testing.assert_allclose(made, expected[:, ::-1] if reverse else expected)


def test_ensure_shape_and_histograms():
    assert tf.ensure_shape(tf.ones([2, 3]), [None, 3]).shape == [2, 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match="not compatible"):
        tf.ensure_shape(tf.ones([2, 3]), [2, 4])
    with pytest.raises(ValueError):
        tf.function(lambda x: tf.ensure_shape(x, [2, 4]))(tf.ones([2, 3]))
    values = np.random.RandomState(0).randn(500).astype("float32")
    expected = np.histogram(np.clip(values, -1, 0.999), 8, (-1, 1))[0]
    assert tf.histogram_fixed_width(values, [-1.0, 1.0], 8).numpy().tolist() == expected.tolist()
    assert tf.histogram_fixed_width([1, 2, 9, -7, 2 ** 30], [0, 10], 5).numpy().tolist() == [2, 1, 0, 0, 2]
    assert tf.histogram_fixed_width([1.0, 1e30], [0.0, 10.0], 5).numpy().tolist() == [1, 0, 0, 0, 1]


def test_numbers_are_checked_where_that_is_asked_for():
    tf.debugging.enable_check_numerics()
    try:
        with pytest.raises(tf.errors.InvalidArgumentError, match="log.*NaN"):
            tf.math.log(tf.constant(-1.0))
        with pytest.raises(tf.errors.InvalidArgumentError, match="NaN or infinite"):
            tf.function(lambda x: 1.0 / x + 1.0)(tf.constant(0.0))
        assert float(tf.math.log(tf.constant(1.0))) == 0.0
    finally:
        tf.debugging.disable_check_numerics()
    assert math.isnan(float(tf.math.log(tf.constant(-1.0))))
    assert not tf.config.functions_run_eagerly()


def test_a_concrete_function_knows_what_it_takes_and_returns():
    @tf.function
    def f(x, n):
        return {"rows": x * n, "first": [x[0]]}

    concrete = f.get_concrete_function(tf.TensorSpec([None, 3], tf.float32), 2)
    rows = tf.TensorSpec([None, 3], tf.float32)
    assert concrete.structured_outputs == {"rows": rows, "first": [tf.TensorSpec([3], tf.float32)]}
    assert concrete.structured_input_signature == ((rows, 2), {})
    assert concrete.output_dtypes == {"rows": tf.float32, "first": [tf.float32]}
    assert [spec.shape.rank for spec in concrete.outputs] == [1, 2]


def test_a_memoryview_is_of_the_tensors_own_bytes():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    view = memoryview(x)
    assert (view.shape, view.format, view.readonly, view.tolist()) == ((2, 2), "f", True, [[1.0, 2.0], [3.0, 4.0]])
    address = x.numpy().__array_interface__["data"][0]
    assert np.frombuffer(view, np.float32).__array_interface__["data"][0] == address
    with pytest.raises((TypeError, BufferError, ValueError)):
        (ctypes.c_char * 16).from_buffer(x)  # which wants to write
    with pytest.raises(NotImplementedError, match="symbolic"):
        tf.function(lambda x: memoryview(x))(x)


def test_a_number_of_numpy_keeps_its_dtype_unless_the_other_side_has_one():
    assert tf.constant(np.float64(1)).dtype == tf.float64
    assert tf.Variable(np.float64(1)).dtype == tf.float64
    assert (tf.constant([1.0]) + np.float64(1)).dtype == tf.float32
    assert tf.constant(np.float64(1), tf.float32).dtype == tf.float32


def test_pseudo_inverses_are_numpys():
    a = np.random.RandomState(0).randn(2, 3, 4).astype("float32")
    np.testing.assert_allclose(tf.linalg.pinv(a), np.linalg.pinv(a), atol=1e-5)
    flat = np.outer([1.0, 2.0], [3.0, 4.0, 5.0])
    np.testing.assert_allclose(tf.linalg.pinv(flat), np.linalg.pinv(flat), atol=1e-12)


def test_rows_are_parted_and_weighed():
    parts = tf.dynamic_partition([[1], [2], [3]], [1, 0, 1], 3)
    assert [p.numpy().tolist() for p in parts] == [[[2]], [[1], [3]], []]
    x, w = np.random.RandomState(0).rand(2, 3, 4), np.random.RandomState(1).rand(3, 1)
    mean, variance = tf.nn.weighted_moments(x, [0, 1], w)
    whole = np.broadcast_to(w, x.shape)
    expected = np.average(x, (0, 1), whole)
    np.testing.assert_allclose(mean, expected)
    np.testing.assert_allclose(variance, np.average((x - expected) ** 2, (0, 1), whole))
