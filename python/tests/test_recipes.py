"""Recipes: tensors that are computed when they are read, however long they get."""

import numpy as np
import pytest

import tonnage as tf


@pytest.mark.parametrize("op", [lambda x: x + x, lambda x: x * x, lambda x: x / x, lambda x: x - x * 0.5])
@pytest.mark.parametrize("source", [lambda: tf.range(1.0, 5.0), lambda: tf.random.stateless_normal([4], [1, 2]), lambda: tf.ones([2, 4])[1]])
def test_an_op_of_one_recipe_twice_is_right_however_long_the_recipe_is(op, source):
    made, expected = source(), tf.constant(source().numpy())
    for _ in range(7):
        made, expected = op(made), op(expected)
        expected = tf.constant(expected.numpy())
    np.testing.assert_array_equal(made, expected)
