"""Random streams: which seeds draw the same numbers, and that no others do."""

import itertools

import numpy as np
import pytest

import tonnage as tf


def drawn(seed):
    """What a seed draws, as something that can be compared."""
    return tuple(tf.random.stateless_uniform([2], seed, minval=-(2**62), maxval=2**62, dtype="int64").numpy().tolist())


def of(tensor):
    return tuple(tensor.numpy().tolist())


SEEDS = [*itertools.product(range(-2, 8), repeat=2), (2**31 - 1, 0), (-(2**31), 2**31 - 1), (123456, 789)]


def test_no_two_seeds_that_are_made_from_seeds_coincide():
    seen = {}

    def add(seed, *what):
        assert seed not in seen, f"{what} is {seen[seed]}"
        seen[seed] = what

    for seed in SEEDS:
        add(seed, "itself", seed)
    for seed in SEEDS:
        for i, made in enumerate(tf.random.split(seed, 20).numpy().tolist()):
            add(tuple(made), "split", seed, i)
        for i in range(20):
            add(of(tf.random.fold_in(seed, i)), "fold_in", seed, i)


def test_no_two_streams_of_one_program_coincide():
    seen = {}

    def add(numbers, *what):
        assert numbers not in seen, f"{what} draws what {seen[numbers]} does"
        seen[numbers] = what

    def of_generator(generator):
        return tuple(generator.uniform([2], -(2**62), 2**62, "int64").numpy().tolist())

    def of_op(seed):
        return tuple(tf.random.uniform([2], -(2**62), 2**62, "int64", seed).numpy().tolist())

    for seed in range(12):
        # What ops draw after a global seed, and with one of their own.
        tf.random.set_seed(seed)
        for i in range(6):
            add(of_op(None), "an op", seed, i)
        for own, i in itertools.product(range(6), range(3)):
            add(of_op(own), "an op with the seed", own, "after", seed, i)
        # Generators, and those that they are split into.
        generator = tf.random.Generator.from_seed(seed)
        for i in range(4):
            add(of_generator(generator), "a generator", seed, i)
            for j, part in enumerate(generator.split(3)):
                add(of_generator(part), "a part of a generator", seed, i, j)
                add(of_generator(part.split(1)[0]), "a part of a part", seed, i, j)
        # Stateless ops.
        for other in range(12):
            pair = [seed, other]
            add(drawn(pair), "the seed", pair)
            add(drawn(tf.random.fold_in(pair, seed)), "fold_in of", pair)
            for i, made in enumerate(tf.random.split(pair, 3)):
                add(drawn(made), "split of", pair, i)


@pytest.mark.parametrize("make", [
    tf.keras.initializers.RandomNormal, tf.keras.initializers.GlorotNormal, tf.keras.initializers.Orthogonal,
])
def test_initializers_with_seeds_draw_what_no_stateless_seed_does(make):
    made = {tuple(make(seed=seed)([2, 2]).numpy().ravel().tolist()) for seed in range(20)}
    assert len(made) == 20
    first = tf.keras.initializers.RandomNormal(0.0, 1.0, seed=3)([4]).numpy()
    for pair in ([3, 0], [0, 3], [3, 3]):
        assert not np.array_equal(first, tf.random.stateless_normal([4], pair).numpy())


def test_the_same_seed_gives_the_same_seeds_and_fewer_are_the_first_of_more():
    assert np.array_equal(tf.random.split([1, 2], 5)[:3].numpy(), tf.random.split([1, 2], 3).numpy())
    assert of(tf.random.fold_in([1, 2], 3)) == of(tf.random.fold_in(tf.constant([1, 2]), tf.constant(3)))
    assert tf.random.split([1, 2], 0).shape == [0, 2]
    one, two = (tf.random.Generator.from_seed(7) for _ in range(2))
    for a, b in zip(one.split(2), two.split(2)):
        assert np.array_equal(a.normal([3]).numpy(), b.normal([3]).numpy())


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_seeds_keep_their_dtype(dtype):
    seed = tf.constant([5, -6], dtype)
    assert tf.random.split(seed).dtype == dtype and tf.random.fold_in(seed, 2**63).dtype == dtype


def test_streams_of_derived_seeds_are_not_correlated():
    seeds = [[1, 2], *tf.random.split([1, 2], 3), *(tf.random.fold_in([1, 2], i) for i in range(3))]
    numbers = np.stack([tf.random.stateless_normal([4000], seed).numpy() for seed in seeds])
    off = np.abs(np.corrcoef(numbers) - np.eye(len(seeds)))
    assert off.max() < 5 / 4000**0.5


# Ops that a seed alone decides on.
STATELESS = {
    "normal": lambda seed: tf.random.stateless_normal([3, 4], seed),
    "normal in 16 bits": lambda seed: tf.random.stateless_normal([70], seed, dtype="float16"),
    "scaled": lambda seed: tf.random.stateless_normal([5], seed, 2.0, 3.0),
    "truncated": lambda seed: tf.random.stateless_truncated_normal([3000], seed, dtype="float64"),
    "uniform": lambda seed: tf.random.stateless_uniform([3, 4], seed, -1.0, 2.0),
    "whole numbers": lambda seed: tf.random.stateless_uniform([9], seed, 5, 500, "int64"),
    "classes": lambda seed: tf.random.stateless_categorical(tf.zeros([2, 7]), 20, seed),
    "gamma": lambda seed: tf.random.stateless_gamma([6], seed, 2.0),
    "dropout": lambda seed: tf.nn.experimental.stateless_dropout(tf.ones([50]), 0.5, seed),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("op", STATELESS)
@pytest.mark.parametrize("how", ["argument", "computed", "parts", "variable"])
def test_a_seed_that_a_function_computes_draws_as_eagerly_in_a_plan(op, how):
    """With warnings as errors: a function that runs op by op warns."""
    state = tf.Variable([3, 4], dtype="int64")
    draw = STATELESS[op]
    program = {"argument": draw, "computed": lambda seed: draw(seed * 2 - seed), "parts": lambda seed: draw([seed[0], seed[1]]),
               "variable": lambda seed: draw(tf.cast(state, seed.dtype) + seed - [3, 4])}[how]
    f = tf.function(program)
    for seed in ([3, 4], [-5, 2**31 - 1]):
        given = tf.constant(seed, "int32")
        np.testing.assert_array_equal(f(given), program(given))
        np.testing.assert_array_equal(f(given), draw(seed))
    assert f.traces == 1 and f.last_run()["predicted"] == f.last_run()["used"]


@pytest.mark.parametrize("wrong", [[1, 2], "text", None, np.ones(3)])
def test_a_seed_that_is_refused_changes_nothing(wrong):
    tf.random.set_seed(7)
    expected = tf.random.normal([3], seed=1).numpy()
    tf.random.set_seed(7)
    with pytest.raises((TypeError, ValueError)):
        tf.random.set_seed(wrong)
    np.testing.assert_array_equal(tf.random.normal([3], seed=1), expected)
