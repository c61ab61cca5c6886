"""Functions: tracing, signatures, variables, budgets."""

import gc
import warnings
import weakref

import numpy as np
import pytest

import tonnage as tf


def test_a_function_is_traced_once_for_each_signature():
    traced = []

    @tf.function
    def f(x, y=2.0):
        traced.append(x.shape)
        return x * y

    assert f(tf.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]
    assert f(tf.constant([3.0, 4.0])).numpy().tolist() == [6.0, 8.0]
    assert len(traced) == 1
    assert f(tf.constant([1.0]), y=3.0).numpy().tolist() == [3.0]
    assert len(traced) == 2 and f.experimental_get_tracing_count() == 2


def test_python_values_are_part_of_the_signature_and_tensors_are_not():
    @tf.function
    def f(x, flag):
        if flag:
            return x * x
        return tf.zeros_like(x)

    x = tf.constant([2.0, 3.0])
    assert f(x, True).numpy().tolist() == [4.0, 9.0] and f(x, False).numpy().tolist() == [0.0, 0.0]
    assert f.traces == 2
    assert f(x, tf.constant(True)).numpy().tolist() == [4.0, 9.0]
    assert f(x, tf.constant(False)).numpy().tolist() == [0.0, 0.0]
    assert f.traces == 3


def test_a_signature_leaves_lengths_open():
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def f(x):
        assert x.shape[0] is None
        return tf.reshape(x, [tf.shape(x)[0] * 2]) + 1.0

    for n in [1, 2, 5]:
        assert f(tf.ones([n, 2])).numpy().tolist() == [2.0] * (2 * n)
    assert f.traces == 1
    with pytest.raises(ValueError, match="signature"):
        f(tf.ones([2, 3]))


def test_arguments_and_results_are_nested_as_they_come():
    @tf.function
    def f(pair, more):
        a, b = pair
        return {"sum": a + b, "rest": [more["x"], None, "text"], "number": 3}

    made = f((tf.constant(1.0), np.float32(2.0)), {"x": tf.constant(5.0)})
    assert made["sum"].numpy() == 3.0 and made["rest"][0].numpy() == 5.0
    assert made["rest"][1:] == [None, "text"] and made["number"].numpy() == 3


def test_variables_made_inside_belong_to_the_function():
    @tf.function
    def count(x):
        total = tf.Variable(tf.zeros([2]), name="total")
        total.assign_add(x)
        return total.read_value()

    count(tf.ones([2]))
    assert count(tf.ones([2])).numpy().tolist() == [2.0, 2.0]
    assert [v.name for v in count.variables] == ["total:0"]


def test_variables_outside_are_updated():
    v = tf.Variable(1.0)

    @tf.function
    def step(x):
        v.assign_add(x)
        return v * 2.0

    assert step(tf.constant(2.0)).numpy() == 6.0 and v.numpy() == 3.0


def test_a_tape_around_a_call_sees_into_it():
    w = tf.Variable([2.0, 3.0])

    @tf.function
    def f(x):
        return tf.reduce_sum(w * x * x)

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    dw, dx = tape.gradient(y, [w, x])
    assert dw.numpy().tolist() == [1.0, 4.0] and dx.numpy().tolist() == [4.0, 12.0]


def test_a_training_step_is_one_plan():
    w = tf.Variable(tf.zeros([3, 1]))
    x = tf.constant(np.random.default_rng(0).normal(size=(32, 3)).astype("f4"))
    y = x @ tf.constant([[1.0], [2.0], [-1.0]])

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ w - y) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    losses = [float(step(x, y)) for _ in range(200)]
    assert losses[-1] < 1e-3 * losses[0]
    ran = step.last_run()
    assert ran["used"] == ran["predicted"]


def test_methods_are_functions_of_their_objects():
    class Scale(tf.Module):
        def __init__(self, by):
            super().__init__()
            self.by = tf.Variable(by)

        @tf.function
        def __call__(self, x):
            return x * self.by

    a, b = Scale(2.0), Scale(3.0)
    assert a(tf.constant(1.0)).numpy() == 2.0 and b(tf.constant(1.0)).numpy() == 3.0
    ref = weakref.ref(a)
    del a
    gc.collect()
    assert ref() is None


def test_python_runs_as_it_is_traced_and_errors_are_the_users_own():
    seen = []

    @tf.function
    def f(x):
        seen.append("traced")
        if x.shape[0] > 2:
            raise KeyError("mine")
        return x

    f(tf.ones([2]))
    f(tf.ones([2]))
    assert seen == ["traced"]
    with pytest.raises(KeyError, match="mine"):
        f(tf.ones([3]))


def test_symbols_have_no_values_and_do_not_leave():
    kept = []

    @tf.function
    def f(x):
        kept.append(x)
        with pytest.raises(NotImplementedError):
            x.numpy()
        with pytest.raises(TypeError):
            float(x)
        return x

    f(tf.constant(1.0))
    with pytest.raises(ValueError):
        kept[0] + 1.0


def test_functions_run_eagerly_when_told():
    seen = []

    @tf.function
    def f(x):
        seen.append(float(x))
        return x + 1.0

    tf.config.run_functions_eagerly(True)
    try:
        assert f(tf.constant(1.0)).numpy() == 2.0 and f(tf.constant(2.0)).numpy() == 3.0
    finally:
        tf.config.run_functions_eagerly(False)
    assert seen == [1.0, 2.0]


def test_concrete_functions():
    f = tf.function(lambda x: x * 2.0)
    concrete = f.get_concrete_function(tf.TensorSpec([None], tf.float32))
    assert concrete(tf.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]
    with pytest.raises(TypeError):
        concrete(tf.constant([1]))
    assert "add" in f.graph_text(tf.constant([1.0]))  # twice x is x and x


def test_changing_python_numbers_warn_once_and_memory_stays_flat():
    f = tf.function(lambda x, n: x * n)
    x = tf.constant([1.0])
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for n in range(1000):
            f(x, float(n))
    assert len([w for w in heard if "traced" in str(w.message)]) == 1
    assert f.graph_bytes <= 64 << 20


def test_a_budget_is_met_or_refused_with_the_least_that_would_do():
    def chain(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in range(20):
                y = tf.tanh(y @ y)
        return tape.gradient(y, x)

    x = tf.constant(np.random.default_rng(0).normal(size=(128, 128)).astype("f4") * 0.01)
    free = tf.memory.plan(chain, x).peak
    tight = tf.function(chain, budget=free // 2)
    assert tight.plan(x).peak <= free // 2
    np.testing.assert_allclose(tight(x).numpy(), tf.function(chain)(x).numpy(), rtol=1e-4, atol=1e-6)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="budget"):
        tf.function(chain, budget="64KiB")(x)
    with pytest.raises(ValueError):
        tf.function(chain, budget="much")


def test_callbacks_run_when_the_program_does():
    seen = []

    @tf.function
    def f(x):
        y = tf.py_function(lambda v: (seen.append(v.numpy().tolist()), v * 2.0)[1], [x], tf.float32)
        return y + tf.numpy_function(lambda a: np.sort(a), [x], tf.float32)

    assert f(tf.constant([3.0, 1.0])).numpy().tolist() == [7.0, 5.0]
    f(tf.constant([1.0, 2.0]))
    assert seen == [[3.0, 1.0], [1.0, 2.0]]


def test_a_signature_takes_numbers_lists_and_names():
    @tf.function(input_signature=[tf.TensorSpec([], tf.float32), tf.TensorSpec([None], tf.int32)])
    def f(x, y):
        return x * 2.0, tf.reduce_sum(y)

    for made in (f(1.5, [1, 2, 3]), f(1.5, y=[1, 2, 3]), f(x=tf.constant(1.5), y=tf.constant([1, 2, 3]))):
        assert [float(v) for v in made] == [3.0, 6.0]
    assert f.traces == 1
    with pytest.raises(TypeError):
        f("text", [1])
