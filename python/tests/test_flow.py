"""AutoGraph on what decides late: returns inside of loops, parts of objects, arrays; and programs whose sizes the data decide."""

import warnings

import numpy as np
import pytest

import tonnage as tf


def op_by_op(f, *args):
    """What a function that cannot be planned gives, after it has said so once."""
    with pytest.warns(UserWarning, match="runs op by op"):
        made = f(*args)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(*args)
    return made


def test_a_return_inside_of_a_loop_over_a_tensor():
    @tf.function
    def first_above(rows, limit):
        for row in rows:
            if row > limit:
                return row
        return -1.0

    @tf.function
    def doubled(x):
        while x < 100:
            x *= 2
            if x > 50:
                return x
        return -x

    rows = tf.constant([1.0, 2.0, 3.0, 4.0])
    assert [float(first_above(rows, tf.constant(v))) for v in (2.5, 0.0, 9.0)] == [3.0, 1.0, -1.0]
    assert [int(doubled(tf.constant(v))) for v in (3, 200)] == [96, -200]
    assert first_above.traces == 1


def test_a_variable_that_a_loop_makes_can_be_used_after_it():
    @tf.function
    def last(n):
        for i in tf.range(n):
            y = i * 2
        return y

    assert [int(last(tf.constant(n))) for n in (3, 1)] == [4, 0]


def test_loops_carry_attributes_and_elements_of_objects():
    class State:
        pass

    @tf.function
    def f(n):
        state, counts = State(), {"odd": 0, "even": 0}
        state.total = 0
        for i in tf.range(n):
            state.total += i
            if i % 2 == 1:
                counts["odd"] += 1
            else:
                counts["even"] += 1
        return state.total, counts["odd"], counts["even"]

    assert [int(v) for v in f(tf.constant(5))] == [10, 2, 3]


def test_a_function_may_call_itself_and_use_private_names():
    @tf.function
    def factorial(n):
        if n <= 1:
            return tf.constant(1)
        return n * factorial(n - 1)

    class Scaled:
        def __init__(self):
            self.__by = 3.0

        @tf.function
        def __call__(self, values):
            if tf.reduce_sum(values) > 0:
                values = values * self.__by
            return values

    assert int(factorial(5)) == 120
    assert Scaled()(tf.constant([2.0])).numpy() == [6.0]  # the object lives as long as its call


def test_branches_that_do_not_agree_are_told_in_the_users_words():
    @tf.function
    def dtypes(x):
        if x > 0:
            y = 1
        else:
            y = 2.0
        return y

    @tf.function
    def nothing(x):
        if x > 0:
            return x

    with pytest.raises(TypeError, match="'y' has dtype int32 in the main branch, but dtype float32"):
        dtypes(tf.constant(1))
    with pytest.raises(ValueError, match="the else branch must also have a return"):
        nothing(tf.constant(1))


def test_arrays_in_loops_find_their_shape_and_are_planned():
    @tf.function
    def squares(x):
        array = tf.TensorArray(tf.float32, size=3)
        for i in tf.range(3):
            if x[i] > 1.5:
                array = array.write(i, x[i] * x[i])
            else:
                array = array.write(i, 0.0)
        return array.stack()

    x = tf.constant([1.0, 2.0, 3.0])
    assert squares(x).numpy().tolist() == [0.0, 4.0, 9.0]
    assert squares.plan(x).peak > 0
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(squares(x))
    assert tape.gradient(y, x).numpy().tolist() == [0.0, 4.0, 6.0]

    array = tf.TensorArray(tf.float32, size=4)
    _, array = tf.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a.write(i, tf.cast(i, tf.float32) * 2.0)),
                             [tf.constant(0), array])
    assert array.stack().numpy().tolist() == [0.0, 2.0, 4.0, 6.0]


def test_arrays_outside_of_loops():
    array = tf.TensorArray(tf.int32, size=1, dynamic_size=True).write(2, 7)
    assert array.stack().numpy().tolist() == [0, 0, 7] and int(array.size()) == 3
    assert array.read(2).numpy() == 7
    with pytest.raises(tf.errors.InvalidArgumentError, match="twice"):
        array.read(2)
    rows = tf.TensorArray(tf.int32, size=3).scatter([2, 0, 1], [[1], [2], [3]])
    assert rows.stack().numpy().tolist() == [[2], [3], [1]] and rows.gather([0]).numpy().tolist() == [[2]]
    parts = tf.TensorArray(tf.int32, size=2, infer_shape=False).split([1, 2, 3], [2, 1])
    assert parts.read(0).numpy().tolist() == [1, 2] and parts.read(1).numpy().tolist() == [3]
    with pytest.raises(tf.errors.OutOfRangeError):
        tf.TensorArray(tf.float32, size=2).write(5, 1.0)
    with pytest.raises(ValueError, match="Incompatible shape"):
        tf.TensorArray(tf.float32, size=2).write(0, 1.0).write(1, [1.0, 2.0])


SIZES_OF_DATA = [
    (lambda n: tf.range(n) * 2, [0, 2, 4]),
    (lambda n: tf.shape(tf.zeros([n, 2])), [3, 2]),
    (lambda n: tf.range(6)[:n], [0, 1, 2]),
    (lambda n: tf.reshape(tf.range(6), [n, -1])[:, 0], [0, 2, 4]),
    (lambda n: tf.repeat(tf.constant([5, 6]), n), [5, 5, 5, 6, 6, 6]),
    (lambda n: tf.repeat(tf.constant([5, 6]), tf.stack([n, 1])), [5, 5, 5, 6]),
    (lambda n: tf.repeat(*tf.unique_with_counts(tf.stack([7, n, n, 7, 7]))[::2]), [7, 7, 7, 3, 3]),
    (lambda n: tf.repeat(tf.constant([[5, 6]]), tf.boolean_mask([n, 1], [True, True]), axis=1), [[5, 5, 5, 6]]),
    (lambda n: tf.tile(tf.constant([5]), [n]), [5, 5, 5]),
    (lambda n: tf.argmax(tf.one_hot(tf.constant([1, 2]), n), 1), [1, 2]),
]


@pytest.mark.parametrize("body, expected", SIZES_OF_DATA)
def test_a_function_whose_sizes_the_data_decide_runs_op_by_op_and_says_so_once(body, expected):
    f = tf.function(body)
    assert op_by_op(f, tf.constant(3)).numpy().tolist() == expected


PARTS_OF_DATA = [
    (lambda x: tf.boolean_mask(x, x > 1.0)[-1], 3.0),
    (lambda x: tf.boolean_mask(x, x > 1.0)[-1] * 2.0, 6.0),
    (lambda x: tf.boolean_mask(tf.stack([x, -x]), x > 1.0, axis=1)[:, -1], [3.0, -3.0]),
    (lambda x: tf.unique(x)[0][-2] + x, [5.0, 3.0, 6.0, 4.0]),
]


@pytest.mark.parametrize("body, expected", PARTS_OF_DATA)
def test_the_last_of_what_the_data_select_is_the_same_in_a_function(body, expected):
    x = tf.constant([2.0, 0.0, 3.0, 1.0])
    assert body(x).numpy().tolist() == expected
    assert tf.function(body)(x).numpy().tolist() == expected


def test_arrays_and_loop_variables_that_grow_run_op_by_op():
    @tf.function
    def grown(n):
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(n):
            array = array.write(i, tf.cast(i, tf.float32))
        return array.stack()

    @tf.function
    def doubled(x):
        i = tf.constant(0)
        while i < 2:
            tf.autograph.experimental.set_loop_options(shape_invariants=[(x, tf.TensorShape([None]))])
            x = tf.concat([x, x], 0)
            i += 1
        return x

    assert op_by_op(grown, tf.constant(3)).numpy().tolist() == [0.0, 1.0, 2.0]
    assert op_by_op(doubled, tf.constant([1.0])).shape == [4]
    loop = lambda: tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, tf.concat([x, x], 0)),  # noqa: E731
                                 [tf.constant(0), tf.constant([1.0])],
                                 shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])])
    assert loop()[1].shape == [4]
    assert op_by_op(tf.function(loop))[1].shape == [4]


def test_gradients_and_variables_of_functions_that_run_op_by_op():
    v = tf.Variable(2.0)

    @tf.function
    def step(n):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.cast(tf.range(n), tf.float32) * v)
        v.assign_sub(tape.gradient(loss, v) * 0.1)
        return loss

    assert float(op_by_op(step, tf.constant(3))) == 6.0
    np.testing.assert_allclose(v.numpy(), 2.0 - 0.6, rtol=1e-6)  # twice called, once for the warning


def test_a_budget_forbids_to_run_op_by_op_and_the_user_reading_values_is_an_error():
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError) as caught:
        tf.function(lambda n: tf.range(n), budget="1MiB")(tf.constant(3))
    assert "budget" in "".join(caught.value.__notes__)
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        tf.function(lambda n: int(n) + 1)(tf.constant(3))


def test_open_first_lengths_of_a_signature_are_one_batch_unless_calls_say_otherwise():
    spec = tf.TensorSpec([None], tf.float32)

    @tf.function(input_signature=[spec, spec])
    def product(x, y):
        return tf.reduce_sum(x * y)

    @tf.function(input_signature=[spec, spec])
    def joined(x, y):
        return tf.concat([x, y], 0)

    assert [float(product(tf.ones([n]), tf.ones([n]))) for n in (2, 3)] == [2.0, 3.0]
    assert product.traces == 1
    assert joined(tf.ones([2]), tf.ones([2])).shape == [4] and joined(tf.ones([2]), tf.ones([3])).shape == [5]
    with pytest.raises(TypeError, match="the signature says"):
        joined(tf.ones([2, 2]), tf.ones([2]))
    with pytest.raises(ValueError, match="do not fit"):
        product(tf.ones([2]), tf.ones([3]))
