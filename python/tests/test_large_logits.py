"""Names made of powers of e lose no digits where all logits are large; the reference is NumPy in float64 on rounded inputs."""

import numpy as np
import pytest

import tonnage as tf

SHIFTS = [0.0, 1.0, 1e3, 1e6, 1e7, -1e7, 3e38]
EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
LABELS = np.array([0, 3, 1])
TARGETS = np.array([[0.5, 0.25, 0.25, 0.0], [0.0, 1.0, 0.0, 0.0], [0.125, 0.125, 0.25, 0.5]])


def logs(x):
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def plus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def running(x):
    return np.logaddexp.accumulate(x, -1)


def everywhere(x):
    return logs(x.reshape(1, -1)).reshape(x.shape)


# What is computed, and the same in float64.
OPS = {
    "softmax": (lambda x: tf.nn.softmax(x), lambda x: np.exp(logs(x))),
    "log_softmax": (lambda x: tf.nn.log_softmax(x), logs),
    "log_softmax along axis 0": (lambda x: tf.nn.log_softmax(x, 0), lambda x: logs(x.T).T),
    "reduce_logsumexp": (lambda x: tf.reduce_logsumexp(x, -1), lambda x: (x - logs(x)).max(-1)),
    "sparse": (lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(LABELS, x),
               lambda x: -np.take_along_axis(logs(x), LABELS[:, None], 1)[:, 0]),
    "dense": (lambda x: tf.nn.softmax_cross_entropy_with_logits(TARGETS, x), lambda x: -(TARGETS * logs(x)).sum(-1)),
    "sigmoid": (lambda x: tf.nn.sigmoid_cross_entropy_with_logits(TARGETS, x),
                lambda x: TARGETS * plus(-x) + (1 - TARGETS) * plus(x)),
    "log_sigmoid": (lambda x: tf.math.log_sigmoid(x), lambda x: -plus(-x)),
    "softplus": (lambda x: tf.nn.softplus(x), plus),
    "cumulative_logsumexp": (lambda x: tf.math.cumulative_logsumexp(x, -1), running),
    "keras sparse": (lambda x: tf.keras.losses.sparse_categorical_crossentropy(LABELS, x, from_logits=True),
                     lambda x: -np.take_along_axis(logs(x), LABELS[:, None], 1)[:, 0]),
    "keras softmax of two axes": (lambda x: tf.keras.layers.Softmax(axis=(0, 1), dtype=x.dtype.name)(x),
                                  lambda x: np.exp(everywhere(x))),
}


def inputs(shift, dtype):
    pattern = np.array([[0, -1, 3, 2], [20, 1, -20, 5], [2, 2, 2, -3]], "float64")
    x = tf.cast(tf.constant(shift + pattern), dtype)
    return x, tf.cast(x, "float64").numpy()


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("name", OPS)
def test_values_are_those_of_float64(name, dtype):
    run, reference = OPS[name]
    planned = tf.function(run)
    for shift in SHIFTS:
        if dtype == "float16" and abs(shift) > 6e4:
            continue  # infinite there
        x, exact = inputs(shift, dtype)
        expected = reference(exact)
        for how in (run, planned):
            got = tf.cast(how(x), "float64").numpy()
            off = np.abs(got - expected) / (1 + np.abs(expected))
            assert off.max() <= 16 * EPSILON[dtype], f"{name} at {shift}: {got}, not {expected}"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shift", SHIFTS)
def test_gradients_do_not_depend_on_the_shift(shift, dtype):
    """The slope of the sum of exponentials is their share, wherever they lie."""
    x, exact = inputs(shift, dtype)
    share = np.exp(logs(exact))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        whole = tf.reduce_sum(tf.reduce_logsumexp(x, -1))
        last = tf.reduce_sum(tf.math.cumulative_logsumexp(x, -1)[:, -1])
        sparse = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(LABELS, x))
    hot = np.eye(4)[LABELS]
    for loss, expected in ((whole, share), (last, share), (sparse, share - hot)):
        assert np.abs(tape.gradient(loss, x).numpy() - expected).max() <= 16 * EPSILON[dtype]


def test_a_small_loss_keeps_its_digits():
    x = tf.constant([20.0, -20.0, 60.0])
    made = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.constant([1.0, 0.0, 1.0]), logits=x).numpy()
    assert np.allclose(made, np.exp(-np.array([20.0, 20.0, 60.0])), rtol=1e-5, atol=0)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_with_infinities(exclusive, reverse):
    x = np.array([-np.inf, -np.inf, 1.0, 2.0, np.inf, 3.0])
    turned = x[::-1] if reverse else x
    sums = np.logaddexp.accumulate(turned)
    sums = np.concatenate([[-np.inf], sums[:-1]]) if exclusive else sums
    made = tf.math.cumulative_logsumexp(tf.constant(x), 0, exclusive, reverse).numpy()
    assert np.allclose(made, sums[::-1] if reverse else sums)
    finite = tf.constant(x[:4])
    with tf.GradientTape() as tape:
        tape.watch(finite)
        y = tf.math.cumulative_logsumexp(finite, 0)[-1]
    assert np.allclose(tape.gradient(y, finite).numpy(), [0, 0, *(np.exp([1.0, 2.0]) / np.exp([1.0, 2.0]).sum())])
