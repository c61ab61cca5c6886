"""Branches, loops, and the control flow that AutoGraph makes of Python's."""

import numpy as np
import pytest

import tonnage as tf


def both(f, *args):
    """What a function gives as it is, and traced."""
    plain, traced = f(*args), tf.function(f)(*args)
    np.testing.assert_allclose(np.asarray(plain), np.asarray(traced), rtol=1e-6)
    return traced.numpy().tolist()


def test_cond_and_its_kin():
    def f(x):
        a = tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * 2.0, lambda: -x)
        b = tf.case([(x[0] > 10.0, lambda: 1.0), (x[0] > 1.0, lambda: 2.0)], default=lambda: 3.0)
        c = tf.switch_case(tf.cast(x[0], tf.int32), [lambda: 10.0, lambda: 20.0, lambda: 30.0])
        return a + b + c

    assert both(f, tf.constant([2.0, 1.0])) == [36.0, 34.0]
    assert both(f, tf.constant([0.0, -1.0])) == [13.0, 14.0]
    with pytest.raises(TypeError):
        tf.cond(True, 1, 2)


def test_loops_run_in_the_memory_of_one_round():
    a = tf.random.normal([100, 100]) * 0.1

    def f(n):
        return tf.while_loop(lambda i, r: i < n, lambda i, r: (i + 1, tf.tanh(r @ a)), [tf.constant(0), a],
                             shape_invariants=[tf.TensorShape([]), tf.TensorShape([100, 100])])[1]

    expected = a.numpy()
    for _ in range(10):
        expected = np.tanh(expected @ a.numpy())
    np.testing.assert_allclose(f(10).numpy(), expected, rtol=1e-3, atol=1e-5)
    few, many = tf.function(f).plan(tf.constant(1)).peak, tf.function(f).plan(tf.constant(1000)).peak
    assert few == many


def test_the_arguments_of_while_loop():
    loop = tf.while_loop(lambda i: i < 100, lambda i: i + 1, [0], maximum_iterations=7)
    assert loop[0].numpy() == 7
    assert tf.while_loop(lambda i: i < 3, lambda i: (i + 1,), (tf.constant(0),))[0].numpy() == 3
    x = tf.Variable(2.0)
    for swap in [False, True]:
        with tf.GradientTape() as tape:
            y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [tf.constant(0), tf.constant(1.0)],
                              swap_memory=swap)[1]
        assert tape.gradient(y, x).numpy() == 12.0
    with pytest.raises(ValueError):
        tf.while_loop(lambda i: i < 1, lambda i: i, [tf.zeros([2])], shape_invariants=[tf.TensorShape([3])])
    with pytest.raises(ValueError):
        tf.while_loop(lambda: True, lambda: [], [])


def test_a_body_that_looks_at_values_runs_as_python_does():
    seen = []

    def body(i):
        seen.append(int(i))
        return i + 1

    assert tf.while_loop(lambda i: i < 3, body, [tf.constant(0)])[0].numpy() == 3
    assert seen == [0, 1, 2]


def test_maps_scans_and_folds():
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    assert tf.map_fn(lambda v: v * v, x).numpy().tolist() == [1, 4, 9, 16]
    assert tf.vectorized_map(lambda v: v + 1.0, x).numpy().tolist() == [2, 3, 4, 5]
    assert tf.scan(lambda a, v: a + v, x).numpy().tolist() == [1, 3, 6, 10]
    assert tf.scan(lambda a, v: a + v, x, initializer=10.0).numpy().tolist() == [11, 13, 16, 20]
    assert tf.foldl(lambda a, v: a - v, x).numpy() == -8 and tf.foldr(lambda a, v: a - v, x).numpy() == -2
    a, b = tf.map_fn(lambda p: (p[0] + p[1], p[0]), (x, x))
    assert a.numpy().tolist() == [2, 4, 6, 8] and b.numpy().tolist() == [1, 2, 3, 4]


def test_tensor_arrays():
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for i in range(3):
        array = array.write(i, tf.constant([float(i), 1.0]))
    assert array.stack().numpy().tolist() == [[0, 1], [1, 1], [2, 1]] and array.read(1).numpy().tolist() == [1, 1]

    @tf.function
    def squares(n):
        array = tf.TensorArray(tf.float32, size=4, element_shape=[])
        for i in tf.range(n):
            array = array.write(i, tf.cast(i * i, tf.float32))
        return array.stack()

    assert squares(tf.constant(3)).numpy().tolist() == [0, 1, 4, 0]
    with pytest.raises(tf.errors.OutOfRangeError):
        tf.TensorArray(tf.float32, size=1).write(1, 1.0)


# AutoGraph.


def test_if_on_tensors():
    def f(x):
        y = x
        if tf.reduce_sum(x) > 0:
            y = x * 2
            inner = y + 1
            y = y + inner
        elif x[0] < -5:
            y = -x
        else:
            z = x
            y = z - 1
        return y

    assert both(f, tf.constant([1.0, 2.0])) == [5.0, 9.0]
    assert both(f, tf.constant([-1.0, -2.0])) == [-2.0, -3.0]
    assert both(f, tf.constant([-9.0, 0.0])) == [9.0, 0.0]


def test_returns_in_branches():
    def f(x):
        if x > 10.0:
            return x
        if x > 5.0:
            y = x * 2.0
            if x > 7.0:
                return y
            x = x + 100.0
        else:
            return x - 1.0
        return x

    for value, expected in [(11.0, 11.0), (8.0, 16.0), (6.0, 106.0), (1.0, 0.0)]:
        assert both(f, tf.constant(value)) == expected


def test_while_with_break_and_continue():
    def f(n):
        total, i = tf.constant(0), tf.constant(0)
        while i < n:
            i += 1
            if i % 2 == 0:
                continue
            if i > 7:
                break
            total += i
        return total

    assert both(f, tf.constant(5)) == 9 and both(f, tf.constant(100)) == 16


def test_for_over_tensors_and_ranges():
    def f(rows, n):
        total = tf.zeros([2])
        for row in rows:
            if row[0] > 4.0:
                break
            total = total + row
        for i in tf.range(n):
            total = total + tf.cast(i, tf.float32)
        for k in range(3):
            total = total * 1.0 + k
        return total

    assert both(f, tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), tf.constant(3)) == [10.0, 12.0]
    counted = tf.function(lambda n: n)  # a lambda has no statements
    assert counted(tf.constant(1)).numpy() == 1


def test_logic_comparisons_and_expressions():
    def f(x):
        a = x > 0 and x < 10
        b = not a or x == 5
        c = 0 < x < 6
        y = x if a else -x
        if b and not c:
            y = y + 100
        return y

    for value in [-3, 5, 7, 20]:
        both(f, tf.constant(value))


def test_python_values_stay_pythons():
    seen = []

    @tf.function
    def f(x, n):
        parts = []
        for i in range(n):
            if i % 2:
                parts.append(x * i)
        while n > 0:
            n -= 1
        seen.append((n, len(parts)))
        return tf.add_n(parts)

    assert f(tf.constant(1.0), 4).numpy() == 4.0 and seen == [(0, 2)]


def test_functions_that_are_called_are_converted_too():
    def clip(x):
        if x > 1.0:
            x = tf.constant(1.0)
        return x

    class Model:
        def go(self, x):
            if x < 0.0:
                return -clip(x)
            return clip(x)

    model = Model()

    @tf.function
    def f(x):
        def local(y):
            if y > 0.5:
                return y * 2.0
            return y

        return local(model.go(x))

    assert f(tf.constant(3.0)).numpy() == 2.0 and f(tf.constant(-0.25)).numpy() == 0.25


def test_lambdas_are_converted_where_their_source_can_be_told():
    def half(x):
        if x > 1.0:
            return x / 2.0
        return x

    scale = 3.0
    f = tf.function(lambda x, y=1.0: half(x) * scale if x > 0.0 and y else -x)
    assert f(tf.constant(4.0)).numpy() == 6.0 and f(tf.constant(-4.0)).numpy() == 4.0


def test_assert_and_print_on_tensors(capfd):
    @tf.function
    def f(x):
        assert x > 0.0, "must be positive"
        print("x is", x)
        tf.print("again", x)
        return x

    f(tf.constant(2.0))
    assert capfd.readouterr().err.splitlines() == ["x is 2", "again 2"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be positive"):
        f(tf.constant(-1.0))


def test_a_variable_that_one_branch_leaves_out_is_named():
    @tf.function
    def f(x):
        if x > 0.0:
            y = x
        return y  # noqa: F821

    with pytest.raises(ValueError, match="'y' must also be initialized in the else branch"):
        f(tf.constant(1.0))


def test_errors_point_at_the_users_line():
    @tf.function
    def f(x):
        if x[0] > 0.0:
            x = x + 1.0
        return tf.matmul(x, x)

    try:
        f(tf.constant([1.0]))
    except ValueError as error:
        lines = []
        trace = error.__traceback__
        while trace:
            lines.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
            trace = trace.tb_next
        text = open(__file__).read().splitlines()
        assert any(name == __file__ and "tf.matmul(x, x)" in text[line - 1] for name, line in lines)
    else:
        pytest.fail("no error")


def test_closures_and_globals_keep_their_meaning():
    count = 0

    @tf.function
    def f(x):
        nonlocal count
        count += 1
        if x > 0.0:
            x = x * 2.0
        return x

    f(tf.constant(1.0))
    f(tf.constant(2.0))
    assert count == 1


def test_return_inside_a_loop_over_python_values():
    def f(x):
        for i in range(10):
            if i == 3:
                return x * i
        return x

    assert both(f, tf.constant(2.0)) == 6.0
