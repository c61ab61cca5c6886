"""A panic of the Rust code reaches Python as an ``Exception``, at every kind of entry, and leaves the package usable."""

import numpy as np
import pytest

import tonnage as tf
from tonnage import _tonnage as _t


class Panics:
    """Panics in Rust as soon as Rust asks it for anything: the entry that asked panics in turn."""

    def __getattr__(self, name):
        _t.panic_for_tests(f"asked for {name}")

    def __array__(self, *args, **kwargs):
        _t.panic_for_tests("asked for an array")

    __index__ = __float__ = __int__ = __len__ = __iter__ = __getitem__ = __bool__ = __array__


def panics(*args, **kwargs):
    _t.panic_for_tests("called")


X = tf.constant([[1.0, 2.0], [3.0, 4.0]])
SPEC = tf.TensorSpec([2, 2], tf.float32)

ENTRIES = {
    "a function": lambda: _t.panic_for_tests("here"),
    "a conversion": lambda: _t.to_tensor(Panics(), None, None),
    "a method": lambda: _t.Function(panics, None, None, False, True, False).trace(X),
    "a call": lambda: _t.Function(panics, None, None, False, True, False)(X),
    "an operator": lambda: X + Panics(),
    "a reflected operator": lambda: Panics() - X,
    "a comparison": lambda: X < Panics(),
    "an index": lambda: X[Panics()],
    "a constructor": lambda: _t.DType(Panics()),
    "an op": lambda: tf.add(X, Panics()),
    "an op of several": lambda: tf.concat([X, Panics()], 0),
    "a traced function": lambda: tf.function(lambda x: x + Panics())(X),
    "a planned function": lambda: tf.function(lambda x: tf.py_function(panics, [x], SPEC))(X),
    "a budget": lambda: tf.function(lambda x: x, budget=Panics())(X),
    "a branch": lambda: tf.function(lambda c: tf.cond(c, panics, lambda: X))(tf.constant(True)),
    "a loop": lambda: tf.function(lambda x: tf.while_loop(lambda s: tf.constant(True), panics, [x]))(X),
    "a map": lambda: tf.map_fn(panics, X),
    "a gradient": lambda: tf.custom_gradient(panics)(X),
    "a checkpoint": lambda: tf.recompute_grad(panics)(X),
    "a variable": lambda: tf.Variable(X).assign(Panics()),
    "an iterator": lambda: next(iter(tf.data.Dataset.from_tensors(X).map(panics))),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_panic_is_an_exception(entry, capfd):
    with pytest.raises(Exception) as caught:  # noqa: B017, PT011: that it is one is what is asked
        ENTRIES[entry]()
    assert isinstance(caught.value, tf.errors.OpError)
    # A callback's panic is the callback's error; any other is ours.
    assert "panicked" in str(caught.value) or isinstance(caught.value, tf.errors.InternalError)
    assert any(word in str(caught.value) for word in ("asked for", "called", "here"))
    # What comes after is as before.
    assert not _t.is_symbolic()
    np.testing.assert_array_equal(tf.function(lambda x: x @ x)(X), X.numpy() @ X.numpy())


def test_a_panic_says_whose_bug_it_is():
    with pytest.raises(tf.errors.InternalError, match="^index out of range; this is a bug in Tonnage, please report it$") as caught:
        _t.panic_for_tests("index out of range")
    assert caught.value.error_code == 13 and caught.value.node_def is None
    assert str(tf.errors.InternalError(None, None, "text")) == "text"
    with pytest.raises(BaseException) as caught:
        _t.panic_for_tests("x")
    assert type(caught.value).__name__ == "PanicException"


def test_the_hook_is_not_public():
    assert not hasattr(tf, "panic_for_tests") and not hasattr(tf.errors, "panic_for_tests")
