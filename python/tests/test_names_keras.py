"""What Keras' backend needs of TensorFlow's names: against NumPy, plain loops, or what it is the inverse of."""

import itertools
import math

import numpy as np
import pytest
import tonnage as tf

RNG = np.random.default_rng(11)


def floats(*shape):
    return RNG.normal(size=shape).astype("float32")


@pytest.mark.parametrize("axes, stride, dilation, padding, first", [
    (1, 1, 1, "SAME", False), (1, 2, 1, "VALID", False), (1, 1, 3, "VALID", True), (2, 2, 1, "SAME", True), (2, 1, 2, "SAME", False),
    (2, 1, 2, "VALID", False), (3, 1, 1, "SAME", False), (3, 2, 1, "VALID", False), (3, 3, 1, "SAME", True),
])
def test_a_transposed_convolution_is_the_gradient_of_one(axes, stride, dilation, padding, first):
    image = tf.constant(floats(2, *range(7, 7 + axes), 3))
    filters = tf.constant(floats(*[3] * axes, 3, 4))
    with tf.GradientTape() as tape:
        tape.watch(image)
        made = tf.nn.convolution(image, filters, stride, padding, dilations=dilation)
    slope = tf.constant(floats(*made.shape))
    expected = tape.gradient(made, image, slope).numpy()
    layout = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}[axes][first]
    if first:
        slope = tf.transpose(slope, [0, axes + 1, *range(1, axes + 1)])
        expected = np.moveaxis(expected, -1, 1)
    found = tf.nn.conv_transpose(slope, filters, expected.shape, stride, padding, layout, dilation)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("before, after", [("float32", "int32"), ("float32", "uint8"), ("uint8", "float32"), ("float64", "int16"), ("int16", "uint64"),
                                           ("float16", "uint16"), ("int8", "uint8")])
def test_bits_are_those_of_numpy(before, after):
    x = RNG.integers(0, 255, size=(3, 4 * 8), dtype="uint8").view(before)
    narrow = np.dtype(before).itemsize < np.dtype(after).itemsize
    ratio = max(1, np.dtype(after).itemsize // np.dtype(before).itemsize)
    given = x.reshape(3, -1, ratio) if narrow else x
    found = tf.bitcast(given, after).numpy()
    assert found.dtype == after
    np.testing.assert_array_equal(found.reshape(-1).view("uint8"), x.reshape(-1).view("uint8"))


def test_bitcast_in_a_function():
    @tf.function
    def negative(x):
        return tf.bitcast(x, tf.int32) < 0

    assert negative(tf.constant([1.0, -0.0, -2.0])).numpy().tolist() == [False, True, True]
    with pytest.raises(tf.errors.InvalidArgumentError, match="the last axis has 4 elements"):
        tf.bitcast(tf.zeros([3], tf.uint8), tf.float32)


def test_the_next_number_is_that_of_numpy():
    x = np.array([0.0, -0.0, 1.0, -1.0, 3.5, np.inf, np.nan, 1e-45], "float32")
    for towards in (np.inf, -np.inf, 0.0):
        np.testing.assert_array_equal(tf.math.nextafter(x, np.float32(towards)).numpy(), np.nextafter(x, np.float32(towards)))


def alignments(labels, steps, symbols):
    """All ways to spell labels with blanks, which are 0, and repetitions."""
    for path in itertools.product(range(symbols), repeat=steps):
        if [s for s, _ in itertools.groupby(path) if s] == labels:
            yield path


def test_ctc_loss_is_the_sum_over_all_alignments():
    logits, labels = floats(3, 4, 3), [[1, 2, 0], [1, 1, 0], [2, 0, 0]]
    lengths, steps = [2, 2, 1], [4, 4, 3]
    found = tf.nn.ctc_loss(labels, logits, lengths, steps, logits_time_major=False, blank_index=0).numpy()
    for row in range(3):
        log = logits[row] - np.log(np.exp(logits[row]).sum(-1, keepdims=True))
        total = sum(math.exp(sum(log[i, s] for i, s in enumerate(path))) for path in alignments(labels[row][:lengths[row]], steps[row], 3))
        assert abs(found[row] + math.log(total)) < 1e-4


def test_ctc_decoders():
    logits = np.log(np.array([[[0.1, 0.6, 0.3]], [[0.1, 0.6, 0.3]], [[0.1, 0.2, 0.7]], [[0.5, 0.4, 0.1]]], "float32"))
    [greedy], scores = tf.nn.ctc_greedy_decoder(logits, [4], blank_index=2)
    assert tf.sparse.to_dense(greedy).numpy().tolist() == [[1, 0]]
    assert abs(float(scores[0, 0]) + math.log(0.6 * 0.6 * 0.7 * 0.5)) < 1e-5
    [best], probabilities = tf.nn.ctc_beam_search_decoder(logits, [4], beam_width=50)
    spelled = {}
    for path in itertools.product(range(3), repeat=4):
        key = tuple(s for s, _ in itertools.groupby(path) if s != 2)
        spelled[key] = spelled.get(key, 0.0) + math.prod(math.exp(logits[i, 0, s]) for i, s in enumerate(path))
    likely = max(spelled, key=spelled.get)
    assert tf.sparse.to_dense(best).numpy().tolist() == [list(likely)]
    assert abs(float(probabilities[0, 0]) - math.log(spelled[likely])) < 1e-4


def test_factors():
    a = floats(2, 5, 5)
    made, order = (t.numpy() for t in tf.linalg.lu(a))
    lower, upper = np.tril(made, -1) + np.eye(5), np.triu(made)
    np.testing.assert_allclose(lower @ upper, np.take_along_axis(a, order[..., None], 1), atol=1e-5)
    tall = floats(5, 3)
    q, r = tf.linalg.qr(tall, full_matrices=True)
    assert q.shape == [5, 5] and r.shape == [5, 3]
    np.testing.assert_allclose(q.numpy() @ r.numpy(), tall, atol=1e-5)
    np.testing.assert_allclose(q.numpy().T @ q.numpy(), np.eye(5), atol=1e-5)
    s, u, v = tf.linalg.svd(tall, full_matrices=True)
    np.testing.assert_allclose(u.numpy().T @ u.numpy(), np.eye(5), atol=1e-5)
    np.testing.assert_allclose(u.numpy()[:, :3] * s.numpy() @ v.numpy().T, tall, atol=1e-5)
    assert int(tf.linalg.matrix_rank(np.outer([1.0, 2.0], [3.0, 4.0]))) == 1


def test_products_of_small_integers_are_summed_as_asked():
    a = np.full([2, 100], 100, "int8")
    assert tf.matmul(a, a, transpose_b=True, output_type=tf.int32).numpy().tolist() == [[1_000_000] * 2] * 2


def test_counts_by_rows():
    x = RNG.integers(0, 6, size=(4, 9))
    found = tf.math.bincount(x, axis=-1, minlength=5, maxlength=5).numpy()
    assert found.tolist() == [np.bincount(row[row < 5], minlength=5).tolist() for row in x]
    assert tf.math.bincount(x, axis=-1, minlength=5, maxlength=5, binary_output=True).numpy().tolist() == (found > 0).astype(int).tolist()


def test_products_by_segments():
    ids, rows = RNG.integers(0, 3, size=7), floats(7, 2)
    expected = np.stack([rows[ids == i].prod(0) for i in range(4)])
    np.testing.assert_allclose(tf.math.unsorted_segment_prod(rows, ids, 4).numpy(), expected, rtol=1e-5)


def test_short_time_transforms_are_undone():
    signal = floats(2, 64)
    spectra = tf.signal.stft(signal, 16, 4, 16)
    piece = signal[:, 8:24] * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(16) / 16))
    np.testing.assert_allclose(tf.math.real(spectra)[:, 2].numpy(), np.fft.rfft(piece).real, atol=1e-4)
    back = tf.signal.inverse_stft(spectra, 16, 4, 16, tf.signal.inverse_stft_window_fn(4)).numpy()
    np.testing.assert_allclose(back[:, 16:-16], signal[:, 16:-16], atol=1e-4)


def test_two_dimensional_transforms_are_numpy_s():
    image = floats(3, 4, 6)
    made = tf.signal.fft2d(tf.complex(image, tf.zeros_like(image)))
    np.testing.assert_allclose(made.real.numpy() + 1j * made.imag.numpy(), np.fft.fft2(image), atol=1e-4)


@pytest.mark.parametrize("method", ["bilinear", "bicubic", "area", "lanczos3", "gaussian", "mitchellcubic", "nearest"])
def test_resized_images_keep_what_is_even(method):
    even = np.full([1, 6, 5, 2], 3.0, "float32")
    for size in ([3, 9], [12, 2], [6, 5]):
        np.testing.assert_allclose(tf.image.resize(even, size, method, antialias=True).numpy(), np.full([1, *size, 2], 3.0), rtol=1e-6)


def test_patches_are_windows():
    image = floats(1, 7, 6, 2)
    for size, stride, rate in ((3, 3, 1), (3, 2, 1), (2, 1, 2)):
        made = tf.image.extract_patches(image, [1, size, size, 1], [1, stride, stride, 1], [1, rate, rate, 1], "VALID").numpy()
        reach = (size - 1) * rate + 1
        for i, j in np.ndindex(made.shape[1:3]):
            window = image[0, i * stride: i * stride + reach: rate, j * stride: j * stride + reach: rate]
            np.testing.assert_array_equal(made[0, i, j], window.reshape(-1))


def test_colours_there_and_back():
    image = RNG.uniform(size=(4, 5, 3)).astype("float32")
    np.testing.assert_allclose(tf.image.hsv_to_rgb(tf.image.rgb_to_hsv(image)).numpy(), image, atol=1e-6)


@pytest.mark.parametrize("mode, expected", [("CONSTANT", [9, 9, 0, 1]), ("NEAREST", [0, 0, 0, 1]), ("REFLECT", [1, 0, 0, 1]), ("WRAP", [2, 3, 0, 1])])
def test_projections_look_outside_as_they_are_told(mode, expected):
    image = np.arange(4, dtype="float32").reshape(1, 1, 4, 1)
    for way in ("NEAREST", "BILINEAR"):
        made = tf.raw_ops.ImageProjectiveTransformV3(images=image, transforms=[[1, 0, -2, 0, 1, 0, 0, 0]], output_shape=[1, 4], fill_value=9.0,
                                                     interpolation=way, fill_mode=mode)
        assert made.numpy().ravel().tolist() == expected


DENSE = {name: RNG.integers(-2, 3, size=(3, 4)).astype("float32") for name in "ab"}


@pytest.mark.parametrize("op, expected", [
    (tf.sparse.add, np.add), (tf.sparse.maximum, np.maximum), (tf.sparse.minimum, np.minimum),
    (lambda a, b: tf.sparse.concat(1, [a, b]), lambda a, b: np.concatenate([a, b], 1)),
    (lambda a, b: tf.sparse.transpose(a), lambda a, b: a.T),
    (lambda a, b: tf.sparse.reshape(a, [2, -1]), lambda a, b: a.reshape(2, -1)),
    (lambda a, b: tf.sparse.expand_dims(a, 1), lambda a, b: a[:, None]),
    (lambda a, b: tf.sparse.retain(a, a.values > 0), lambda a, b: np.maximum(a, 0)),
    (lambda a, b: tf.cast(a, "int32"), lambda a, b: a.astype("int32")),
    (lambda a, b: tf.sparse.sparse_dense_matmul(a, tf.sparse.to_dense(b), adjoint_b=True), lambda a, b: a @ b.T),
    (lambda a, b: tf.sparse.reduce_sum(a, 1), lambda a, b: a.sum(1)),
])
def test_sparse_tensors_are_the_dense_ones(op, expected):
    made = op(*(tf.sparse.from_dense(x) for x in DENSE.values()))
    made = tf.sparse.to_dense(made) if isinstance(made, tf.SparseTensor) else made
    np.testing.assert_allclose(made.numpy(), expected(*DENSE.values()))


def test_a_loop_of_a_computed_length():
    @tf.function
    def power(x, times):
        return tf.while_loop(lambda x: True, lambda x: x * 2.0, [x], maximum_iterations=tf.reduce_max(times))[0]

    assert float(power(tf.constant(1.0), tf.constant([2, 5]))) == 32.0

    @tf.function
    def known(x):
        return tf.while_loop(lambda x: True, lambda x: x * 2.0, [x], maximum_iterations=tf.reduce_max(3))[0]

    assert float(known(tf.constant(1.0))) == 8.0 and known.last_run() is not None


def test_elements_of_either_dataset_have_open_lengths():
    data = tf.data.Dataset.from_tensors(tf.zeros([3, 2])).concatenate(tf.data.Dataset.from_tensors(tf.zeros([1, 2])))
    assert data.element_spec == tf.TensorSpec([None, 2], tf.float32)
    with pytest.raises(TypeError, match="Incompatible types"):
        data.concatenate(tf.data.Dataset.from_tensors(tf.zeros([3, 2, 2]))).element_spec


def test_an_optional_is_carried_by_a_loop():
    def body(i, found):
        return i + 1, tf.experimental.Optional.from_value(i * 10)

    _, last = tf.while_loop(lambda i, _: i < 3, body, [tf.constant(0), tf.experimental.Optional.empty(None)])
    assert bool(last.has_value()) and int(last.get_value()) == 20


def test_one_replica():
    strategy = tf.distribute.get_strategy()
    assert strategy.num_replicas_in_sync == 1 and not tf.distribute.has_strategy()
    assert strategy.run(lambda x: x + 1, (tf.constant(1),)).numpy() == 2
    assert float(strategy.reduce(tf.distribute.ReduceOp.MEAN, tf.constant([1.0, 3.0]), 0)) == 2.0
    with pytest.raises(NotImplementedError, match="no TPUs"):
        tf.distribute.TPUStrategy()


def test_names_that_say_no():
    assert not isinstance(tf.constant(1), (tf.SparseTensor, tf.RaggedTensor)) and tf.is_tensor(tf.sparse.from_dense([1]))


def test_boxes_of_images():
    image = floats(2, 3, 4, 1)
    padded = tf.image.pad_to_bounding_box(image, 1, 2, 6, 7)
    np.testing.assert_array_equal(padded.numpy(), np.pad(image, [(0, 0), (1, 2), (2, 1), (0, 0)]))
    np.testing.assert_array_equal(tf.image.crop_to_bounding_box(padded, 1, 2, 3, 4).numpy(), image)
    for box in (tf.image.pad_to_bounding_box, tf.image.crop_to_bounding_box):
        with pytest.raises(ValueError, match="are not within"):
            box(image, 2, 2, 4, 4)


def test_tensors_in_a_list_become_the_dtype_that_is_asked_for():
    assert tf.convert_to_tensor([tf.constant(1), 2], tf.float32).numpy().tolist() == [1.0, 2.0]
    assert tf.convert_to_tensor(True, tf.float32).numpy() == 1.0


@pytest.mark.parametrize("shape", [[7], [2, 5], [0], []])
@pytest.mark.parametrize("count", [0, 1, 20])
def test_tables_are_dictionaries(shape, count):
    keys = RNG.permutation(40)[:count].astype("int64")
    held = dict(zip(keys.tolist(), RNG.integers(0, 99, size=count).tolist()))
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, list(held.values()), "int64", "int32"), -1)
    assert int(table.size()) == count and dict(zip(*(t.numpy().tolist() for t in table.export()))) == held
    asked = RNG.integers(0, 40, size=shape)
    expected = np.vectorize(lambda key: held.get(int(key), -1), otypes=["int32"])(asked)
    for lookup in (table.lookup, tf.function(table.lookup)):
        np.testing.assert_array_equal(lookup(tf.constant(asked, "int64")), expected)


def test_tables_that_are_written_to_and_those_of_files(tmp_path):
    table = tf.lookup.experimental.MutableHashTable("int64", "int64", 0)
    table.insert(tf.constant([7, 3, 7], "int64"), tf.constant([1, 2, 5], "int64"))
    table.remove(tf.constant([3, 99], "int64"))
    assert [t.numpy().tolist() for t in table.export()] == [[7], [5]]
    (tmp_path / "words").write_text("30\n10\n20\n")
    line, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
    words = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(str(tmp_path / "words"), tf.int64, line, tf.int64, number, value_index_offset=1), 0)
    assert words.lookup(tf.constant([10, 30, 5], "int64")).numpy().tolist() == [2, 1, 0]


def test_tables_refuse_what_they_cannot_hold():
    with pytest.raises(tf.errors.FailedPreconditionError, match="one value for a key"):
        tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 1], [2, 3]), 0)
    with pytest.raises(ValueError, match="a value for each key"):
        tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], [2]), 0)
    with pytest.raises(TypeError, match="Dtype of argument `keys`"):
        tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1], [2]), 0).lookup(tf.constant([1.0]))


def test_rows_of_sparse_tensors_are_mapped():
    a, b = RNG.integers(0, 3, size=(3, 2, 4)).astype("float32"), floats(3, 4, 5)
    made = tf.map_fn(lambda x: tf.sparse.sparse_dense_matmul(*x), (tf.sparse.from_dense(a), tf.constant(b)), fn_output_signature=tf.float32)
    np.testing.assert_allclose(made, a @ b, rtol=1e-5)
