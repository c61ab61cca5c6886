"""``tf.data`` over the pipelines of the extension: orders that seeds have always given, threads, garbage, the end of the program."""

import gc
import os
import signal
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import tonnage as tf

Dataset = tf.data.Dataset


def values(dataset):
    return [tf.nest.map_structure(lambda t: t.numpy().tolist(), e) for e in dataset]


def rows(count):
    return Dataset.from_tensor_slices(np.arange(count))


# What seeds give, in the first pass and in the second.
ORDERS = [
    (lambda: Dataset.range(12).shuffle(12, seed=3), [0, 3, 5, 2, 7, 4, 8, 9, 1, 11, 6, 10], [9, 6, 11, 8, 2, 0, 3, 1, 4, 10, 7, 5]),
    (lambda: Dataset.range(12).shuffle(4, seed=3), [0, 1, 2, 5, 3, 6, 9, 7, 4, 8, 10, 11], [3, 1, 0, 4, 5, 8, 9, 10, 6, 11, 2, 7]),
    (lambda: Dataset.range(12).shuffle(4, seed=3, reshuffle_each_iteration=False),
     [0, 1, 2, 5, 3, 6, 9, 7, 4, 8, 10, 11], [0, 1, 2, 5, 3, 6, 9, 7, 4, 8, 10, 11]),
    (lambda: rows(12).shuffle(12, seed=3), [11, 7, 2, 10, 0, 1, 4, 6, 9, 5, 3, 8], [0, 4, 11, 1, 2, 5, 10, 7, 9, 8, 6, 3]),
    (lambda: rows(12).shuffle(4, seed=3), [0, 1, 2, 5, 3, 6, 9, 7, 4, 8, 10, 11], [3, 1, 0, 4, 5, 8, 9, 10, 6, 11, 2, 7]),
    (lambda: rows(6).shuffle(6, seed=3).repeat(2), [2, 5, 4, 1, 3, 0, 1, 2, 0, 4, 5, 3], [4, 0, 1, 2, 3, 5, 1, 5, 3, 2, 4, 0]),
    (lambda: rows(6).repeat(2).shuffle(12, seed=3), [5, 1, 2, 4, 0, 1, 4, 0, 3, 5, 3, 2], [0, 4, 5, 1, 2, 5, 4, 1, 3, 2, 0, 3]),
    (lambda: rows(12).skip(2).shuffle(99, seed=7).take(5).batch(2), [[10, 2], [9, 3], [5]], [[11, 2], [10, 8], [9]]),
    (lambda: Dataset.range(6).shuffle(3, seed=3).repeat(2), [0, 3, 1, 4, 5, 2, 2, 1, 3, 5, 0, 4], [2, 0, 1, 4, 3, 5, 0, 2, 1, 3, 5, 4]),
    (lambda: Dataset.sample_from_datasets([Dataset.range(5), Dataset.range(100, 105)], weights=[0.3, 0.7], seed=5),
     [100, 101, 102, 0, 1, 103, 104, 2, 3, 4], [100, 101, 102, 103, 104, 0, 1, 2, 3, 4]),
    (lambda: Dataset.random(seed=4).take(3), [3120047950, 4050395131, 3785566645], [3120047950, 4050395131, 3785566645]),
]


@pytest.mark.parametrize("case", range(len(ORDERS)))
def test_a_seed_gives_the_orders_that_it_has_always_given(case):
    make, first, second = ORDERS[case]
    data = make()
    assert [values(data), values(data)] == [first, second]
    data = make().prefetch(2)
    assert [values(data), values(data)] == [first, second]


def test_the_global_seed_gives_the_orders_that_it_has_always_given():
    tf.random.set_seed(11)
    data = Dataset.range(8).shuffle(8)
    assert [values(data), values(data)] == [[6, 2, 5, 1, 0, 4, 3, 7], [7, 1, 6, 0, 5, 3, 2, 4]]
    data = rows(8).shuffle(8)
    assert [values(data), values(data)] == [[6, 0, 4, 5, 2, 3, 1, 7], [5, 0, 1, 7, 2, 4, 6, 3]]


def test_elements_are_nested_as_they_were():
    import collections

    Pair = collections.namedtuple("Pair", "x y")
    x = np.arange(6).reshape(3, 2)
    given = {"b": x, "a": Pair(x + 1, (x + 2, x + 3)), "c": ()}
    for data in [Dataset.from_tensor_slices(given), Dataset.from_tensor_slices(given).filter(lambda e: e["b"][0] >= 0),
                 Dataset.zip({"b": rows(3), "a": Pair(rows(3), (rows(3), rows(3))), "c": ()}).batch(2),
                 Dataset.from_tensor_slices(given).cache().shuffle(2).prefetch(1).repeat(2)]:
        for element in data:
            assert list(element) == ["b", "a", "c"] and isinstance(element["a"], Pair) and element["c"] == ()
            assert isinstance(element["a"].y, tuple) and len(element["a"].y) == 2
    row = next(iter(Dataset.from_tensor_slices(given)))
    assert [t.numpy().tolist() for t in tf.nest.flatten(row)] == [[1, 2], [2, 3], [3, 4], [0, 1]]


def test_only_tensors_are_batched():
    for data in [rows(4).window(2), Dataset.zip(rows(2), rows(4).window(2))]:
        for batched in [data.batch(2), data.batch(2, drop_remainder=True), data.padded_batch(2)]:
            with pytest.raises(TypeError, match="only tensors can be batched"):
                list(batched)


class Broken(Exception):
    """One that only this file knows."""


@pytest.mark.parametrize("step", [
    lambda f: rows(9).map(f),
    lambda f: rows(9).map(f, num_parallel_calls=3),
    lambda f: rows(9).map(f, num_parallel_calls=3, deterministic=False),
    lambda f: rows(9).map(f).prefetch(2),
    lambda f: rows(9).filter(lambda x: f(x) > 0),
    lambda f: rows(9).flat_map(lambda x: Dataset.from_tensors(x).map(f)).batch(2).prefetch(1),
    lambda f: rows(9).interleave(lambda x: Dataset.from_tensors(x).map(f), 3, num_parallel_calls=2),
    lambda f: rows(9).scan(np.int64(0), lambda s, x: (s, f(x))),
    lambda f: rows(9).window(2).flat_map(lambda w: w.map(f)),
    lambda f: Dataset.zip(rows(9), rows(9).map(f)).cache(),
])
def test_an_exception_of_a_function_arrives_as_it_is_from_any_thread(step):
    raised = Broken("on purpose")

    def broken(x):
        def check(value):
            if int(value) == 5:
                raise raised
            return value
        return tf.py_function(check, [x], tf.int64)

    with pytest.raises(Broken) as caught:
        values(step(broken))
    assert caught.value is raised


@pytest.mark.parametrize("make", [
    lambda own: rows(8).map(own.scaled),
    lambda own: rows(8).map(own.scaled, num_parallel_calls=2).batch(2).prefetch(2),
    lambda own: rows(8).interleave(own.parts),
    lambda own: rows(8).window(2).flat_map(own.same),
    lambda own: Dataset.from_generator(own.generated, output_signature=tf.TensorSpec([], tf.int64)),
    lambda own: Dataset.from_generator(own.generated, output_signature=tf.TensorSpec([], tf.int64)).repeat(3).skip(3).cache(),
])
def test_a_function_that_refers_to_its_own_dataset_is_garbage_that_is_found(make):
    class Trainer:
        def __init__(self):
            self.data = make(self)
            self.iterator = iter(self.data)
            next(self.iterator)

        def scaled(self, x):
            return x * 2

        def parts(self, x):
            return Dataset.from_tensors(x)

        def same(self, window):
            return window

        def generated(self):
            yield from (0, 1)

    gone = weakref.ref(Trainer())
    for _ in range(1000):
        gc.collect()
        if gone() is None:
            break
    assert gone() is None


def test_a_generator_ends_with_its_iterator():
    ended = []

    def numbers():
        try:
            yield from range(4)
        finally:
            ended.append(True)

    data = Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.int64))
    iterator = iter(data.batch(2))
    next(iterator)
    assert not ended
    del iterator
    gc.collect()
    assert ended == [True]
    assert values(data.repeat(2).take(6)) == [0, 1, 2, 3, 0, 1]


def test_steps_outlive_the_names_of_what_they_are_made_of():
    iterator = iter(rows(6).map(lambda x: x + 1).filter(lambda x: x > 2).interleave(lambda x: Dataset.from_tensors(x).map(lambda y: y * 10)))
    gc.collect()
    assert [int(x) for x in iterator] == [30, 40, 50, 60]


def test_waiting_for_a_thread_is_interrupted():
    waiting, done = threading.Event(), threading.Event()

    def never():
        waiting.set()
        done.wait()
        yield 1

    data = Dataset.from_generator(never, output_signature=tf.TensorSpec([], tf.int32))
    for made in [data.prefetch(1), data.map(lambda x: x, num_parallel_calls=2)]:
        waiting.clear()
        done.clear()
        sender = threading.Thread(target=lambda: (waiting.wait(), os.kill(os.getpid(), signal.SIGINT)))
        sender.start()
        with pytest.raises(KeyboardInterrupt):
            next(iter(made))
        sender.join()
        done.set()


@pytest.mark.parametrize("endless", [
    lambda: Dataset.counter().skip(10**15),
    lambda: rows(3).repeat().unique().skip(3),
    lambda: Dataset.range(3).repeat().filter(lambda x: x > 5),
])
def test_what_gives_no_element_for_ever_is_interrupted(endless):
    sender = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    iterator = iter(endless())
    sender.start()
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    sender.join()


def test_an_iterator_inside_of_itself_is_an_error():
    held = []
    data = rows(3).map(lambda x: tf.py_function(lambda v: next(held[0]), [x], tf.int64))
    held.append(iter(data))
    with pytest.raises(ValueError, match="already"):
        next(held[0])


def test_a_program_ends_while_threads_make_elements():
    program = """
import tonnage as tf
def endless():
    n = 0
    while True:
        yield n
        n += 1
data = tf.data.Dataset.from_generator(endless, output_signature=tf.TensorSpec([], tf.int64))
kept = [iter(data.map(lambda x: x * 2, num_parallel_calls=3).batch(10).prefetch(4)) for _ in range(3)]
print([int(next(one)[1]) for one in kept])
"""
    for _ in range(3):
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "[2, 2, 2]\n", "")


def test_memory_of_elements_is_counted_and_given_back():
    before = tf.memory.info()["current"]
    data = Dataset.range(8).map(lambda x: tf.sort(tf.fill([1 << 14], x))).cache()
    values(data.batch(2))
    held = tf.memory.info()["current"] - before
    assert 8 * (8 << 14) <= held < 9 * (8 << 14)
    del data
    assert tf.memory.info()["current"] == before
    shuffled = rows(1 << 14).shuffle(1 << 14, seed=1).batch(2)
    before = tf.memory.info()["current"]
    iterator = iter(shuffled)
    next(iterator)
    assert tf.memory.info()["current"] - before >= 8 << 14
    del iterator
    assert tf.memory.info()["current"] == before
