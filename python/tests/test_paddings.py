"""Convolutions, pooling and biases with widths of padding that are given, beside those that are named."""

import numpy as np
import pytest

import tonnage as tf

RNG = np.random.default_rng(0)

AROUND = [[0, 0], [1, 1], [1, 1], [0, 0]]
AROUND_FIRST = [[0, 0], [0, 0], [1, 1], [1, 1]]


def _first(x):
    return tf.transpose(x, [0, 3, 1, 2])


@pytest.mark.parametrize("op", [
    lambda x, f, padding, **how: tf.nn.conv2d(x, f, 1, padding, **how),
    lambda x, f, padding, **how: tf.nn.depthwise_conv2d(x, f, [1, 1, 1, 1], padding, **how),
    lambda x, f, padding, **how: tf.nn.max_pool2d(x, 3, 1, padding, **how),
    lambda x, f, padding, **how: tf.nn.conv2d_transpose(x, f, x.shape, 1, padding, **how),
])
def test_widths_that_are_given_pad_as_same_does(op):
    # Below zero everywhere, so that zeros around would be the largest.
    image = tf.constant(-1 - RNG.random(size=(2, 4, 5, 2)).astype("f4"))
    filters = tf.constant(RNG.normal(size=(3, 3, 2, 2)).astype("f4"))
    expected = op(image, filters, "SAME").numpy()
    np.testing.assert_allclose(op(image, filters, AROUND).numpy(), expected, rtol=1e-5, atol=1e-5)
    first = op(_first(image), filters, AROUND_FIRST, data_format="NCHW")
    np.testing.assert_allclose(first.numpy(), _first(expected).numpy(), rtol=1e-5, atol=1e-5)
    for wrong in [[[1, 0], *AROUND[1:]], [*AROUND[:3], [0, 2]], AROUND[:3], [[0, 0], [-1, 0], [0, 0], [0, 0]]]:
        with pytest.raises(ValueError, match="padding"):
            op(image, filters, wrong)


def test_means_take_no_widths():
    with pytest.raises(ValueError, match="not widths"):
        tf.nn.avg_pool2d(tf.ones([1, 4, 5, 2]), 3, 1, AROUND)


def test_widths_that_are_given_are_those_of_each_side():
    image = RNG.normal(size=(1, 4, 5, 1)).astype("f4")
    padding, filters = [[0, 0], [2, 0], [0, 1], [0, 0]], tf.ones([3, 3, 1, 1])
    around = np.pad(image, padding)
    for made, expected in [
        (tf.nn.depthwise_conv2d(image, filters, [1, 1, 1, 1], padding), tf.nn.conv2d(around, filters, 1, "VALID")),
        (tf.nn.max_pool2d(tf.nn.relu(image), 3, 2, padding), tf.nn.max_pool2d(tf.nn.relu(around), 3, 2, "VALID")),
        # What was around the image is not a part of it.
        (tf.nn.conv2d_transpose(image, filters, [1, 8, 10, 1], 2, [[0, 0], [1, 0], [0, 1], [0, 0]]),
         tf.nn.conv2d_transpose(image, filters, [1, 9, 11, 1], 2, "VALID")[:, 1:, :-1]),
    ]:
        np.testing.assert_allclose(made.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
    assert tf.nn.max_pool2d(tf.fill([1, 2, 2, 1], -7), 2, 1, AROUND).numpy().ravel().tolist() == [-7] * 9


def test_a_bias_is_added_along_the_channels():
    for shape, data_format in [([2, 3, 4], "NCW"), ([2, 3, 3, 4], "NCHW"), ([2, 3, 4, 1, 2], "NCDHW"), ([2, 3], "NC")]:
        made = tf.nn.bias_add(tf.zeros(shape), [1.0, 2.0, 3.0], data_format).numpy()
        expected = np.reshape([1.0, 2.0, 3.0], [3] + [1] * (len(shape) - 2))
        np.testing.assert_array_equal(made, np.broadcast_to(expected, shape))
    for last in [None, "NWC", "NHWC"]:
        assert tf.nn.bias_add(tf.zeros([1, 2, 3]), [1, 2, 3], last).numpy().tolist() == [[[1, 2, 3]] * 2]
