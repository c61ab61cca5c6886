"""Gradients around loops and branches that read an iterator inside of a function."""

import numpy as np
import pytest

import tonnage as tf


def rows():
    """0 to 59 in pairs."""
    return iter(tf.data.Dataset.from_tensor_slices(np.arange(60, dtype="float32")).batch(2, drop_remainder=True))


def loop_of_range(take, x):
    total = tf.zeros([2])
    for _ in tf.range(3):
        total += x * take()
    return total


def loop_of_while(take, x):
    return tf.while_loop(lambda i, total: i < 3, lambda i, total: (i + 1, total + x * take()), [0, tf.zeros([2])])[1]


def branch(take, x):
    return tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * take(), lambda: x)


def recomputed(take, x):
    return tf.recompute_grad(lambda y: y * take())(x)


def nested(take, x):
    total = tf.zeros([2])
    for _ in tf.range(2):
        total += loop_of_while(take, x)
    return total


@pytest.mark.parametrize("program", [loop_of_range, loop_of_while, branch, recomputed, nested], ids=lambda p: p.__name__)
def test_a_gradient_that_would_read_an_element_twice_says_so(program):
    iterator, x = rows(), tf.Variable([2.0, 3.0])

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            y = program(lambda: next(iterator), x)
        return tape.gradient(y, x)

    with pytest.raises(tf.errors.InvalidArgumentError) as found:
        step()
    text = str(found.value)
    assert "next element of an iterator" in text and "cannot be read a second time; read it before the loop" in text
    assert "callback`" not in text and "host_callback" not in text


def test_what_the_error_advises_works():
    x = tf.Variable([2.0, 3.0])

    def before(iterator):
        elements = tf.stack([next(iterator) for _ in range(3)])
        with tf.GradientTape() as tape:
            total = tf.zeros([2])
            for i in tf.range(3):
                total += x * elements[i]
        return tape.gradient(total, x)

    def inside(iterator):
        slope = tf.zeros([2])
        for _ in tf.range(3):
            with tf.GradientTape() as tape:
                y = x * next(iterator)
            slope += tape.gradient(y, x)
        return slope

    for program in (before, inside):
        made = tf.function(program)(rows())
        np.testing.assert_array_equal(made, [0 + 2 + 4, 1 + 3 + 5], program.__name__)
