"""Iterators of datasets inside of functions: each call takes new elements, as the same program does eagerly."""

import numpy as np
import pytest

import tonnage as tf
from tonnage import _nest

Dataset = tf.data.Dataset


def once(take):
    return take()


def twice(take):
    return take() - 3.0 * take()


def in_a_tensor_loop(take):
    total = tf.zeros([2])
    for i in tf.range(3):
        total += take() * tf.cast(i + 1, tf.float32)
    return total


def in_nested_loops(take):
    total = tf.zeros([2])
    for _ in tf.range(2):
        for _ in tf.range(2):
            total = 2.0 * total + take()
    return total


def in_a_branch(take):
    x = take()
    if tf.reduce_sum(x) > 20.0:
        x = x + 100.0 * take()
    return x


def in_a_while_loop(take):
    return tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, 2.0 * x + take()), [0, tf.zeros([2])])[1]


def unused(take):
    take()
    return take()


PROGRAMS = [once, twice, in_a_tensor_loop, in_nested_loops, in_a_branch, in_a_while_loop, unused]

SOURCES = {
    "rows": lambda: Dataset.from_tensor_slices(np.arange(60, dtype="float32")).batch(2, drop_remainder=True),
    "shuffled": lambda: Dataset.range(60).shuffle(9, seed=3).map(lambda x: tf.cast(x, tf.float32)).batch(2, drop_remainder=True),
    "endless": lambda: Dataset.range(7).repeat().map(lambda x: tf.cast(x, tf.float32)).batch(2),
    "prefetched": lambda: Dataset.range(60).map(lambda x: tf.cast(x, tf.float32), 2).batch(2, drop_remainder=True).prefetch(2),
    "generated": lambda: Dataset.from_generator(lambda: ([n, n * n] for n in range(30)), output_signature=tf.TensorSpec([2], "float32", "pair")),
    "open": lambda: Dataset.range(60).map(lambda x: tf.cast(x, tf.float32)).batch(2),  # not static: op by op
}


# How an iterator comes into a function. Each makes a callable without arguments.


def captured(program, iterator, **options):
    return tf.function(lambda: program(lambda: next(iterator)), **options)


def got(program, iterator, **options):
    return tf.function(lambda: program(iterator.get_next), **options)


def as_argument(program, iterator, **options):
    function = tf.function(lambda it: program(lambda: next(it)), **options)
    return lambda: function(iterator)


def nested_argument(program, iterator, **options):
    function = tf.function(lambda given: program(lambda: next(given["both"][1])), **options)
    return lambda: function({"both": (tf.ones([3]), iterator)})


def of_an_object(program, iterator, **options):
    class Trainer:
        def __init__(self):
            self.iterator = iterator

        @tf.function(**options)
        def step(self):
            return program(lambda: next(self.iterator))

    return Trainer().step


def inner_function(program, iterator, **options):
    inner = tf.function(lambda it: next(it))
    function = tf.function(lambda it: program(lambda: inner(it)), **options)
    return lambda: function(iterator)


def captured_then_passed(program, iterator, **options):
    inner = tf.function(lambda it: next(it))
    return tf.function(lambda: program(lambda: inner(iterator)), **options)


WAYS = [captured, got, as_argument, nested_argument, of_an_object, inner_function, captured_then_passed]

# Those in which a call sees the iterator, and so the lengths of its next element.
PASSED = [as_argument, nested_argument, inner_function]


@pytest.mark.filterwarnings("ignore:.*runs op by op")
@pytest.mark.parametrize("way, source", [*((way, "rows") for way in WAYS), *((captured, source) for source in list(SOURCES)[1:]), (as_argument, "open")])
def test_a_function_takes_the_elements_that_the_eager_program_takes(way, source):
    for program in PROGRAMS:
        expected, iterator = iter(SOURCES[source]()), iter(SOURCES[source]())
        step = way(program, iterator)
        for call in range(3):
            wanted = program(lambda: next(expected))
            np.testing.assert_array_equal(step(), wanted, f"{program.__name__}, call {call}")
        # As many were taken, too.
        np.testing.assert_array_equal(next(iterator), next(expected), program.__name__)


@pytest.mark.parametrize("way", WAYS, ids=lambda w: w.__name__)
def test_the_end_is_an_out_of_range_error_and_stays_one(way):
    for source in ["rows", "open"]:
        iterator = iter(SOURCES[source]().take(3))
        with pytest.warns() if source == "open" and way not in PASSED else pytest.MonkeyPatch.context():
            step = way(once, iterator)
            for _ in range(3):
                step()
        for _ in range(2):
            with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
                step()
        with pytest.raises(StopIteration):
            next(iterator)
        with pytest.raises(tf.errors.OutOfRangeError):
            iterator.get_next()


def test_one_trace_serves_all_iterators_of_a_spec():
    function = tf.function(lambda a, b: 10 * next(a) + next(b))
    for first in range(3):
        a, b = iter(Dataset.range(first, 9)), iter(Dataset.range(5))
        assert [int(function(a, b)) for _ in range(3)] == [10 * (first + n) + n for n in range(3)]
    assert function.traces == 1
    assert int(function(a, a)) == 10 * (first + 3) + first + 4
    assert function.traces == 2, "one iterator is not two"
    function(iter(Dataset.range(3, output_type="int32")), iter(Dataset.range(3, output_type="int32")))
    assert function.traces == 3


GIVEN = {
    "twice": lambda it: (it, it),
    "nested": lambda it: ({"a": it}, [it]),
    "by name": lambda it: (it, it),
    "another": lambda it: (it, iter(Dataset.range(100).batch(4))),
}


@pytest.mark.filterwarnings("ignore:.*runs op by op")
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("count", [7, 8, 20], ids=lambda n: f"{n} rows")
def test_an_iterator_of_open_lengths_that_is_given_twice_gives_each_element_once(given, count):
    """Whichever was called before: two iterators whose next elements are alike are another call."""
    def total(a, b):
        a, b = _nest.flatten((a, b))
        return tf.reduce_sum(next(a)), tf.reduce_sum(next(b)), a is b

    function = tf.function(total)
    function(iter(Dataset.range(40).batch(4)), iter(Dataset.range(40).batch(4)))
    eager, planned = (GIVEN[given](iter(Dataset.range(count).batch(4))) for _ in range(2))
    made = function(planned[0], b=planned[1]) if given == "by name" else function(*planned)
    assert [int(value) for value in made] == [int(value) for value in total(*eager)]


def test_a_trace_holds_an_iterator_that_it_captured_and_none_that_was_passed():
    import gc
    import weakref

    inner = tf.function(lambda it: next(it))
    held = {"it": iter(Dataset.range(5))}
    function = tf.function(lambda: inner(held["it"]))
    assert int(function()) == 0
    held.clear()
    gc.collect()
    assert int(function()) == 1
    passed = iter(Dataset.range(5))
    inner(passed)
    gone = weakref.ref(passed)
    del passed
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("budget", [None, "64KiB"])
@pytest.mark.parametrize("inside", [False, True], ids=["a step a call", "an epoch a call"])
def test_training_over_two_epochs_equals_the_eager_loop(inside, budget):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(24, 3)).astype("float32"), rng.normal(size=(24, 1)).astype("float32")

    def data():
        return Dataset.from_tensor_slices({"x": x, "y": y}).shuffle(24, seed=5).batch(4, drop_remainder=True)

    def train(step, epochs, weights):
        for iterator in epochs:
            step(iterator, weights)
        return weights.numpy()

    def one(batch, weights):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((batch["x"] @ weights - batch["y"]) ** 2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))

    def epoch(iterator, weights):
        for _ in tf.range(6):
            one(next(iterator), weights)

    passes = data()
    wanted = train(epoch, (iter(passes) for _ in range(2)), tf.Variable(tf.zeros([3, 1])))
    function = tf.function(epoch if inside else lambda it, weights: one(next(it), weights), budget=budget)

    def step(iterator, weights):
        for _ in range(1 if inside else 6):
            function(iterator, weights)

    passes = data()
    made = train(step, (iter(passes) for _ in range(2)), tf.Variable(tf.zeros([3, 1])))
    np.testing.assert_array_equal(made, wanted)
    ran = function.last_run()
    assert ran["predicted"] == ran["used"] > 0
    assert function.traces == 1


def test_a_gradient_takes_no_further_elements():
    v = tf.Variable(2.0)
    data = Dataset.range(1, 9).map(lambda n: tf.cast(n, tf.float32))
    for function in [tf.function(lambda it: v * v * next(it)), tf.function(lambda it: tf.function(lambda i: v * v * next(i))(it))]:
        iterator = iter(data)
        for n in range(1, 4):
            with tf.GradientTape() as tape:
                made = function(iterator)
            assert (float(made), float(tape.gradient(made, v))) == (4.0 * n, 4.0 * n)
        assert float(next(iterator)) == 4.0


def test_the_bytes_of_elements_are_in_the_plan():
    iterator = iter(Dataset.from_tensor_slices(np.zeros([8, 1000], "float32")).batch(4, drop_remainder=True))
    function = tf.function(lambda it: tf.sort(next(it)) * 2.0)
    plan = function.plan(iterator)
    assert plan.peak >= 16000
    function(iterator)
    assert function.last_run()["used"] == function.last_run()["predicted"] == plan.peak
    assert next(iterator).shape == [4, 1000]  # to plan takes no element


def test_autograph_goes_through_an_iterator_to_its_end():
    @tf.function
    def total(iterator, most):
        count = total = tf.constant(0, tf.int64)
        for x in iterator:
            count, total = count + 1, total + x
            if total > most:
                break
        return count, total

    iterator = iter(Dataset.range(10))
    assert [int(n) for n in total(iterator, 5)] == [4, 6]
    assert [int(n) for n in total(iterator, 1000)] == [6, 39]
    assert [int(n) for n in total(iterator, 1000)] == [0, 0]
    assert total.traces <= 2  # the numbers are two


@pytest.mark.parametrize("go", [lambda it: [x for x in it], lambda it: list(zip(it, [1, 2])), lambda it: dict(enumerate(it)), lambda it: list(it)])
def test_python_does_not_go_through_an_iterator_inside_of_a_function(go):
    with pytest.raises(TypeError, match="next\\(iterator\\)"):
        tf.function(go, autograph=False)(iter(Dataset.range(3)))


def test_optionals():
    @tf.function
    def total(iterator):
        total = tf.constant(0, tf.int64)
        found = iterator.get_next_as_optional()
        while found.has_value():
            total += found.get_value()
            found = iterator.get_next_as_optional()
        return total

    assert [int(total(iter(Dataset.range(n)))) for n in (0, 1, 5)] == [0, 0, 10]
    last = iter(Dataset.range(1))
    assert int(tf.data.experimental.get_next_as_optional(last).get_value()) == 0
    empty = last.get_next_as_optional()
    assert isinstance(empty, tf.experimental.Optional) and not empty.has_value()
    for read in [empty.get_value, tf.function(lambda: last.get_next_as_optional().get_value())]:
        with pytest.raises(tf.errors.InvalidArgumentError, match="no value"):
            read()


def test_a_dataset_inside_of_a_function_is_gone_through_anew_at_each_call():
    data = Dataset.range(8).shuffle(8, seed=2)
    wanted = [[int(x) for x in data] for _ in range(3)]
    data = Dataset.range(8).shuffle(8, seed=2)

    @tf.function
    def unrolled():
        return tf.stack([x for x in data])

    @tf.function
    def by_hand():
        iterator = iter(data)
        first = next(iterator)
        rest = tf.zeros([7], tf.int64)
        for i in tf.range(7):
            rest = tf.tensor_scatter_nd_update(rest, [[i]], [next(iterator)])
        return tf.concat([[first], rest], 0)

    for function in [unrolled, by_hand]:
        function()  # the trace makes a pass as well
        orders = {tuple(function().numpy()) for _ in range(3)}
        assert len(orders) == 3 and all(sorted(order) == list(range(8)) for order in orders)
    assert len({tuple(order) for order in wanted}) == 3 and unrolled.traces == by_hand.traces == 1


def test_an_endless_dataset_inside_of_a_function_is_left_by_break():
    data = Dataset.range(4).repeat().map(lambda n: n + 1)

    @tf.function
    def until(most):
        total = tf.constant(0, tf.int64)
        for n in data:
            if total + n > most:
                break
            total += n
        return total

    @tf.function
    def by_hand(count):
        iterator = iter(iter(data))
        total = next(iterator)
        for _ in tf.range(count):
            total = 10 * total + next(iterator)
        for n in iterator:
            total = 10 * total + n
            if n == 2:
                break
        return total

    assert [int(until(tf.constant(n, tf.int64))) for n in (0, 5, 23)] == [0, 3, 23]
    assert [int(by_hand(tf.constant(n))) for n in (1, 3, 4)] == [123412, 123412, 12341 * 10 + 2]
    assert until.traces == by_hand.traces == 1


def test_passes_that_differ_run_op_by_op():
    sizes = iter([3, 3, 5, 2, 4])

    def changing():
        yield from range(next(sizes))

    data = Dataset.from_generator(changing, output_signature=tf.TensorSpec([], "int64"))

    @tf.function
    def total():
        total = tf.constant(0, tf.int64)
        for x in data:
            total += x
        return total

    assert int(total()) == 3  # a pass to trace, and one to run
    with pytest.warns(match="op by op.*number and the types"):
        assert int(total()) == 1  # a pass of five was begun first
    assert int(total()) == 6


def test_a_call_that_took_elements_does_not_start_again():
    # That the shape of what Python returns is not that of its input is found when an element is taken already.
    def wrong(x):
        return tf.reduce_sum(x) * tf.ones([3])

    iterator = iter(SOURCES["rows"]())
    function = tf.function(lambda: tf.py_function(wrong, [next(iterator)], tf.float32) + 1.0)
    for _ in range(2):
        with pytest.raises(TypeError) as caught:
            function()
        assert any("took elements of an iterator" in note for note in caught.value.__notes__)
    assert next(iterator).numpy().tolist() == [4.0, 5.0]
    # Elements that an earlier call took are no obstacle.
    with pytest.warns(match="op by op"):
        assert tf.function(lambda x: tf.py_function(wrong, [x], tf.float32) + 1.0)(tf.ones([2])).shape == [3]


def test_a_session_takes_a_new_element_at_each_run():
    v1, iterator = tf.compat.v1, iter(Dataset.range(3))
    with v1.Graph().as_default():
        doubled = iterator.get_next() * 2
        with v1.Session() as session:
            assert [int(session.run(doubled)) for _ in range(3)] == [0, 2, 4]
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(doubled)


def test_other_iterators_are_pythons():
    numbers = iter(range(5))
    function = tf.function(lambda: tf.constant(next(numbers)))
    assert [int(function()) for _ in range(3)] == [0, 0, 0]


def test_what_only_python_knows_of_elements_is_an_error_that_says_so(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    for data in [tf.data.TextLineDataset(str(tmp_path / "a.txt")), Dataset.range(5).batch(2), Dataset.range(4).window(2)]:
        batches = isinstance(data.element_spec, tf.TensorSpec) and data.element_spec.dtype == tf.int64
        for program in (once, twice, in_a_while_loop):
            for way in [way for way in WAYS if not (batches and program is once and way in PASSED)]:
                with pytest.raises(TypeError, match="iterator's elements.*drop_remainder"):
                    way(program, iter(data), budget="1MiB")()
    with pytest.raises(RuntimeError, match="as_numpy_iterator"):
        tf.function(lambda: list(Dataset.range(3).as_numpy_iterator()))()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("way", PASSED, ids=lambda w: w.__name__)
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
def test_a_call_is_planned_for_the_lengths_of_the_next_element(way, rows):
    """With warnings as errors, and a budget: nothing runs op by op."""
    iterator = iter(Dataset.range(rows).map(lambda x: tf.cast(x, tf.float32)).batch(2))
    step = way(once, iterator, budget="1MiB")
    for first in range(0, rows, 2):
        np.testing.assert_array_equal(step(), once(lambda first=first: np.arange(first, min(first + 2, rows), dtype="float32")))
    for _ in range(2):
        with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
            step()


def test_an_element_of_another_type_than_announced_is_an_error():
    data = Dataset.from_tensor_slices([1, 2, 3]).flat_map(lambda n: Dataset.from_tensors(tf.range(n)))
    iterator = iter(data)
    for read in [iterator.get_next, lambda: iterator.get_next_as_optional().get_value()]:
        function = tf.function(read)
        if read == iterator.get_next:
            assert function().shape == [1]
        with pytest.raises(tf.errors.InvalidArgumentError, match="gave an element"):
            function()


def test_an_optional_that_a_loop_fills_is_planned():
    """Empty at first, by ``while_loop`` and by AutoGraph."""
    def empty():
        return tf.experimental.Optional.empty({"sum": tf.TensorSpec([], "int64")})

    def by_hand(it):
        def body(i, last, following):
            last = tf.experimental.Optional.from_value({"sum": tf.reduce_sum(following.get_value())})
            return i + 1, last, it.get_next_as_optional()

        return tf.while_loop(lambda i, last, following: (i < 3) & following.has_value(), body, [0, empty(), it.get_next_as_optional()])[1]

    def rewritten(it):
        last = empty()
        for _ in tf.range(3):
            last = tf.experimental.Optional.from_value({"sum": tf.reduce_sum(next(it))})
        return last

    for step in [by_hand, rewritten]:
        function = tf.function(step)
        made = function(iter(Dataset.range(20).batch(4, drop_remainder=True)))
        assert bool(made.has_value()) and int(made.get_value()["sum"]) == 8 + 9 + 10 + 11
        assert function.last_run()["predicted"] == function.last_run()["used"]
    none = tf.function(by_hand)(iter(Dataset.range(3).batch(4, drop_remainder=True)))
    assert not bool(none.has_value())
    with pytest.raises(tf.errors.InvalidArgumentError, match="Optional has no value"):
        none.get_value()
