"""Ctrl-C in the middle of a planned call, and of one long op."""

import os
import signal
import threading

import pytest

import tonnage as tf


@pytest.fixture
def interrupted():
    """Sends the signal of Ctrl-C to this process, shortly after it was asked to."""
    timers = []

    def soon():
        timers.append(threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)))
        timers[-1].start()

    yield soon
    for timer in timers:
        timer.join()


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_function_that_does_not_end_is_interrupted(interrupted, size):
    @tf.function
    def endless(x):
        return tf.while_loop(lambda x: tf.constant(True), lambda x: (x * 0.5,), [x])

    x = tf.ones([size])
    before = tf.memory.info()["current"]
    interrupted()
    with pytest.raises(KeyboardInterrupt):
        endless(x)
    assert tf.memory.info()["current"] == before


def test_a_function_that_calls_python_is_interrupted_behind_it_and_calls_it_on_its_thread(interrupted):
    threads = []

    @tf.function
    def endless(x):
        tf.py_function(lambda: threads.append(threading.get_ident()), [], [])
        return tf.while_loop(lambda x: tf.constant(True), lambda x: (x * 0.5,), [x])

    interrupted()
    with pytest.raises(KeyboardInterrupt):
        endless(tf.ones([100_000]))
    assert threads == [threading.get_ident()]


def test_an_eager_loop_is_interrupted(interrupted):
    interrupted()
    with pytest.raises(KeyboardInterrupt):
        tf.while_loop(lambda x: tf.constant(True), lambda x: (x * 0.5,), [tf.ones([10])])


def test_variables_keep_the_values_of_before(interrupted):
    total = tf.Variable(tf.zeros([3]))

    @tf.function
    def train(x):
        y, = tf.while_loop(lambda x: tf.constant(True), lambda x: (x * 0.5,), [x])
        total.assign_add(y)

    interrupted()
    with pytest.raises(KeyboardInterrupt):
        train(tf.ones([3]))
    assert total.numpy().tolist() == [0, 0, 0]


def test_a_loop_of_updates_stops_after_a_whole_round(interrupted):
    one, two = tf.Variable(0.0), tf.Variable(0.0)

    @tf.function
    def train():
        while tf.constant(True):
            one.assign_add(1.0)
            two.assign_add(2.0)

    interrupted()
    with pytest.raises(KeyboardInterrupt):
        train()
    assert float(two) == 2 * float(one)


def test_the_next_call_runs(interrupted):
    @tf.function
    def power(x, n):
        return tf.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, x * 0.5), [0, x])[1]

    interrupted()
    with pytest.raises(KeyboardInterrupt):
        power(tf.ones([4]), tf.constant(2_000_000_000))
    assert power(tf.ones([4]), tf.constant(2)).numpy().tolist() == [0.25] * 4


def test_one_that_comes_too_late_to_stop_a_call_is_raised_behind_it(interrupted):
    total = tf.Variable(0.0)

    @tf.function
    def train(x):
        total.assign_add(1.0)
        y = tf.while_loop(lambda i, x: i < 3_000_000, lambda i, x: (i + 1, x * 0.5), [0, x])[1]
        total.assign_add(tf.reduce_sum(y) + 1.0)

    train.get_concrete_function(tf.TensorSpec([4]))
    interrupted()
    with pytest.raises(KeyboardInterrupt):
        train(tf.ones([4]))
        total.assign(-1.0)  # not reached
    assert float(total) in (0.0, 2.0)


@pytest.mark.parametrize("op", [tf.linalg.svd, tf.linalg.eigh])
def test_one_long_eager_op_is_interrupted(op):
    x = tf.random.stateless_normal([1600, 1600], [1, 2])
    x = tf.constant((x + tf.transpose(x)).numpy())
    before = tf.memory.info()["current"]

    def handler(number, frame):
        # An op that runs holds its workspace; its results alone take three matrices at most.
        if tf.memory.info()["current"] - before > 3 * 4 * 1600 * 1600:
            raise KeyboardInterrupt

    old = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        with pytest.raises(KeyboardInterrupt):
            op(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert tf.memory.info()["current"] == before


def test_threads_that_need_one_recipe_all_go_on():
    # One writes it out and asks for signals meanwhile, which takes the interpreter's lock; others may hold that and need the
    # recipe too.
    for seed in range(3):
        x = tf.random.stateless_normal([6_000_000], [seed, 1], dtype="float64")
        found = []
        readers = [threading.Thread(target=lambda i=i: found.append(float(tf.gather(x, [i])[0])), daemon=True) for i in range(4)]
        for reader in readers:
            reader.start()
        first = float(tf.gather(x, [0])[0])
        for reader in readers:
            reader.join(60)
        assert not any(reader.is_alive() for reader in readers)
        assert len(found) == 4 and first in found
