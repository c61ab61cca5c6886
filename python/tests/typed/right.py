"""Programs as people write them. Type checkers accept every line, and each function runs.

``assert_type`` says what a type checker has to find; as the programs run, the test compares it with what is there.
"""

import io
import pathlib
from typing import Any, assert_type

import numpy as np
import tonnage as tf


def tensors_are_made_of_what_people_have() -> None:
    assert_type(tf.constant(1.0), tf.Tensor)
    tf.constant([[1, 2], [3, 4]], dtype=tf.float32)
    tf.constant(((1.0, 2.0), [3.0, 4.0]), tf.float64, shape=[2, 2], name="c")
    tf.constant(np.ones((2, 3)), dtype="float32")
    tf.convert_to_tensor([np.float32(1.0), 2.0, tf.constant(3.0)], dtype=np.float32)
    rows: list[list[float]] = [[1.0, 2.0], [3.0, 4.0]]
    tf.constant(rows)
    tf.constant(range(3))
    tf.Variable(lambda: tf.ones([2]))
    tf.Variable(np.zeros(3, "float32"), trainable=False, name="v", dtype=tf.float32)
    assert_type(tf.zeros([2, 3], tf.int32), tf.Tensor)
    tf.ones(tf.constant([2, 3]))
    tf.fill([2], 0.5)
    tf.zeros((4,), dtype="bool")
    tf.ones(tf.zeros([2, 3]).shape)
    tf.eye(3, batch_shape=[2])
    tf.range(10)
    tf.range(0.0, 1.0, 0.25)
    tf.linspace(0.0, 1.0, 5)
    assert_type(tf.float32, tf.DType)
    assert_type(tf.as_dtype("int64").size, int)
    assert_type(tf.is_tensor([1]), bool)


def operators_take_anything_on_either_side() -> None:
    x, v = tf.constant([1.0, 2.0, 3.0]), tf.Variable([1.0, 2.0, 3.0])
    for y in (x + 1, 1 - x, x * 2.0, 2.0 / x, x // 2.0, x % 2.0, x ** 2, 2.0 ** x, -x, +x, abs(x), x + v, v + x, v * [1.0, 2.0, 3.0]):
        assert_type(y, tf.Tensor)
    assert_type(x - np.ones(3, "float32"), tf.Tensor)
    assert_type([1.0, 1.0, 1.0] + x, tf.Tensor)
    assert_type(v - 1.0, tf.Tensor)
    assert_type(1.0 - v, tf.Tensor)
    assert_type(-v, tf.Tensor)
    assert_type(x > 1.0, tf.Tensor)
    assert_type(v <= x, tf.Tensor)
    assert_type(x == 2.0, tf.Tensor)
    assert_type(v != x, tf.Tensor)
    assert_type((x > 1.0) & ~(x > 2.0) | (x < 0.0), tf.Tensor)
    assert_type(tf.ones([2, 3]) @ tf.ones([3, 2]), tf.Tensor)
    assert_type(tf.constant([5, 6]) << 1, tf.Tensor)
    x += 1.0
    x *= v
    assert_type(x, tf.Tensor)


def tensors_are_indexed_read_and_printed() -> None:
    x = tf.reshape(tf.range(24), [2, 3, 4])
    for part in (x[0], x[:, 1:], x[..., -1], x[tf.newaxis, 0, ::2], x[0][1][2], x[1, tf.constant(2)], x[:, :, 0]):
        assert_type(part, tf.Tensor)
    assert_type(x.shape, tf.TensorShape)
    assert_type(x.dtype, tf.DType)
    batch, *rest = x.shape
    rows, columns = x.shape[0] * 2, x.shape[-1] + 1
    tf.zeros([rows, columns, batch, *rest])
    tf.reshape(x, [-1, x.shape[-1]])
    tf.reshape(x, [tf.shape(x)[0], -1])
    assert x.shape == (2, 3, 4) and x.shape.as_list()[0] + 1 == 3 and x.shape[1:].rank == 2 and len(x.shape) == 3
    first, second = x
    assert_type(first, tf.Tensor)
    for row in x:
        assert_type(row, tf.Tensor)
    total = tf.reduce_sum(x)
    assert_type(int(total), int)
    assert_type(float(total), float)
    if total > 3 and bool(total):
        assert f"{float(total):.1f} {total} {total:d}"
    array = x.numpy()
    assert array.mean() == 11.5 and np.asarray(x).sum() == 276 and np.sum(x.numpy()[0]) >= 0 and [10, 20, 30][tf.constant(1)] == 20
    assert len(x) == 2 and x.ndim == 3
    assert np.zeros(x.shape).shape == x.shape and 3 in x.shape and x.shape.index(4) == 2 and list(reversed(x.shape)) == [4, 3, 2]
    assert np.random.default_rng(1).normal(size=x.shape).shape == (2, 3, 4)
    assert memoryview(x).nbytes == 96 and np.from_dlpack(x).sum() == 276


def ops_have_the_arguments_of_tensorflow() -> None:
    x = tf.random.normal([4, 6], mean=0.0, stddev=2.0, seed=1)
    assert_type(tf.reduce_mean(x, axis=[0, 1], keepdims=True), tf.Tensor)
    tf.reduce_max(x, -1)
    tf.argmax(x, axis=1, output_type=tf.int32)
    assert_type(tf.split(x, 2), list[tf.Tensor])
    tf.split(x, [2, 4], axis=1)
    assert_type(tf.unstack(x), list[tf.Tensor])
    tf.concat([x, x], axis=0)
    tf.concat((x, np.ones((1, 6), "float32")), 0)
    tf.stack([x[0], [1.0] * 6, np.zeros(6, "float32")], axis=1)
    tf.transpose(x, perm=[1, 0])
    tf.expand_dims(x, 0)
    tf.squeeze(tf.ones([1, 2, 1]), axis=[0, 2])
    tf.tile(x, [2, 1])
    tf.pad(x, [[1, 1], [0, 0]], constant_values=-1.0)
    tf.gather(x, [0, 2], axis=1)
    tf.gather_nd(x, [[0, 1], [2, 3]])
    tf.where(x > 0.0, x, 0.0)
    assert_type(tf.where([True, False]), tf.Tensor)
    tf.one_hot([0, 2], depth=3, dtype=tf.float32)
    tf.cast(x, "int32")
    tf.clip_by_value(x, -1.0, 1.0)
    clipped, norm = tf.clip_by_global_norm([x, None, x], 1.0)
    assert_type(norm, tf.Tensor)
    assert len(clipped) == 3
    tf.matmul(x, x, transpose_b=True)
    tf.einsum("ij,kj->ik", x, x)
    tf.tensordot(x, x, axes=[[1], [1]])
    tf.maximum(x, 0.0)
    tf.add_n([x, x])
    values, indices = tf.math.top_k(x, k=2)
    assert_type(values, tf.Tensor)
    assert_type(tf.math.top_k(x).indices, tf.Tensor)
    assert_type(tf.unique([1, 1, 2]).y, tf.Tensor)
    assert_type(tf.nn.softmax(x, axis=-1), tf.Tensor)
    tf.nn.relu(features=x)
    tf.nn.dropout(x, rate=0.5, seed=3)
    tf.nn.conv2d(tf.ones([1, 8, 8, 3]), tf.ones([3, 3, 3, 4]), strides=2, padding="SAME")
    tf.nn.conv2d(tf.ones([1, 8, 8, 3]), tf.ones([3, 3, 3, 4]), strides=[1, 2, 2, 1], padding="VALID")
    tf.nn.max_pool2d(tf.ones([1, 8, 8, 3]), ksize=2, strides=2, padding="VALID")
    tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1, 2, 3], logits=x)
    mean, variance = tf.nn.moments(x, axes=[0])
    assert_type(variance, tf.Tensor)
    tf.math.log1p(tf.abs(x))
    tf.math.is_nan(x)
    tf.math.cumsum(x, axis=1, exclusive=True)
    tf.linalg.norm(x, ord=2, axis=1)
    assert_type(tf.linalg.qr(x), tuple[tf.Tensor, tf.Tensor])
    s, u, v = tf.linalg.svd(x)
    tf.linalg.solve(tf.eye(2), [[1.0], [2.0]])
    tf.signal.hann_window(8)
    tf.bitwise.bitwise_and([5], [3])
    tf.random.set_seed(1)
    tf.random.uniform((2,), 0, 10, dtype=tf.int32)
    tf.random.stateless_normal([2], seed=[1, 2])
    tf.random.Generator.from_seed(1).normal([2])
    tf.sort(x, direction="DESCENDING")
    tf.sequence_mask([1, 2], 3)
    tf.debugging.assert_equal(tf.constant(1), 1, message="same")
    tf.meshgrid([1, 2], [3, 4], indexing="ij")
    tf.print("sum", tf.reduce_sum(x), summarize=2, output_stream=io.StringIO())


def variables_are_updated_in_place() -> None:
    v = tf.Variable(tf.zeros([3]), name="v")
    v.assign([1.0, 2.0, 3.0]).assign_add(tf.ones([3]))
    v.assign_sub(np.ones(3, "float32"))
    v[0].assign(5.0)
    v.scatter_update(tf.IndexedSlices(tf.constant([9.0]), tf.constant([1])))
    assert_type(v.read_value(), tf.Tensor)
    assert_type(v.name, str)
    assert_type(v.trainable, bool)
    assert_type(v.shape, tf.TensorShape)
    names: dict[str, tf.Variable] = {v.name: v}
    assert tf.reduce_sum(names["v:0"]).numpy() > 0 and v.numpy().tolist()[0] == 5.0


def gradients_come_as_the_sources_are_nested() -> None:
    x, w = tf.constant(3.0), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = w * x * x
    assert_type(tape, tf.GradientTape)
    slopes = tape.gradient(y, [x, w])
    assert float(slopes[0]) == 12.0 and slopes[1] * 2.0 == 18.0
    with tf.GradientTape(persistent=True, watch_accessed_variables=False) as outer:
        outer.watch([x])
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x ** 3
        slope = inner.gradient(y, x)
    assert float(outer.gradient(slope, x)) == 18.0
    by_name = outer.gradient(y, {"x": x}, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert -by_name["x"] < 0.0
    with tf.GradientTape() as tape, tape.stop_recording():
        assert tape.watched_variables() == ()

    @tf.custom_gradient
    def clipped(x: tf.Tensor) -> tuple[tf.Tensor, Any]:
        return x, lambda dy: tf.clip_by_value(dy, -1.0, 1.0)

    assert_type(clipped(x), tf.Tensor)

    @tf.recompute_grad
    def block(x: tf.Tensor) -> tf.Tensor:
        return tf.nn.tanh(x)

    assert_type(block(x), tf.Tensor)
    tf.stop_gradient(x)


def functions_keep_the_types_of_what_they_are_made_of() -> None:
    @tf.function
    def plain(x: tf.Tensor, scale: float = 1.0) -> tf.Tensor:
        return x * scale

    @tf.function(budget="1MiB", exact=True, spill=False)
    def limited(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return x, x + 1.0

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)], autograph=False)
    def signed(x):
        return tf.reduce_sum(x)

    x = tf.ones([2, 2])
    assert_type(plain(x), tf.Tensor)
    assert_type(plain(x, scale=2.0), tf.Tensor)
    first, second = limited(x)
    assert_type(second, tf.Tensor)
    signed(x)
    doubled = tf.function(lambda x: x * 2.0, reduce_retracing=True, budget=1 << 20)
    doubled(x)
    assert_type(plain.plan(x).peak, int)
    assert plain.last_run()["used"] == plain.last_run()["predicted"]
    concrete = plain.get_concrete_function(tf.TensorSpec([2, 2]))
    concrete(x)
    assert isinstance(concrete.graph, str) and plain.experimental_get_tracing_count() > 0 and callable(plain.python_function)

    class Scale:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @tf.function
        def __call__(self, x: tf.Tensor) -> tf.Tensor:
            return x * self.factor

        @tf.function(budget="1MiB")
        def twice(self, x: tf.Tensor, times: int = 2) -> tf.Tensor:
            return x * self.factor * float(times)

    scale = Scale(2.0)
    assert_type(scale.twice(x, times=3), tf.Tensor)
    assert_type(scale.twice.plan(x).peak, int)
    scale(x)


def control_flow_takes_callables() -> None:
    x = tf.constant([1.0, 2.0, 3.0])
    assert tf.cond(tf.reduce_sum(x) > 1.0, lambda: x * 2.0, lambda: x).shape == [3]
    tf.case([(tf.constant(True), lambda: 1.0)], default=lambda: 2.0)
    tf.switch_case(tf.constant(1), [lambda: 1.0, lambda: 2.0])
    i, total = tf.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t + x), (tf.constant(0), tf.zeros([3])), maximum_iterations=10)
    assert int(i) == 3
    tf.map_fn(lambda r: r * 2.0, x)
    tf.map_fn(lambda r: (r, r + 1.0), x, fn_output_signature=(tf.float32, tf.float32))
    tf.scan(lambda a, r: a + r, x, initializer=0.0)
    tf.foldl(lambda a, r: a + r, x)
    tf.vectorized_map(lambda r: r + 1.0, x)
    array = tf.TensorArray(tf.float32, size=2)
    array = array.write(0, 1.0).write(1, 2.0)
    assert_type(array.stack(), tf.Tensor)
    assert tf.nest.flatten({"a": 1, "b": [2, 3]}) == [1, 2, 3]
    tf.nest.map_structure(lambda a, b: a + b, [1, 2], [3, 4])
    assert tf.py_function(lambda a: a + 1.0, inp=[x], Tout=tf.float32).shape == [3]
    tf.numpy_function(np.sin, [x], tf.float32)
    with tf.name_scope("outer"), tf.device("/CPU:0"), tf.control_dependencies([x]), tf.init_scope():
        tf.no_op()


def datasets_are_chains(folder: pathlib.Path) -> None:
    features, labels = np.ones((10, 3), "float32"), np.arange(10)
    data = tf.data.Dataset.from_tensor_slices((features, labels))
    data = data.shuffle(10, seed=1).map(lambda x, y: (x * 2.0, y), num_parallel_calls=tf.data.AUTOTUNE)
    data = data.batch(4, drop_remainder=True).repeat(2).prefetch(tf.data.AUTOTUNE).cache()
    assert_type(data, tf.data.Dataset)
    for x, y in data:
        assert x.shape == (4, 3) and y.dtype == tf.int64
    for step, (x, y) in enumerate(data.take(1)):
        assert step == 0
    assert_type(len(data), int)
    x, y = next(iter(data))
    assert next(data.as_numpy_iterator())[0].shape == (4, 3)
    numbers = tf.data.Dataset.range(5).filter(lambda i: i > 1).skip(1).enumerate()
    assert [int(i) for i, _ in numbers] == [0, 1]
    zipped = tf.data.Dataset.zip((tf.data.Dataset.range(2), tf.data.Dataset.range(2)))
    assert zipped.reduce(tf.constant(0, tf.int64), lambda s, pair: s + pair[0] + pair[1]) == 2

    def generate():
        yield 1.0

    tf.data.Dataset.from_generator(generate, output_signature=tf.TensorSpec([], tf.float32))
    path = folder / "lines.txt"
    path.write_text("a\nb\n")
    assert len(list(tf.data.TextLineDataset(str(path)))) == 2


def memory_is_planned_limited_and_told(folder: pathlib.Path) -> None:
    def f(x: tf.Tensor) -> tf.Tensor:
        return tf.tanh(x @ x)

    plan = tf.memory.plan(f, tf.TensorSpec([64, 64]))
    assert_type(plan.peak, int)
    assert plan.steps()[0]["op"] and isinstance(plan.chart(columns=60), str)
    assert_type(tf.memory.explain(f, tf.TensorSpec([64, 64])), str)
    tf.memory.budget(f, "1MiB")(tf.ones([4, 4]))
    assert_type(tf.memory.max_batch(tf.function(lambda x: tf.tanh(x)), 1 << 20, tf.TensorSpec([None, 64])), int)
    with tf.memory.record() as recorded:
        f(tf.ones([4, 4]))
    assert recorded[0].peak > 0
    with tf.memory.limit("1GiB"):
        info = tf.memory.info()
    assert info["current"] >= 0
    tf.memory.set_limit(None)
    tf.memory.report(folder / "report.html", f, tf.TensorSpec([8, 8]))
    result, events = tf.memory.trace(f, tf.ones([4, 4]))
    with tf.memory.variables_in_files():
        tf.Variable(tf.zeros([4]))
    try:
        tf.function(f, budget=16)(tf.ones([4, 4]))
    except tf.errors.ResourceExhaustedError as error:
        assert_type(error.message, str)


def programs_of_tensorflow_1_are_typed_too() -> None:
    with tf.compat.v1.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, shape=[None])
        w = tf.compat.v1.get_variable("w", shape=[], initializer=tf.compat.v1.ones_initializer())
        y = tf.compat.v1.reduce_sum(x * w)
        session.run(tf.compat.v1.global_variables_initializer())
        assert session.run(y, feed_dict={x: [1.0, 2.0]}) == 3.0
    assert tf.compat.v2.constant(1.0).numpy() == 1.0
    assert tf.config.list_physical_devices("CPU")[0].device_type == "CPU"
    tf.config.run_functions_eagerly(False)
