"""Modules, scopes, assertions, nested values."""

import pytest

import tonnage as tf


def test_modules_find_what_they_hold():
    class Inner(tf.Module):
        def __init__(self):
            super().__init__(name="inner")
            with self.name_scope:
                self.w = tf.Variable(1.0, name="w")

    class Outer(tf.Module):
        def __init__(self):
            super().__init__()
            self.parts = [Inner(), {"more": Inner()}]
            self.fixed = tf.Variable(2.0, trainable=False)
            self.same = self.parts[0].w

    outer = Outer()
    assert len(outer.variables) == 3 and len(outer.trainable_variables) == 2 and len(outer.submodules) == 2
    assert outer.parts[0].w.name == "inner/w:0" and outer.name == "outer"


def test_name_scopes_nest():
    with tf.name_scope("a"), tf.name_scope("b"):
        assert tf.Variable(1.0, name="v").name == "a/b/v:0"


def test_assertions():
    tf.debugging.assert_equal([1, 2], [1, 2])
    tf.debugging.assert_near([1.0], [1.0 + 1e-7])
    tf.debugging.assert_shapes([(tf.zeros([2, 3]), ("n", 3)), (tf.zeros([2]), ("n",))])
    for fails in [lambda: tf.debugging.assert_less([1, 5], [2, 2]), lambda: tf.debugging.assert_positive([0]),
                  lambda: tf.debugging.check_numerics(tf.constant([float("nan")]), "bad")]:
        with pytest.raises(tf.errors.InvalidArgumentError):
            fails()
    with pytest.raises(ValueError):
        tf.debugging.assert_rank(tf.zeros([2]), 2)


def test_assertions_hold_in_functions():
    @tf.function
    def f(x):
        tf.debugging.assert_greater(x, 0.0, message="too small")
        return tf.sqrt(x)

    assert f(tf.constant(4.0)).numpy() == 2.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="too small"):
        f(tf.constant(-4.0))


def test_nests():
    made = tf.nest.map_structure(lambda a, b: a + b, {"x": 1, "y": [2, 3]}, {"x": 10, "y": [20, 30]})
    assert made == {"x": 11, "y": [22, 33]} and tf.nest.flatten({"b": 1, "a": (2, 3)}) == [2, 3, 1]
    with pytest.raises(ValueError):
        tf.nest.map_structure(lambda a, b: a, [1, 2], [1])


def test_variables_update_in_place_and_keep_their_type():
    v = tf.Variable([1.0, 2.0, 3.0], name="v")
    v.assign([3.0, 2.0, 1.0]).assign_add([1.0, 1.0, 1.0])
    v.scatter_update(tf.IndexedSlices(tf.constant([9.0]), tf.constant([1])))
    assert v.numpy().tolist() == [4.0, 9.0, 2.0] and (v + 1.0).numpy().tolist() == [5.0, 10.0, 3.0]
    assert (1.0 - v)[0].numpy() == -3.0 and v[1].numpy() == 9.0 and len(v) == 3
    assert repr(v) == "<tf.Variable 'v:0' shape=(3,) dtype=float32, numpy=array([4., 9., 2.], dtype=float32)>"
    with pytest.raises(ValueError, match="Shape mismatch"):
        v.assign([1.0])
    with pytest.raises((TypeError, ValueError)):
        v.assign_add(tf.constant([1, 2, 3]))
    assert tf.Variable(lambda: tf.ones([2])).numpy().tolist() == [1.0, 1.0]


def test_devices_that_are_not_there_warn_once():
    from tonnage import _notices

    _notices._told.discard(("device", "cuda:0"))
    with pytest.warns(UserWarning, match="GPU"):
        with tf.device("/GPU:0"):
            assert (tf.constant(1.0) + 1.0).numpy() == 2.0
    assert tf.config.list_physical_devices("GPU") == []
