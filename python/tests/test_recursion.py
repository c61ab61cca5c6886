"""Recursion without an end is a ``RecursionError``, whatever of ours it goes through; the process does not die of it."""

import subprocess
import sys
import threading

import pytest

import tonnage as tf

SPEC = tf.TensorSpec([1], tf.float32)


def py_function():
    @tf.function
    def f(x):
        return tf.py_function(lambda y: f(y), [x], SPEC)

    return f


def numpy_function():
    @tf.function
    def f(x):
        return tf.numpy_function(lambda y: f(y).numpy(), [x], SPEC)

    return f


def two_functions():
    @tf.function
    def f(x):
        return tf.py_function(lambda y: g(y), [x], SPEC)

    @tf.function
    def g(x):
        return tf.py_function(lambda y: f(y), [x], SPEC) + 1.0

    return f


def gradient():
    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.py_function(lambda z: z * f(z), [x], SPEC)
        return tape.gradient(y, x)

    return f


def function():
    @tf.function
    def f(x):
        return f(x)

    return f


def cond():
    def f(x):
        return tf.cond(tf.constant(True), lambda: f(x), lambda: x)

    return f


def while_loop():
    def f(x):
        return tf.while_loop(lambda i, s: i < 1, lambda i, s: (i + 1, f(s)), [0, x])[1]

    return f


def map_fn():
    def f(x):
        return tf.map_fn(lambda row: f(tf.reshape(row, [1]))[0], x)

    return f


def scan():
    def f(x):
        return tf.scan(lambda s, row: f(tf.reshape(row, [1]))[0], x, 0.0)

    return f


def custom_gradient():
    @tf.custom_gradient
    def f(x):
        return f(x), lambda g: g

    return f


def recompute_grad():
    def f(x):
        return tf.recompute_grad(lambda y: f(y))(x)

    return f


def dataset():
    def f(x):
        return next(iter(tf.data.Dataset.from_tensors(x).map(lambda y: tf.py_function(f, [y], SPEC))))

    return f


def iterator():
    @tf.function
    def f(x):
        return next(x)

    def endless():
        yield f(iter(tf.data.Dataset.from_generator(endless, output_signature=SPEC)))

    return lambda x: next(endless())


WAYS = [py_function, numpy_function, two_functions, gradient, function, cond, while_loop, map_fn, scan, custom_gradient, recompute_grad, dataset,
        iterator]


def main(limit):
    """Runs all of them, a line each: on the main thread, and on one with a small stack."""
    sys.setrecursionlimit(limit)

    def go(where):
        for way in WAYS:
            try:
                way()(tf.constant([1.0]))
            except RecursionError:
                # What comes after is as before.
                print(way.__name__, where, float(tf.function(lambda x: x + 1.0)(tf.constant(1.0))))

    go("main")
    threading.stack_size(2 << 20)
    thread = threading.Thread(target=go, args=["thread"])
    thread.start()
    thread.join()


@pytest.mark.parametrize("limit", [1000, 20000])
def test_recursion_without_end_is_a_recursion_error(limit):
    # In a process of its own, which may die.
    made = subprocess.run([sys.executable, "-c", f"import test_recursion; test_recursion.main({limit})"], capture_output=True, text=True,
                          cwd=__file__.rpartition("test_recursion")[0], timeout=300)
    wanted = [f"{way.__name__} {where} 2.0" for where in ("main", "thread") for way in WAYS]
    assert (made.stdout.splitlines(), made.returncode) == (wanted, 0), made.stderr[-2000:]


def test_recursion_that_ends_is_a_program_like_any_other():
    @tf.function
    def factorial(n):
        return tf.py_function(lambda n: n if n <= 1 else n * factorial(n - 1), [n], tf.TensorSpec([], tf.int64))

    assert int(factorial(tf.constant(20, tf.int64))) == 2432902008176640000
