"""A slice of ``python -m fuzz`` with fixed seeds, the programs that it found, and proof that it finds what is wrong."""

import random
import sys
from pathlib import Path

import numpy as np
import pytest

import tonnage as tf

# At the end: the package that was installed comes before the sources beside it.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from fuzz import check, draw  # noqa: E402
from fuzz.__main__ import examined, small  # noqa: E402


@pytest.mark.parametrize("first", range(0, 100, 10))
def test_random_programs_agree_in_every_way_to_run_them(first):
    for seed in range(first, first + 10):
        failure, _ = examined(seed)
        assert failure is None, f"seed {seed}: {failure[1]}\n{failure[0].script()}"


def _twice(name, *attributes):
    """An op of one value twice, whose bytes its kernel could take over."""
    return lambda x: getattr(tf.linalg, name)(tf.tanh(x) + 3.0 * tf.eye(4), tf.tanh(x) + 3.0 * tf.eye(4), *attributes)


_MATRIX = np.random.default_rng(1).normal(size=(4, 4)).astype("float32")
_EVERY_ROW = np.arange(4, dtype="int32")[:, None]
FOUND = {
    "solve of a value with itself": (_twice("solve"), [_MATRIX]),
    "solve of a value with itself, transposed": (_twice("solve", True), [_MATRIX]),
    "triangular_solve of a value with itself": (_twice("triangular_solve"), [_MATRIX]),
    "scatter of a value into itself": (
        lambda x, at: tf.tensor_scatter_nd_update(tf.exp(x), at, tf.exp(x)), [_MATRIX, _EVERY_ROW[::-1].copy()]),
    "scatter that adds a value to itself": (
        lambda x, at: tf.tensor_scatter_nd_add(tf.exp(x), at, tf.exp(x)), [_MATRIX, _EVERY_ROW]),
    "fill with an argument": (lambda x: tf.fill([2, 3], x * x), [np.float32(1.5)]),
    "cumulative_logsumexp of equal numbers": (
        lambda x: tf.math.cumulative_logsumexp(x) * tf.constant([1.0, 2.0, 3.0]), [np.ones(3, "float32")]),
    "cumulative_logsumexp of infinities": (
        lambda x: tf.math.cumulative_logsumexp(x), [np.array([-np.inf, -np.inf, 1, np.inf, np.inf, 2], "float32")]),
    "gather of rows without elements": (lambda x, i: tf.gather(x * 2.0, i), [np.ones([3, 0], "float32"), np.array([[0, 2]])]),
    "gather of no rows": (lambda x, i: tf.gather(x * 2.0, i), [np.ones([3, 2], "float32"), np.zeros([0], "int32")]),
    "boolean_mask": (lambda x, m: tf.boolean_mask(x * 2.0, m), [_MATRIX, np.array([True, False, True, True])]),
    "places where it is true": (
        lambda m, x: tf.cast(tf.where(m), "float32") @ x, [np.array([True, False, True]), np.ones([1, 4], "float32")]),
    "a loop whose estimate is far from its plan": (
        lambda x: tf.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, tf.identity(s)), [tf.constant(0), x])[1],
        [np.ones([7, 10, 5], "float32")]),
    "numbers that differ": (
        lambda x: tf.cast(tf.unique(x)[0], "float32") * 2.0, [np.array([1, 5, 1], "int32")]),
}


@pytest.mark.parametrize("name", FOUND)
def test_programs_that_were_found(name):
    function, given = FOUND[name]
    checked = check.Checked(lambda *a: (function(*a),), [tf.constant(array) for array in given])
    checked.planned()
    checked.gradients()


def test_gradients_that_were_found_are_those_of_the_formula():
    x = tf.constant([1.0, 1.0, 1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.cumulative_logsumexp(x)
    np.testing.assert_allclose(tape.gradient(y, x), [1 + 1 / 2 + 1 / 3, 1 / 2 + 1 / 3, 1 / 3], rtol=1e-6)
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.fill([2, 3], x)
    assert float(tape.gradient(y, x)) == 6.0


@pytest.mark.parametrize("lengths", [([None], [3]), ([3], [None]), ([None], [None]), ([None, 2], [3, None]), ([None, 2], [2])])
@pytest.mark.parametrize("op", [tf.equal, tf.not_equal, lambda a, b: a == b, lambda a, b: a != b])
def test_open_lengths_are_compared_or_refused_and_never_called_unequal(op, lengths):
    shapes = [[n or 3 for n in given[:-1]] + [given[-1] or (2 if len(given) > 1 else 3)] for given in lengths]
    given = [tf.constant(np.arange(np.prod(shape)).reshape(shape) % 2, "int32") for shape in shapes]
    f = tf.function(lambda a, b: op(a, b), input_signature=[tf.TensorSpec(part, "int32") for part in lengths])
    try:
        made = f(*given)
    except tf.errors.InvalidArgumentError:
        return
    np.testing.assert_array_equal(made, op(*given), strict=True)


def test_a_function_that_computes_something_else_is_found_and_made_small(monkeypatch):
    right = tf.nn.softmax
    monkeypatch.setattr(tf.nn, "softmax", lambda x, axis=-1: right(x, axis) * (0.5 if tf.inside_function() else 1.0))
    using = (seed for seed in range(200) if "tf.nn.softmax(" in draw.program(seed)[0].source())
    seed, (made, finding) = next((seed, found) for seed in using if (found := examined(seed)[0]) is not None)
    assert finding.kind.startswith("numbers")
    smaller = small(seed, made, finding)
    assert len(smaller.nodes) < len(made.nodes) and "tf.nn.softmax(" in smaller.source()
    with pytest.raises(check.Finding):
        check.check(smaller, random.Random(seed))


def test_random_numbers_outside_of_their_range_are_found(monkeypatch):
    seed = next(seed for seed in range(200) if "tf.random.stateless_uniform(" in draw.program(seed)[0].source())
    right = tf.random.stateless_uniform
    monkeypatch.setattr(tf.random, "stateless_uniform", lambda *given, **named: right(*given, **named) + 20)
    assert examined(seed)[0][1].kind == "range of random numbers"


def test_more_bytes_than_a_budget_allows_are_found(monkeypatch):
    checked = check.Checked(lambda x: (tf.exp(x @ x),), [tf.constant(_MATRIX)])
    real = type(tf.function(lambda x: x)).last_run

    def lies(function):
        ran = dict(real(function))
        ran["used"] += 64
        return ran

    monkeypatch.setattr(type(tf.function(lambda x: x)), "last_run", lies, raising=False)
    with pytest.raises(check.Finding, match="used of function"):
        checked.planned()
