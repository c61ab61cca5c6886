"""Whatever is passed: an exception of Python's or TensorFlow's, never a crash, and the program goes on."""

import inspect
import random

import numpy as np
import pytest

import tonnage as tf
from tonnage import _tonnage



class Hostile:
    """An object whose every hook fails, or lies."""

    def __len__(self):
        return -1

    def __iter__(self):
        raise ZeroDivisionError

    def __index__(self):
        raise ZeroDivisionError

    __array__ = __float__ = __tf_tensor__ = __bool__ = __index__

    def __getattr__(self, name):
        raise ZeroDivisionError(name)

    def __repr__(self):
        raise ZeroDivisionError


class Liar(list):
    """A list that is longer than it says."""

    def __len__(self):
        return 0


class Number(int):
    """An integer of another class."""


def own_part():
    """A list that contains itself."""
    made = [1]
    made.append(made)
    return made


VALUES = [
    Hostile(), Liar([1, 2]), Number(3), own_part(), [np.float32(1), 2], [tf.constant(1.0), None], (i for i in range(2)),
    np.zeros([2, 2], dtype=">f4"), np.zeros([2, 3]).T, np.zeros([4])[::2], np.ma.masked, np.datetime64("2020-01-01"),
    np.zeros([2], dtype=[("a", "f4")]), memoryview(b"abc"), bytearray(b"abc"), 1j, frozenset([1]), type, lambda *a: a,
    tf.TensorSpec([None, 2]), tf.IndexedSlices(tf.constant([1.0]), tf.constant([0])), "SYMBOL", -5, 255, 2**40, [2**40],
    [-1, -1], [0, 0, 0], [10**6, 10**6], "bfloat16", "no such", np.bool_(True), np.float16(2), [[1.0], [True]],
    None, True, False, 0, 1, -1, 2**31, 2**63, -(2**63), 10**30, 0.5, float("nan"), float("inf"), -0.0, "", "float32", "x" * 50,
    b"bytes", [], [[]], [1, 2], [1.5, None], ["a"], [[1], [2, 3]], (), (3,), {}, {"a": 1}, object(), int, print,
    np.zeros([2, 3]), np.zeros([0]), np.array("text"), np.array([object()]), np.complex64(1j), np.int8(3),
    "TENSOR", "SCALAR", "INT", "BOOL", "EMPTY", "VARIABLE", slice(None), Ellipsis, range(3), {1, 2}, tf.float32, tf.TensorShape([None]),
]


ESCAPED = []
tf.function(lambda x: ESCAPED.append(x) or x)(tf.constant([1.0, 2.0]))


def value(rng):
    picked = rng.choice(VALUES)
    made = {
        "TENSOR": lambda: tf.constant([[1.0, 2.0], [3.0, 4.0]]), "SCALAR": lambda: tf.constant(2.0),
        "INT": lambda: tf.constant([1, 0]), "BOOL": lambda: tf.constant([True, False]), "EMPTY": lambda: tf.zeros([0, 3]),
        "VARIABLE": lambda: tf.Variable([1.0, 2.0]), "SYMBOL": lambda: ESCAPED[0],
    }
    return made[picked]() if isinstance(picked, str) and picked in made else picked


LARGE = (MemoryError, OverflowError, RecursionError)
SKIPPED = {"after_fork", "end_callbacks", "pass_over_folder", "enter_layer", "leave_layer", "set_error_classes", "set_sugar", "listen", "set_limit", "set_spill_folder",
           "keep_in_files", "enter_budget", "leave_budget", "set_seed", "run_functions_eagerly", "while_loop", "call_eagerly", "host_callback", "enter_eager",
           "leave_eager", "set_threads", "check_numerics", "panic_for_tests"}


def names():
    return sorted(n for n in dir(_tonnage) if inspect.isbuiltin(getattr(_tonnage, n)) and n not in SKIPPED)


@pytest.mark.parametrize("name", names())
def test_no_argument_crashes_an_op(name):
    rng = random.Random(name)
    function = getattr(_tonnage, name)
    count = len(inspect.signature(function).parameters)
    tf.memory.set_limit("256MiB")
    try:
        for _ in range(60):
            try:
                function(*[value(rng) for _ in range(count)])
            except Exception as error:
                assert type(error).__name__ != "PanicException", (name, error)
    finally:
        tf.memory.set_limit(None)


@pytest.mark.parametrize("module", [tf, tf.math, tf.nn, tf.linalg, tf.random, tf.signal, tf.bitwise])
def test_no_argument_crashes_a_name(module):
    rng = random.Random(module.__name__)
    public = [n for n in dir(module) if not n.startswith("_") and callable(getattr(module, n))]
    skipped = {"print", "while_loop", "set_seed", "function", "inside_function"}
    tf.memory.set_limit("256MiB")
    try:
        for name in public:
            if name in skipped or inspect.isclass(getattr(module, name)):
                continue
            for _ in range(12):
                try:
                    getattr(module, name)(*[value(rng) for _ in range(rng.randint(1, 3))])
                except Exception as error:
                    assert type(error).__name__ != "PanicException", (name, error)
    finally:
        tf.memory.set_limit(None)
    assert (tf.constant(1.0) + 1.0).numpy() == 2.0


def test_methods_take_anything():
    rng = random.Random(7)
    operators = ["__add__", "__radd__", "__mul__", "__matmul__", "__getitem__", "__eq__", "__lt__", "__pow__", "__and__"]
    for _ in range(400):
        tensor = rng.choice([tf.constant([1.0, 2.0]), tf.constant(3), tf.constant([[True]]), tf.zeros([0, 2])])
        name = rng.choice(operators)
        given = [value(rng)] if name != "__pow__" else [value(rng), None]
        try:
            getattr(tensor, name)(*given)
        except Exception as error:
            assert type(error).__name__ != "PanicException", (name, error)


def test_threads_have_tapes_of_their_own():
    import threading

    made, errors = [], []

    def work(n):
        try:
            x = tf.Variable(float(n))
            for _ in range(50):
                with tf.GradientTape() as tape:
                    y = x * x
                made.append((n, float(tape.gradient(y, x))))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(made) == 200 and all(slope == 2 * n for n, slope in made)


def test_a_tape_of_another_thread_is_a_clear_error():
    import threading

    with tf.GradientTape() as tape:
        x = tf.Variable(1.0)
        y = x * x
    errors = []

    def work():
        try:
            tape.gradient(y, x)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert isinstance(errors[0], RuntimeError) and "another thread" in str(errors[0])


def test_a_forked_process_computes_or_says_why_not():
    import os

    x = tf.constant(np.ones([1 << 20], "f4"))
    tf.reduce_sum(x * x).numpy()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            tf.reduce_sum(x * x).numpy()
            code = 0
        except RuntimeError as error:
            code = 0 if "forked" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_names_take_anything_by_keyword_and_inside_of_a_trace():
    rng = random.Random(11)
    public = [n for n in dir(tf) if inspect.isfunction(getattr(tf, n)) or isinstance(getattr(tf, n), _tonnage.Op)]
    skipped = {"print", "while_loop", "function", "inside_function", "load_op_library"}

    def one(name):
        function = getattr(tf, name)
        given = [value(rng) for _ in range(rng.randint(1, 3))]
        named = {"name": value(rng)} if rng.random() < 0.3 else {}
        try:
            function(*given, **named)
        except Exception as error:
            assert type(error).__name__ != "PanicException", (name, error)

    tf.memory.set_limit("256MiB")
    try:
        for name in public:
            if name not in skipped:
                for _ in range(3):
                    one(name)
                    try:
                        tf.function(lambda x: one(name) or x)(tf.constant([1.0]))  # noqa: B023
                    except Exception as error:  # of a callback, which runs later
                        assert type(error).__name__ != "PanicException", (name, error)
    finally:
        tf.memory.set_limit(None)
    assert (tf.constant(1.0) + 1.0).numpy() == 2.0


def test_a_spawned_process_computes(tmp_path):
    import subprocess
    import sys

    program = tmp_path / "spawned.py"
    program.write_text("""
import multiprocessing
import tonnage as tf


def work(n):
    return float(tf.reduce_sum(tf.range(float(n)) * 2.0))


if __name__ == "__main__":
    tf.reduce_sum(tf.random.normal([1 << 20]) * 2.0).numpy()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(work, [3, 4]))
""")
    made = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120)
    assert made.stdout.strip() == "[6.0, 12.0]", made.stderr


def test_an_interrupt_is_seen_between_calls_and_the_program_goes_on():
    import _thread
    import threading
    import time

    threading.Timer(0.2, _thread.interrupt_main).start()
    x = tf.constant([1.0, 2.0])
    f = tf.function(lambda x: x * 1.0 + 0.0)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        while True:
            x = f(x)
            # Python drops an exception that is raised in a finalizer: once in a while the first one.
            if time.monotonic() - start > 5:
                _thread.interrupt_main()
    assert (tf.constant(1.0) + 1.0).numpy() == 2.0 and x.numpy().tolist() == [1.0, 2.0]


def test_other_threads_run_while_a_call_computes():
    import threading

    x = tf.random.normal([600, 600]) + 0.0
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    f = tf.function(lambda x: x @ x @ x @ x)
    f(x)
    before = counted[0]
    for _ in range(5):
        f(x).numpy()
    done.set()
    thread.join()
    assert counted[0] > before
