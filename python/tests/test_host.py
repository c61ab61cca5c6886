"""Python in the middle of a program, gradients of one's own over variables, what runs at once inside of a trace."""

import numpy as np
import pytest

import tonnage as tf


def test_python_returns_any_shape_and_gradients_go_through_it():
    @tf.function
    def f(x):
        made = tf.py_function(lambda a: tf.reduce_sum(a) * tf.ones([3]), [x], tf.float32)
        made.set_shape([3])
        return made + 1.0

    with pytest.warns(UserWarning, match="runs op by op"):
        assert f(tf.constant([1.0, 2.0])).numpy().tolist() == [4.0, 4.0, 4.0]

    spec = tf.TensorSpec([2], tf.float32)

    @tf.function
    def planned(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.py_function(lambda a: a * a, [x], spec)
        return y, tape.gradient(y, x)

    y, slope = planned(tf.constant([1.0, 3.0]))
    assert planned.traces == 1
    assert y.numpy().tolist() == [1.0, 9.0] and slope.numpy().tolist() == [2.0, 6.0]
    sinh = tf.function(lambda x: tf.numpy_function(np.sinh, [x], spec))
    np.testing.assert_allclose(sinh(tf.constant([0.0, 1.0])).numpy(), np.sinh([0.0, 1.0]), rtol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="returns 1 values, but expects to see 2"):
        tf.py_function(lambda x: x, [1.0], [tf.float32, tf.float32])


def test_a_gradient_of_its_own_takes_the_variables_that_were_used():
    v, unused = tf.Variable([1.0, 2.0]), tf.Variable(5.0)
    given = []

    @tf.custom_gradient
    def f(x):
        def grad(dy, *, variables):
            given.append(variables)
            return dy * 7.0, [dy * 5.0 for _ in variables]

        return x * v, grad

    def slopes(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, [x, v, unused])

    for run in (slopes, tf.function(slopes)):
        by_x, by_v, nothing = run(tf.constant([2.0, 3.0]))
        assert by_x.numpy().tolist() == [7.0, 7.0] and by_v.numpy().tolist() == [5.0, 5.0] and nothing is None
    assert all(len(used) == 1 and used[0] is v for used in given)

    @tf.custom_gradient
    def of_nothing():
        return v * 2.0, lambda dy, variables=None: ([], [dy * 11.0])

    with tf.GradientTape() as tape:
        y = of_nothing()
    assert tape.gradient(y, v).numpy().tolist() == [11.0, 11.0]


def test_init_scope_runs_at_once():
    seen = []

    @tf.function
    def f(x):
        with tf.init_scope():
            seen.append((tf.executing_eagerly(), float(tf.constant(2.0) + 1.0)))
        seen.append(tf.executing_eagerly())
        return x * 2.0

    assert float(f(tf.constant(4.0))) == 8.0
    assert seen == [(True, 3.0), False]


def test_case_holds_what_it_promises():
    x = tf.constant(1)
    pairs = [(x < 3, lambda: tf.constant(1)), (x < 10, lambda: tf.constant(2))]
    assert tf.case(pairs).numpy() == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than 1"):
        tf.case(pairs, exclusive=True, default=lambda: tf.constant(3))
    with pytest.raises(tf.errors.InvalidArgumentError, match="None of conditions"):
        tf.case([(x > 3, lambda: tf.constant(1)), (x > 10, lambda: tf.constant(2))])


def test_map_fn_says_what_it_was_not_told():
    rows = tf.constant([1, 2, 3])
    with pytest.raises(tf.errors.InvalidArgumentError, match="fn_output_signature"):
        tf.map_fn(lambda x: tf.cast(x, tf.float32) * 0.5, rows)
    assert tf.map_fn(lambda x: tf.cast(x, tf.float32) * 0.5, rows,
                     fn_output_signature=tf.float32).numpy().tolist() == [0.5, 1.0, 1.5]


def test_other_frameworks_tensors_come_and_go():
    x = tf.constant([1.0, 2.0])
    assert np.from_dlpack(x).tolist() == [1.0, 2.0]
    back = tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(x))
    assert back.numpy().tolist() == [1.0, 2.0]
    source = np.arange(6, dtype=np.int64).reshape(2, 3)
    made = tf.experimental.dlpack.from_dlpack(source)
    source[:] = 0
    assert made.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]  # a copy: nobody writes planned memory


def test_profiles_and_reports_are_files(tmp_path):
    tf.profiler.experimental.start(str(tmp_path / "log"))
    with pytest.raises(tf.errors.AlreadyExistsError):
        tf.profiler.experimental.start(str(tmp_path / "log"))
    tf.function(lambda x: tf.tanh(x) @ x)(tf.random.normal([64, 64]))
    tf.profiler.experimental.stop()
    assert sorted(p.name for p in (tmp_path / "log").iterdir()) == ["memory.html", "memory.trace.json"]
    with pytest.raises(tf.errors.UnavailableError):
        tf.profiler.experimental.stop()
    plan = tf.memory.plan(lambda x: tf.tanh(x) @ x, tf.TensorSpec([64, 64]))
    for name in ("plan.html", "plan.csv", "plan.json", "plan.txt", "plan.trace.json"):
        plan.save(str(tmp_path / name))
        assert (tmp_path / name).stat().st_size > 100
    assert "<script" in plan.html() and "peak" in plan._repr_html_() and "▲" in plan.chart()
    held = tf.constant(np.ones([64, 64], "f4"))
    tf.memory.report(tmp_path / "now.csv")
    assert "test_host.py" in (tmp_path / "now.csv").read_text()
    with tf.memory.record(tmp_path / "run.html") as recorded:
        held = held + 1.0
    assert recorded[0].peak >= 2 * 64 * 64 * 4 and (tmp_path / "run.html").exists()


def test_a_limit_set_the_way_of_tensorflow_holds():
    device = tf.config.list_physical_devices("CPU")[0]
    limits = [tf.config.LogicalDeviceConfiguration(memory_limit=8)]
    tf.config.set_logical_device_configuration(device, limits)
    try:
        assert tf.config.get_logical_device_configuration(device)[0].memory_limit == 8
        with pytest.raises(tf.errors.ResourceExhaustedError, match="limit"):
            tf.tanh(tf.random.normal([4 << 20])).numpy()
    finally:
        tf.config.set_logical_device_configuration(device, [tf.config.LogicalDeviceConfiguration()])
    assert tf.tanh(tf.random.normal([4 << 20])).shape == [4 << 20]
