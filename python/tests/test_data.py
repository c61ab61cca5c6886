"""``tf.data``: elements, batches, order, threads, specs."""

import threading

import numpy as np
import pytest

import tonnage as tf

Dataset = tf.data.Dataset


def values(dataset):
    return [tf.nest.map_structure(lambda t: t.numpy().tolist(), e) for e in dataset]


def test_rows_of_tensors_come_one_by_one_and_in_batches():
    x, y = np.arange(10).reshape(5, 2).astype("f4"), np.arange(5)
    data = Dataset.from_tensor_slices((x, y))
    assert values(data) == [(x[i].tolist(), i) for i in range(5)]
    assert len(data) == 5 and len(data.batch(2)) == 3 and len(data.batch(2, drop_remainder=True)) == 2
    assert [b[1] for b in values(data.batch(2))] == [[0, 1], [2, 3], [4]]
    named = Dataset.from_tensor_slices({"a": x, "b": y}).batch(5)
    assert values(named)[0]["b"] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="not compatible"):
        Dataset.from_tensor_slices((x, y[:3]))


def test_batches_of_rows_are_slices_of_the_tensor_and_take_no_copy_of_it():
    x = tf.Variable(np.zeros((4096, 64), "f4")).read_value()
    before = tf.memory.info()["current"]
    most = max(tf.memory.info()["current"] for _ in Dataset.from_tensor_slices(x).batch(1024))
    assert most - before <= 1024 * 64 * 4


def test_specs_say_dtypes_and_which_lengths_are_open():
    data = Dataset.from_tensor_slices((np.zeros((6, 3), "f4"), np.arange(6)))
    assert data.element_spec == (tf.TensorSpec([3], tf.float32), tf.TensorSpec([], tf.int64))
    batched = data.batch(4)
    assert batched.element_spec[0] == tf.TensorSpec([None, 3], tf.float32)
    assert data.batch(4, drop_remainder=True).element_spec[0] == tf.TensorSpec([4, 3], tf.float32)
    mapped = batched.map(lambda x, y: {"sum": tf.reduce_sum(x, 1), "whole": tf.reduce_sum(x)})
    assert mapped.element_spec == {"sum": tf.TensorSpec([None], tf.float32), "whole": tf.TensorSpec([], tf.float32)}
    assert batched.unbatch().element_spec == data.element_spec


def test_shuffling_is_a_permutation_which_a_seed_repeats():
    data = Dataset.range(100)
    once = values(data.shuffle(100, seed=3))
    assert sorted(once) == list(range(100)) and once != list(range(100)) and values(data.shuffle(100, seed=3)) == once
    rows = Dataset.from_tensor_slices(np.arange(100)).shuffle(100, seed=1)
    first, second = values(rows), values(rows)
    assert sorted(first) == sorted(second) == list(range(100)) and first != second
    fixed = Dataset.from_tensor_slices(np.arange(100)).shuffle(100, seed=1, reshuffle_each_iteration=False)
    assert values(fixed) == values(fixed)
    # Out of a small buffer nothing comes earlier than the buffer allows.
    near = values(data.shuffle(5, seed=0))
    assert sorted(near) == list(range(100)) and all(value <= place + 4 for place, value in enumerate(near))


@pytest.mark.parametrize("data", [Dataset.range(7), Dataset.from_tensor_slices(np.arange(7))])
def test_take_skip_repeat_shard_and_concatenate(data):
    assert values(data.take(3)) == [0, 1, 2] and values(data.take(-1)) == list(range(7))
    assert values(data.skip(5)) == [5, 6] and values(data.skip(9)) == []
    assert values(data.repeat(2)) == list(range(7)) * 2 and values(data.repeat().take(9)) == [*range(7), 0, 1]
    assert values(data.shard(3, 1)) == [1, 4] and values(data.concatenate(data.take(1))) == [*range(7), 0]
    assert [len(d) for d in (data.take(3), data.skip(5), data.repeat(2), data.shard(3, 1))] == [3, 2, 14, 2]
    assert int(data.repeat().cardinality()) == tf.data.INFINITE_CARDINALITY
    assert values(data.skip(1).take(4).repeat(2).batch(3)) == [[1, 2, 3], [4, 1, 2], [3, 4]]
    with pytest.raises(TypeError, match="infinite"):
        len(data.repeat())


def test_map_filter_scan_and_reduce_run_planned_functions():
    data = Dataset.range(10)

    def odd_doubled(x):
        if x % 2 == 1:
            x = x * 2
        return x

    assert values(data.map(odd_doubled)) == [n * 2 if n % 2 else n for n in range(10)]
    assert values(data.filter(lambda x: x % 3 == 0)) == [0, 3, 6, 9]
    assert values(data.scan(tf.constant(0, tf.int64), lambda s, x: (s + x, s * 10))) == [sum(range(n)) * 10 for n in range(10)]
    assert int(data.reduce(tf.constant(0, tf.int64), lambda s, x: s + x)) == 45
    assert values(data.take_while(lambda x: x < 4)) == [0, 1, 2, 3]
    assert values(data.enumerate(5).take(2)) == [(5, 0), (6, 1)]
    with pytest.raises(ValueError, match="predicate"):
        values(data.filter(lambda x: x))
    with pytest.raises(TypeError, match="state"):
        data.reduce(tf.constant(0.0), lambda s, x: x)


def test_parallel_map_keeps_the_order_and_uses_several_threads():
    seen = set()

    def slow(x):
        seen.add(threading.get_ident())
        return x

    data = Dataset.range(64).map(lambda x: tf.py_function(slow, [x], tf.int64), num_parallel_calls=4)
    assert values(data) == list(range(64))
    assert threading.get_ident() not in seen and sorted(
        values(Dataset.range(64).map(lambda x: x * 2, num_parallel_calls=4, deterministic=False))) == list(range(0, 128, 2))


def test_prefetch_gives_the_same_and_its_thread_ends_with_the_pass():
    data = Dataset.range(50).prefetch(tf.data.AUTOTUNE)
    assert values(data) == list(range(50)) == values(data)
    for _ in range(3):
        iterator = iter(Dataset.range(1000).prefetch(2))
        next(iterator)
        del iterator
    assert not [t for t in threading.enumerate() if t.name == "tonnage-prefetch"]


def test_what_is_ahead_already_is_not_held_once_more():
    def mapped(**options):
        return Dataset.range(16).batch(4).map(lambda x: x * 2, **options)

    parallel, expected = mapped(num_parallel_calls=2), values(mapped())
    assert parallel.prefetch(tf.data.AUTOTUNE) is parallel
    assert values(parallel) == expected
    # A number is a number, and what one thread makes as it is asked for is not ahead.
    for data in (parallel, mapped(), parallel.map(lambda x: x)):
        assert data.prefetch(3) is not data and values(data.prefetch(3)) == expected
        ahead = data.prefetch(tf.data.AUTOTUNE)
        assert (ahead is data) == (data is parallel) and values(ahead) == expected


def test_errors_of_functions_and_generators_reach_who_asks():
    def broken():
        yield 1
        raise KeyError("the file is gone")

    data = Dataset.from_generator(broken, output_signature=tf.TensorSpec([], tf.int32))
    for one in (data, data.prefetch(1), data.map(lambda x: x, num_parallel_calls=2)):
        with pytest.raises(KeyError, match="the file is gone"):
            values(one)
        with pytest.raises(tf.errors.InvalidArgumentError, match="KeyError.*the file is gone"):
            values(one)
    wrong = Dataset.from_generator(lambda: iter([[1, 2]]), output_signature=tf.TensorSpec([3], tf.int32))
    for kind in (TypeError, tf.errors.InvalidArgumentError):
        with pytest.raises(kind, match=r"\(2,\).*\(3,\)"):
            values(wrong)

    def undecodable():
        yield 1
        b"\xff".decode("utf-8")

    with pytest.raises(tf.errors.InvalidArgumentError, match="UnicodeDecodeError"):
        values(Dataset.from_generator(undecodable, output_signature=tf.TensorSpec([], tf.int32)))


class Own(Exception):
    pass


FAILING = {
    "no tensor": ([object()], tf.errors.DTypeError),
    "sparse": ([tf.sparse.from_dense([0.0, 1.0])], tf.errors.DTypeError),
    "an error of its own": ([Own()], Own),
    "an interrupt": ([KeyboardInterrupt()], KeyboardInterrupt),
}


@pytest.mark.parametrize("ask", [lambda data: data.element_spec, lambda data: next(iter(data)), list, lambda data: next(iter(data.batch(2)))])
@pytest.mark.parametrize("case", FAILING)
def test_what_a_generator_raises_is_what_is_raised(case, ask):
    """Also where the pass is given up as the error is on its way: the generator is told, in Python."""
    items, error = FAILING[case]

    def numbers():
        for item in items:
            if isinstance(item, BaseException):
                raise item
            yield item

    with pytest.raises(error):
        ask(Dataset.from_generator(numbers, output_types=tf.float32))


def test_generators_start_anew_at_each_pass():
    def numbers(n):
        for i in range(n):
            yield i, [float(i)] * 2

    data = Dataset.from_generator(numbers, args=(3,), output_signature=(tf.TensorSpec([], tf.int32), tf.TensorSpec([2], tf.float32)))
    assert values(data) == values(data) == [(i, [float(i)] * 2) for i in range(3)]
    assert int(data.cardinality()) == tf.data.UNKNOWN_CARDINALITY
    typed = Dataset.from_generator(lambda: iter([1, 2]), output_types=tf.float32, output_shapes=())
    assert values(typed) == [1.0, 2.0]


def test_batches_stack_and_padded_batches_fill_up():
    ragged = Dataset.from_generator(lambda: iter([[1], [2, 3], [4, 5, 6]]), output_signature=tf.TensorSpec([None], tf.int32))
    with pytest.raises(tf.errors.InvalidArgumentError, match="different shapes"):
        values(ragged.batch(2))
    assert values(ragged.padded_batch(2)) == [[[1, 0], [2, 3]], [[4, 5, 6]]]
    assert values(ragged.padded_batch(3, padded_shapes=[4], padding_values=-1)) == [
        [[1, -1, -1, -1], [2, 3, -1, -1], [4, 5, 6, -1]]]
    assert values(Dataset.range(5).batch(2).unbatch()) == list(range(5))
    assert ragged.padded_batch(2).element_spec == tf.TensorSpec([None, None], tf.int32)


def test_windows_are_datasets():
    windows = Dataset.range(7).window(3, shift=2, drop_remainder=True)
    assert [values(w) for w in windows] == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    assert values(Dataset.range(7).window(3, 1, drop_remainder=True).flat_map(lambda w: w.batch(3)))[-1] == [4, 5, 6]
    assert [values(w) for w in Dataset.range(5).window(2)] == [[0, 1], [2, 3], [4]]
    assert [values(w) for w in Dataset.range(9).window(2, shift=4, stride=2)] == [[0, 2], [4, 6], [8]]


def test_interleave_takes_blocks_in_turn():
    def made(x):
        return Dataset.from_tensors(x).repeat(3)

    data = Dataset.range(1, 5)
    assert values(data.flat_map(made)) == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]
    assert values(data.interleave(made, cycle_length=2, block_length=2)) == [1, 1, 2, 2, 1, 2, 3, 3, 4, 4, 3, 4]
    assert values(data.interleave(made, cycle_length=2, num_parallel_calls=2)) == values(data.interleave(made, cycle_length=2))


def test_zip_ends_with_the_shortest_and_nests():
    a, b = Dataset.range(3), Dataset.range(10, 20)
    assert values(Dataset.zip((a, b))) == values(Dataset.zip(a, b)) == [(0, 10), (1, 11), (2, 12)]
    assert values(Dataset.zip({"x": a, "y": (b, a)}))[1] == {"x": 1, "y": (11, 1)}


def test_cache_runs_the_function_once(tmp_path):
    runs = []
    source = Dataset.range(4).map(lambda x: tf.py_function(lambda v: runs.append(int(v)) or v, [x], tf.int64))
    kept = source.cache()
    assert values(kept) == values(kept) == [0, 1, 2, 3] and runs == [0, 1, 2, 3]
    filed = source.cache(str(tmp_path / "kept"))
    values(filed)
    assert values(filed) == [0, 1, 2, 3] and len(runs) == 8
    half = source.cache()
    next(iter(half))
    assert values(half) == [0, 1, 2, 3]


def test_files_and_lines(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(f"{name}1\n{name}2\n")
    names = [n.numpy().decode() for n in Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False)]
    assert [n[-5:] for n in names] == ["a.txt", "b.txt"]
    lines = Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False).interleave(tf.data.TextLineDataset, cycle_length=2)
    assert [line.numpy() for line in lines] == [b"a1", b"b1", b"a2", b"b2"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="No files matched"):
        Dataset.list_files(str(tmp_path / "*.png"))


def test_a_function_goes_through_a_dataset():
    data = Dataset.range(5).batch(2)

    @tf.function
    def total(start):
        for batch in data:
            start = start + tf.reduce_sum(batch)
        return start

    assert int(total(tf.constant(1, tf.int64))) == 11
    endless = Dataset.range(3).repeat()
    with pytest.raises(ValueError, match="infinite"):
        tf.function(lambda: [x for x in endless])()


def test_iterators_and_single_elements():
    iterator = iter(Dataset.range(1))
    assert int(iterator.get_next()) == 0
    with pytest.raises(tf.errors.OutOfRangeError):
        iterator.get_next()
    assert int(Dataset.from_tensors(7).get_single_element()) == 7
    assert [a.tolist() for a in Dataset.range(2).batch(2).as_numpy_iterator()] == [[0, 1]]
    picks = Dataset.choose_from_datasets([Dataset.range(3), Dataset.range(10, 13)], Dataset.from_tensor_slices([0, 1, 1, 0]))
    assert values(picks) == [0, 10, 11, 1]
    drawn = Dataset.sample_from_datasets([Dataset.range(50), Dataset.range(100, 150)], seed=0)
    assert sorted(values(drawn)) == [*range(50), *range(100, 150)]
