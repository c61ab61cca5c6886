"""What the random programs take for exact where TensorFlow is not, beside references that are neither of the two."""

import sys
from pathlib import Path

import numpy as np
import pytest

tensorflow = pytest.importorskip("tensorflow")
sys.path.append(str(Path(__file__).resolve().parents[1]))

from fuzz import peer  # noqa: E402
from fuzz.check import Finding  # noqa: E402
from fuzz.exact import NAMESPACE  # noqa: E402
from fuzz.program import Body, Node, Program  # noqa: E402

import tonnage as tf  # noqa: E402

_ROWS = np.array([[3, np.nan, -np.inf, 2], [np.nan, 1, np.inf, -0.5]], "float32")
# Numbers, their values and their slopes, by mpmath with 40 digits.
ERFINV = [
    (0.9999655856782489, 2.9289055880814952, 4711.2366279764274),
    (0.9998, 2.6297417762102926, 893.15449435597477),
    (-0.99, -1.8213863677184495, 24.450876473746412),
    (0.75, 0.81341984759761854, 1.7174997693674523),
    (1e-12, 8.86226925452758e-13, 0.88622692545275801),
]
# A row whose first number becomes NaN in the second iteration, and is sorted in the third.
_SORTED_IN_A_LOOP = Program(
    {"v1": (np.array([-0.40625, -0.96875, -0.5, -0.203125], "float32"), "float32"), "v2": (np.zeros(5, "float32"), "float32")},
    [Node("v7", "scanned", "tf.foldl(f1, v2, initializer=v1)", [Body(
        "f1", ["v3", "v4"], [Node("v5", "sort", "tf.sort(v3)"), Node("v6", "atanh", "tf.atanh(v5)")], ["v6"])])],
    ["v7"])


@pytest.mark.parametrize("axis", [0, 1])
def test_nan_is_sorted_as_the_largest_number(axis):
    rows = tensorflow.constant(_ROWS)
    np.testing.assert_array_equal(NAMESPACE.sort(rows, axis=axis), np.sort(_ROWS, axis))
    order = NAMESPACE.argsort(rows, axis=axis, direction="ASCENDING", stable=True)
    np.testing.assert_array_equal(order, np.argsort(_ROWS, axis, kind="stable"))
    np.testing.assert_array_equal(NAMESPACE.sort(rows, axis=axis, direction="DESCENDING"), np.flip(np.sort(_ROWS, axis), axis))


def test_the_largest_are_nan():
    made, places = NAMESPACE.math.top_k(tensorflow.constant(_ROWS), k=2)
    np.testing.assert_array_equal(made, [[np.nan, 3], [np.nan, np.inf]])
    np.testing.assert_array_equal(places, [[1, 0], [0, 2]])


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_a_subnormal_number_is_true(dtype):
    small = 1e-310 if dtype == "float64" else 1e-40
    given = np.array([0, -0.0, small, -small, 1, np.nan]).astype(tensorflow.as_dtype(dtype).as_numpy_dtype)
    assert NAMESPACE.cast(tensorflow.constant(given), "bool").numpy().tolist() == [False, False, True, True, True, True]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("direction", ["ASCENDING", "DESCENDING"])
def test_subnormal_numbers_are_sorted_by_their_size(dtype, direction):
    small = 1e-310 if dtype == "float64" else 1e-39
    given = np.array([0, small, -small, -0.0, 2 * small, -1, 1]).astype(tensorflow.as_dtype(dtype).as_numpy_dtype)
    order = NAMESPACE.argsort(tensorflow.constant(given), axis=0, direction=direction, stable=True)
    assert order.numpy().tolist() == ([5, 2, 0, 3, 1, 4, 6] if direction == "ASCENDING" else [6, 4, 1, 0, 3, 2, 5])


def test_a_zero_has_its_sign():
    given = np.array([-0.0, 0.0, -3, 2, np.nan, 1e-40, -1e-40, -np.inf], "float32")
    for made in (NAMESPACE.sign(tensorflow.constant(given)), NAMESPACE.math.sign(tensorflow.constant(given))):
        np.testing.assert_array_equal(made, [0, 0, -1, 1, np.nan, 1, -1, -1])
        assert np.signbit(made)[:4].tolist() == [True, False, True, False]
    assert NAMESPACE.sign(tensorflow.constant([-2, 0])).numpy().tolist() == [-1, 0]


@pytest.mark.parametrize("extreme", ["max", "min"])
def test_nan_wins_among_scattered_rows(extreme):
    scatter = getattr(NAMESPACE, f"tensor_scatter_nd_{extreme}")
    there, rows = np.array([np.nan, 1, 1, 1], "float32"), np.array([2, 5, np.nan, -5, -np.inf], "float32")
    made = scatter(tensorflow.constant(there), tensorflow.constant([[0], [1], [1], [2], [3]]), tensorflow.constant(rows))
    np.testing.assert_array_equal(made, [np.nan, np.nan, 1, 1] if extreme == "max" else [np.nan, np.nan, -5, -np.inf])
    assert scatter(tensorflow.constant([1, 2]), [[0]], [5]).numpy().tolist() == ([5, 2] if extreme == "max" else [1, 2])


def test_erfinv_has_the_digits_of_a_number_near_one():
    for x, value, slope in ERFINV:
        given = tensorflow.constant(x, "float64")
        with tensorflow.GradientTape() as tape:
            tape.watch(given)
            made = NAMESPACE.math.erfinv(given)
        np.testing.assert_allclose([made, tape.gradient(made, given)], [value, slope], rtol=8e-15)


def test_what_is_sorted_wrong_in_a_loop_is_still_found(monkeypatch):
    peer.check(_SORTED_IN_A_LOOP)
    right = tf.sort
    monkeypatch.setattr(tf, "sort", lambda x: right(x)[::-1])
    with pytest.raises(Finding, match="TensorFlow value"):
        peer.check(_SORTED_IN_A_LOOP)


# What differs by NaN, the sign of a zero or subnormal numbers, and is right.
DIFFERENT = {
    "scattered NaN": (
        {"v1": np.ones(2, "float32"), "v2": np.array([np.nan, 3], "float32")},
        [Node("v3", "tensor_scatter", "tf.tensor_scatter_nd_min(v1, [[0], [0]], v2)")], "v3"),
    "order of subnormal numbers": (
        {"v1": np.array([0, 1e-39, 1], "float32")},
        [Node("v2", "argsort", "tf.argsort(v1, axis=0, direction='DESCENDING', stable=True)")], "v2"),
    "sign of a zero": (
        {"v1": np.array([[-0.0, 1], [-0.0, 1], [-0.0, 1]], "float32")},
        [Node("v7", "scanned", "tf.foldr(f1, v1)", [Body(
            "f1", ["v3", "v4"], [Node("v5", "sign", "tf.math.sign(v3)"), Node("v6", "atan2", "tf.math.atan2(v4, v5)")], ["v6"])])],
        "v7"),
    "sign of a subnormal number": (
        {"v1": np.array([1e-40, -1e-40, 3], "float32")},
        [Node("v7", "branched", "tf.cond(tf.reduce_sum(v1) > 0.5, lambda: f1(v1), lambda: f2(v1))", [
            Body("f1", ["v3"], [Node("v5", "sign", "tf.math.sign(v3)")], ["v5"]), Body("f2", ["v4"], [], ["v4"])])],
        "v7"),
    "subnormal numbers in a branch": (
        {"v1": np.array([1e-40] * 64 + [3], "float32")},
        [Node("v7", "branched", "tf.cond(tf.reduce_sum(v1) > 0.5, lambda: f1(v1), lambda: f2(v1))", [
            Body("f1", ["v3"], [Node("v5", "sin", "tf.sin(v3)"), Node("v6", "sign", "tf.math.sign(v5)")], ["v6"]),
            Body("f2", ["v4"], [], ["v4"])])],
        "v7"),
    "quantile of a subnormal number": (
        {"v1": np.array([-1e-40, 1e-40, 1e-45, 0, -0.0, 0.5], "float32")}, [Node("v2", "ndtri", "tf.math.ndtri(v1)")], "v2"),
    # After three iterations one of two neighbouring numbers is whole, and which one differs.
    "a pole that one rounding decides": (
        {"v1": np.array([-1827.9853515625, -1827.9833984375], "float32")},
        [Node("v7", "until", "tf.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, f1(s)), [tf.constant(0), v1])[1]", [Body(
            "f1", ["v3"], [Node("v5", "lgamma", "tf.math.lgamma(v3)")], ["v5"])])],
        "v7"),
    "slope at a subnormal number": (
        {"v1": np.array([1e-39, 2, 0.1], "float32")}, [Node("v2", "relu6", "tf.nn.relu6(v1)")], "v2"),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_is_right_is_no_finding(name):
    given, nodes, result = DIFFERENT[name]
    peer.check(Program({key: (array, "float32") for key, array in given.items()}, nodes, [result]))


def test_a_scattered_extreme_that_is_wrong_is_still_found(monkeypatch):
    given, nodes, result = DIFFERENT["scattered NaN"]
    monkeypatch.setattr(tf, "tensor_scatter_nd_min", lambda x, places, rows: x * 2)
    with pytest.raises(Finding, match="TensorFlow value"):
        peer.check(Program({key: (array, "float32") for key, array in given.items()}, nodes, [result]))


def test_a_slope_that_is_wrong_is_still_found(monkeypatch):
    relu6 = Program({"v1": (np.array([3, 2, 0.1], "float32"), "float32")}, [Node("v2", "relu6", "tf.nn.relu6(v1)")], ["v2"])
    peer.check(relu6)
    right = tf.nn.relu6
    monkeypatch.setattr(tf.nn, "relu6", lambda x: right(x) + 2.0 * (x - tf.stop_gradient(x)))
    with pytest.raises(Finding, match="TensorFlow gradient"):
        peer.check(relu6)


def test_true_of_a_subnormal_number_is_no_finding():
    cast = Node("v2", "cast", "tf.cast(v1, 'bool')")
    peer.check(Program({"v1": (np.array([1e-40, 0], "float32"), "float32")}, [cast], ["v2"]))
