"""Sizes, axes and positions that a function computes from constants are known while it is traced: it is planned, and gives what it gives eagerly."""

import warnings

import numpy as np
import pytest

import tonnage as tf

# Ways to say some integers.
SOURCES = {
    "a constant": lambda *v: tf.constant(v),
    "another dtype": lambda *v: tf.cast(tf.constant(v), tf.int64),
    "through floats": lambda *v: tf.cast(tf.cast(tf.constant(v), tf.float32), tf.int32),
    "a list of scalars": lambda *v: [tf.constant(i) for i in v],
    "stacked": lambda *v: tf.stack([tf.constant(i) for i in v]),
    "joined": lambda *v: tf.concat([tf.expand_dims(tf.constant(i), 0) for i in v], 0),
    "a part": lambda *v: tf.constant((9, *v))[1:],
    "reshaped": lambda *v: tf.reshape(tf.constant([v]), [-1]),
    "unchanged": lambda *v: tf.stop_gradient(tf.identity(tf.constant(v))),
    "computed": lambda *v: (tf.constant(v) * 2 + 4) // 2 - 2,
    "NumPy's": lambda *v: tf.convert_to_tensor(np.array(v, "int32")) + 0,
}

USES = {
    "reshape": lambda a, s: tf.reshape(a, s(4, 6)),
    "reduce_sum": lambda a, s: tf.reduce_sum(a, s(0, 2)),
    "reverse": lambda a, s: tf.reverse(a, s(0, 2)),
    "transpose": lambda a, s: tf.transpose(a, s(2, 0, 1)),
    "tile": lambda a, s: tf.tile(a, s(1, 2, 1)),
    "slice": lambda a, s: tf.slice(a, s(0, 1, 2), s(2, 1, 1)),
    "fill": lambda a, s: tf.fill(s(2, 3), 1.0),
    "zeros": lambda a, s: tf.zeros(s(2, 3)),
    "broadcast_to": lambda a, s: tf.broadcast_to(a, s(5, 2, 3, 4)),
    "normal": lambda a, s: tf.zeros_like(tf.random.normal(s(2, 3))),
    "roll": lambda a, s: tf.roll(a, s(1, 1), [0, 1]),
    "split": lambda a, s: tf.split(a, s(1, 2), 1)[1],
    "expand_dims": lambda a, s: tf.expand_dims(a, s(1)[0]),
    "resize": lambda a, s: tf.image.resize(a[..., None], s(6, 8)),
    "argmax": lambda a, s: tf.argmax(a, s(1)[0]),
    "concat": lambda a, s: tf.concat([a, a], s(1)[0]),
    "range": lambda a, s: tf.range(s(5)[0]),
    "one_hot": lambda a, s: tf.one_hot([0, 1], s(3)[0]),
    "gather": lambda a, s: tf.gather(a, [0], axis=s(1)[0]),
    "eye": lambda a, s: tf.eye(s(3)[0]),
    "linspace": lambda a, s: tf.linspace(0.0, 1.0, s(3)[0]),
    "top_k": lambda a, s: tf.math.top_k(a, s(2)[0])[0],
    "pad": lambda a, s: tf.pad(a, [s(0, 1), s(1, 0), s(0, 0)]),
    "x[a:b]": lambda a, s: a[s(1)[0]:, s(0)[0]:s(2)[0]],
    "int": lambda a, s: a * float(int(s(3)[0])),
}


@pytest.mark.parametrize("use", USES, ids=str)
def test_planned_with_the_values_of_eager_calls(use):
    x = np.arange(24, dtype="f4").reshape(2, 3, 4)
    for say in SOURCES.values():
        expected = USES[use](tf.constant(x), say)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*op by op.*")
            made = tf.function(lambda a: USES[use](a, say))(tf.constant(x))
        np.testing.assert_array_equal(made, expected)


def test_lengths_are_known_beside_open_ones():
    @tf.function(input_signature=[tf.TensorSpec([None, 3, 4])])
    def f(x):
        return tf.fill([int(n) for n in tf.shape(x)[1:]], 2.0), tf.reverse(x, tf.range(tf.rank(x)))

    x = np.arange(24, dtype="f4").reshape(2, 3, 4)
    whole, reverse = f(x)
    assert whole.shape == (3, 4)
    np.testing.assert_array_equal(reverse, x[::-1, ::-1, ::-1])


UNKNOWN = {
    "an argument": lambda x, v: x + 1,
    "a variable": lambda x, v: v + 1,
    "random numbers": lambda x, v: tf.random.uniform([], 0, 5, tf.int32, seed=1),
    "what prints": lambda x, v: tf.numpy_function(lambda: np.int32(3), [], tf.TensorSpec([], tf.int32)),
    "many elements": lambda x, v: tf.reduce_sum(tf.ones([1000], tf.int32)),
    "an index that is out of range": lambda x, v: tf.gather(tf.constant([1, 2]), 7),
    "a length that is open": lambda x, v: tf.shape(tf.boolean_mask(x + tf.zeros([3], tf.int32), [True, False, True]))[0],
}


@pytest.mark.parametrize("case", UNKNOWN, ids=str)
def test_what_is_not_of_constants_is_not_known(case):
    v, found = tf.Variable(3), []
    tf.function(lambda x: found.append(tf.get_static_value(UNKNOWN[case](x, v))), autograph=False).trace(tf.TensorSpec([], tf.int32))
    assert found == [None]


def test_scalars_of_floats_are_lengths_where_they_are_whole():
    def square():
        return tf.reshape(tf.ones([9]), (tf.constant(3.0), tf.constant(3.0)))

    def half():
        return tf.reshape(tf.ones([9]), (tf.constant(4.5), 2))

    assert square().shape == tf.function(square)().shape == (3, 3)
    for f in (half, tf.function(half)):
        with pytest.raises(ValueError, match="a length is a whole number, not 4.5"):
            f()
