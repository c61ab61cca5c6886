"""``swap_memory=True`` really spills: the states that a gradient needs wait in a file, and memory is flat."""

import numpy as np
import pytest

import tonnage as tf


def _slope(rounds, **options):
    @tf.function
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            _, y = tf.while_loop(lambda i, y: i < rounds, lambda i, y: (i + 1, tf.sin(y) * 1.5), [0, x], **options)
            loss = tf.reduce_sum(y)
        return tape.gradient(loss, x)

    return slope


def test_gradients_are_those_of_states_in_memory():
    x = tf.linspace(-1.0, 1.0, 1000)
    np.testing.assert_array_equal(_slope(60, swap_memory=True)(x), _slope(60)(x))


def test_memory_is_flat_in_the_rounds_and_the_plan_says_what_is_spilled():
    x = tf.linspace(-1.0, 1.0, 100_000)
    plans = [tf.memory.plan(_slope(rounds, swap_memory=True), x) for rounds in (20, 200)]
    assert plans[0].peak == plans[1].peak
    assert plans[1].spilled >= 199 * 400_000
    assert tf.memory.plan(_slope(200), x).peak > 5 * plans[1].peak


def test_what_a_call_spilled_is_told():
    x = tf.linspace(-1.0, 1.0, 10_000)
    slope = _slope(50, swap_memory=True)
    planned = tf.memory.plan(slope, x).spilled
    slope(x)
    assert slope.last_run()["spilled"] == planned


def test_eager_tapes_spill_too():
    x = tf.linspace(-1.0, 1.0, 1000)

    def eager(**options):
        with tf.GradientTape() as tape:
            tape.watch(x)
            _, y = tf.while_loop(lambda i, y: i < 30, lambda i, y: (i + 1, tf.sin(y) * 1.5), [0, x], **options)
        return tape.gradient(y, x)

    np.testing.assert_array_equal(eager(swap_memory=True), eager())


@pytest.mark.parametrize("fold", [tf.foldl, tf.foldr])
def test_folds_and_scans_take_it(fold):
    rows = tf.reshape(tf.linspace(0.0, 1.0, 60), [20, 3])

    def slope(**options):
        with tf.GradientTape() as tape:
            tape.watch(rows)
            y = fold(lambda s, r: tf.sin(s) + r, rows, **options)
            z = tf.scan(lambda s, r: tf.cos(s) * r, rows, **options)
            loss = tf.reduce_sum(y) + tf.reduce_sum(z)
        return tape.gradient(loss, rows)

    np.testing.assert_allclose(slope(swap_memory=True), slope(), rtol=1e-6)
