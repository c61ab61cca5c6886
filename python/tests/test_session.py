"""Programs in the manner of TensorFlow 1."""

import numpy as np
import pytest

import tonnage as tf

v1 = tf.compat.v1


def test_a_graph_is_built_first_and_run_later():
    graph = v1.Graph()
    with graph.as_default():
        a = v1.placeholder(tf.int64, shape=[3])
        b = v1.placeholder(tf.int64, shape=[3], name="b")
        c = a + b
        assert c.is_symbolic and not tf.executing_eagerly()
    with v1.Session(graph=graph) as session:
        result = session.run(c, feed_dict={a: [1, 2, 3], b: [4, 5, 6]})
        assert str(result) == "[5 7 9]"
        total, both = session.run([tf.reduce_sum if False else c, {"x": a}], {a: [1, 1, 1], "b:0": [0, 0, 0]})
        assert total.tolist() == [1, 1, 1] and both["x"].tolist() == [1, 1, 1]
        with pytest.raises(ValueError):
            session.run(c, {a: [1, 2], b: [1, 2, 3]})
        with pytest.raises(ValueError):
            session.run(c, {a: [1, 2, 3]})
    with pytest.raises(RuntimeError):
        session.run(c, {a: [1, 2, 3], b: [4, 5, 6]})


def test_a_session_over_tensors_that_have_values_gives_them():
    with v1.Session() as session:
        large = session.run(tf.constant(1.0, shape=[1000, 1000, 1000]))
        assert large.strides == (0, 0, 0) and type(large) is np.ndarray
        v = tf.Variable(tf.zeros([1000, 1000, 1000]))
        assert session.run(v1.global_variables_initializer()) is None
        assert session.run(v).strides == (0, 0, 0) and v.bytes == 0


def test_variables_of_a_graph_live_in_sessions():
    graph = v1.Graph()
    with graph.as_default():
        v = v1.get_variable("v", [2], initializer=v1.zeros_initializer())
        x = v1.placeholder(tf.float32, [None, 2])
        update = v.assign_add(tf.reduce_sum(x, 0))
        init = v1.global_variables_initializer()
    with v1.Session(graph=graph) as session:
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(v)
        session.run(init)
        for n in [1, 2]:
            session.run(update, {x: np.ones([n, 2])})
        assert session.run(v).tolist() == [3.0, 3.0]
    with v1.Session(graph=graph) as other:
        other.run(init)
        assert other.run(v).tolist() == [0.0, 0.0]


def test_scopes_tell_variables_apart():
    with v1.variable_scope("one"):
        a = v1.get_variable("w", [2, 3])
        with pytest.raises(ValueError, match="already exists"):
            v1.get_variable("w", [2, 3])
    with v1.variable_scope("two"):
        b = v1.get_variable("w", [2, 3])
    assert a.name == "one/w:0" and b.name == "two/w:0" and not (a.numpy() == b.numpy()).all()
    with v1.variable_scope("one", reuse=True):
        assert v1.get_variable("w", [2, 3]) is a
        with pytest.raises(ValueError, match="does not exist"):
            v1.get_variable("other", [1])
    with v1.variable_scope("one", reuse=v1.AUTO_REUSE):
        assert v1.get_variable("w") is a and v1.get_variable("new", [1]).shape == (1,)
    v1.reset_default_graph()


def test_containers_free_their_variables():
    before = tf.memory.info()["current"]
    with v1.container("box"):
        v = v1.get_variable("held", initializer=tf.constant(np.ones([1000, 100], "f4")))
        v.assign_add(np.ones([1000, 100], "f4"))
    assert tf.memory.info()["current"] >= before + 400_000
    del v
    v1.reset_container("box")
    assert tf.memory.info()["current"] <= before + 4096


def test_gradients_of_a_graph():
    graph = v1.Graph()
    with graph.as_default():
        x = v1.placeholder(tf.float32, [])
        y = x * x
        slope = tf.gradients(y, x)[0]
    with v1.Session(graph=graph) as session:
        assert session.run(slope, {x: 4.0}) == 8.0


def test_eager_execution_can_be_disabled():
    v1.disable_eager_execution()
    try:
        c = tf.constant(1.0) + tf.constant(2.0)
        assert c.is_symbolic
        with v1.Session() as session:
            assert session.run(c) == 3.0 and c.eval() == 3.0
    finally:
        v1.enable_eager_execution()
        v1.reset_default_graph()
    assert (tf.constant(1.0) + 1.0).numpy() == 2.0


def test_training_in_a_graph():
    graph = v1.Graph()
    with graph.as_default():
        w = v1.get_variable("w", initializer=tf.constant([5.0, -3.0]))
        loss = tf.reduce_sum(w * w)
        step = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        init = v1.global_variables_initializer()
    with v1.Session(graph=graph) as session:
        session.run(init)
        first = session.run(loss)
        for _ in range(30):
            assert session.run(step) is None
        assert session.run(loss) < 1e-3 * first
