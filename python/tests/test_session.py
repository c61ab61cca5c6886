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


def test_an_update_runs_when_it_is_fetched_and_not_with_what_was_built_after_it():
    with v1.Graph().as_default():
        v = v1.get_variable("v", [], initializer=v1.constant_initializer(5.0))
        doubled, more = v1.assign(v, v * 2), v1.assign_add(v, 1.0)
        plus = v + 10.0
        with v1.Session() as session:
            session.run(v.initializer)
            assert session.run(plus) == 15.0 and session.run(plus) == 15.0
            assert session.run(doubled) == 10.0 and session.run(more) == 11.0 and session.run(v) == 11.0
            session.run([more, v1.group(v1.assign_add(v, 5.0))])
            assert session.run(v) == 17.0  # both, one after the other


def test_what_depends_on_an_update_runs_it_first():
    with v1.Graph().as_default():
        v = v1.get_variable("v", [], initializer=v1.zeros_initializer())
        w = v1.get_variable("w", [], initializer=v1.zeros_initializer())
        up = v1.group(v1.assign_add(v, 1.0), v1.assign_add(w, 2.0))
        with v1.control_dependencies([up]):
            seen, nothing, other = tf.identity(v), v1.no_op(), tf.identity(tf.constant(7.0))
        outside = tf.identity(v)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            assert session.run(seen) == 1.0 and session.run(other) == 7.0 and session.run(outside) == 2.0
            session.run(nothing)
            assert session.run([v, w]) == [3.0, 6.0]


def test_names_are_made_unique_and_found_again():
    with v1.Graph().as_default() as graph:
        assert [v1.Variable(1.0, name="v").name for _ in range(2)] == ["v:0", "v_1:0"]
        names = []
        for _ in range(2):
            with v1.variable_scope(None, default_name="layer"):
                names.append(v1.get_variable("v", [1]).name)
        assert names == ["layer/v:0", "layer_1/v:0"]
        x = v1.placeholder(tf.float32, [], name="in")
        y = tf.identity(x + 1.0, name="out")
        assert graph.get_tensor_by_name("out:0") is y
        v1.add_to_collection("mine", 3)
        assert v1.get_collection("mine") == [3]
        assert len(v1.get_collection(v1.GraphKeys.GLOBAL_VARIABLES)) == 4
        with v1.Session() as session:
            assert session.run("out:0", {"in:0": 2.0}) == 3.0


def test_defaults_questions_and_values_of_sessions():
    with v1.Graph().as_default():
        p = v1.placeholder_with_default(tf.constant([1.0, 2.0]), [2])
        a, b = (v1.get_variable(n, [], initializer=v1.zeros_initializer()) for n in "ab")
        asked = v1.is_variable_initialized(a)
        with v1.Session() as session:
            assert session.run(p * 2).tolist() == [2.0, 4.0] and session.run(p * 2, {p: [5.0, 6.0]}).tolist() == [10.0, 12.0]
            assert session.run(asked) is False
            session.run(a.initializer)  # that one alone
            assert session.run(asked) is True
            assert session.run(v1.report_uninitialized_variables()).tolist() == ["b"]
            b.load(7.0, session)
            assert session.run(b) == 7.0
            with pytest.raises(TypeError, match="only placeholders can be fed"):
                session.run(p * 2, {p * 2: [1.0, 1.0]})


@pytest.mark.parametrize("name, arguments, expected", [
    ("GradientDescentOptimizer", (0.1,), 0.64), ("AdamOptimizer", (0.1,), 0.8004), ("MomentumOptimizer", (0.1, 0.9), 0.46),
    ("AdagradOptimizer", (0.1,), 0.8347), ("RMSPropOptimizer", (0.1,), 0.6873),
])
def test_optimizers_are_ops(name, arguments, expected):
    with v1.Graph().as_default():
        w = v1.get_variable("w", [], initializer=v1.constant_initializer(1.0))
        step = v1.train.get_or_create_global_step()
        op = getattr(v1.train, name)(*arguments).minimize(w * w, global_step=step)
        loss = w * w  # built after the update: fetching it trains nothing
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(op)
            session.run(loss)
            session.run(op)
            assert round(float(session.run(w)), 4) == expected and session.run(step) == 2


def test_placeholders_of_one_batch_go_together():
    with v1.Graph().as_default():
        x, y = v1.placeholder(tf.float32, [None, 2]), v1.placeholder(tf.float32, [None])
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(x, 1) - y))
        with v1.Session() as session:
            for n in (1, 4):
                assert session.run(loss, {x: [[1.0, 2.0]] * n, y: [3.0] * n}) == 0.0
