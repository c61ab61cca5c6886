"""Iterators as arguments of functions: the next element is an argument too, and comes once, however it is taken."""

import threading

import numpy as np
import pytest

import tonnage as tf


def lists(tensors):
    return [t.numpy().tolist() for t in tensors]


def conditional(a, c):
    if c:
        x = next(a)
    else:
        x = tf.zeros([2], tf.int64)
    return x, next(a)


def loop(a):
    total = next(a)
    for _ in tf.range(2):
        total += next(a)
    return total


def inner():
    return tf.function(lambda a: next(a))


# Two calls of a function with an iterator over 0 to 11 in pairs, and what they give.
TAKEN = {
    "one": (lambda: tf.function(lambda a: [next(a)]), [[[0, 1]], [[2, 3]]]),
    "several": (lambda: tf.function(lambda a: [next(a), next(a)]), [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]),
    "by a function inside": (lambda: (lambda g: tf.function(lambda a: [g(a), g(a), next(a)]))(inner()),
                             [[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [10, 11]]]),
    "before a function inside": (lambda: (lambda g: tf.function(lambda a: [next(a), g(a)]))(inner()), [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]),
    "in a loop": (lambda: (lambda f: lambda a: [f(a)])(tf.function(loop)), [[[6, 9]], [[24, 27]]]),
    "in a branch": (lambda: (lambda f: lambda a: f(a, tf.constant(True)))(tf.function(conditional)), [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]),
    "not in a branch": (lambda: (lambda f: lambda a: f(a, tf.constant(False)))(tf.function(conditional)), [[[0, 0], [0, 1]], [[0, 0], [2, 3]]]),
    "by two names": (lambda: (lambda f: lambda a: f(a, a))(tf.function(lambda a, b: [next(a), next(b)])), [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]),
    "in a list, twice": (lambda: (lambda f: lambda a: f([a, a]))(tf.function(lambda a: [next(a[0]), next(a[1])])),
                         [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]),
    "as optionals": (lambda: tf.function(lambda a: [a.get_next_as_optional().get_value(), a.get_next_as_optional().get_value()]),
                     [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]),
    "not at all": (lambda: tf.function(lambda a: []), [[], []]),
}


@pytest.mark.parametrize("static", [True, False], ids=["static", "open"])
@pytest.mark.parametrize("case", TAKEN, ids=str)
@pytest.mark.filterwarnings("ignore:.*op by op")
def test_each_element_comes_once(case, static):
    made, expected = TAKEN[case]
    function, iterator = made(), iter(tf.data.Dataset.range(12).batch(2, drop_remainder=static))
    assert [lists(function(iterator)) for _ in range(2)] == expected
    taken = [value for call in expected for part in call if part != [0, 0] for value in part] if case != "in a loop" else range(12)
    assert [value for part in iterator for value in part.numpy()] == list(range(12))[len(taken):]


@pytest.mark.parametrize("static", [True, False], ids=["static", "open"])
def test_one_trace_serves_elements_and_the_end(static):
    f = tf.function(lambda a: next(a) * 10)
    for _ in range(2):
        iterator = iter(tf.data.Dataset.range(6).batch(2, drop_remainder=static))
        assert [f(iterator).numpy().tolist() for _ in range(3)] == [[0, 10], [20, 30], [40, 50]]
        for _ in range(2):
            with pytest.raises(tf.errors.OutOfRangeError):
                f(iterator)
    assert f.traces == 1
    g = tf.function(lambda a: a.get_next_as_optional().has_value())
    iterator = iter(tf.data.Dataset.range(6).batch(2, drop_remainder=static))
    assert [bool(g(iterator)) for _ in range(5)] == [True] * 3 + [False] * 2


def test_a_call_that_is_refused_takes_nothing():
    f = tf.function(lambda a: tf.reduce_sum(tf.exp(next(a))), budget="64B")
    iterator = iter(tf.data.Dataset.from_tensor_slices(np.arange(64, dtype="f4")).batch(32, drop_remainder=True))
    with pytest.raises(tf.errors.ResourceExhaustedError):
        f(iterator)
    assert next(iterator).numpy()[0] == 0


def test_an_element_that_somebody_else_took_is_an_error_and_not_given_twice():
    iterator = iter(tf.data.Dataset.range(4).batch(1, drop_remainder=True))
    f = tf.function(lambda a: (next(iterator), next(a)))
    with pytest.raises(tf.errors.FailedPreconditionError, match="take elements from the argument alone"):
        f(iterator)


def test_budgets_cut_the_element_along_its_rows():
    weights = tf.Variable(tf.ones([64, 256]))

    def step(batch):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.nn.relu(batch @ weights) @ tf.ones([256, 1])))
        weights.assign_sub(1e-9 * tape.gradient(loss, weights))
        return loss

    rows = np.random.default_rng(0).normal(size=(512, 64)).astype("f4")
    for drop in (True, False):
        iterator = iter(tf.data.Dataset.from_tensor_slices(rows).batch(512, drop_remainder=drop).repeat())
        taking, given = tf.function(lambda a: step(next(a))), tf.function(step)
        taking(iterator)
        ran = taking.last_run()
        assert ran["predicted"] == ran["used"] == given.plan(tf.constant(rows)).peak
        budget = ran["predicted"] // 2
        tight = tf.function(lambda a: step(next(a)), budget=budget)
        np.testing.assert_allclose(tight(iterator), taking(iterator), rtol=1e-4)
        assert tight.last_run()["predicted"] <= budget


def test_one_thread_makes_the_first_call_of_a_map():
    inside, most, second = [], [], threading.Event()

    def double(x):
        inside.append(1)
        most.append(len(inside))
        if len(inside) > 1:
            second.set()
        second.wait(0.05)
        inside.pop()
        return x * 2

    found = sorted(int(x) for x in tf.data.Dataset.range(16).map(double, num_parallel_calls=4))
    assert found == list(range(0, 32, 2)) and set(most) == {1}
