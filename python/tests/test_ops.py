"""Ops under TensorFlow's names, against NumPy."""

import itertools

import numpy as np
import pytest

import tonnage as tf

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4)).astype(np.float32)
Y = RNG.normal(size=(3, 4)).astype(np.float32)

UNARY = {
    "abs": np.abs, "acos": lambda x: np.arccos(x * 0.1), "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "exp": np.exp,
    "expm1": np.expm1, "floor": np.floor, "negative": np.negative, "round": np.round, "sign": np.sign, "sin": np.sin,
    "sinh": np.sinh, "square": np.square, "tan": np.tan, "tanh": np.tanh, "atan": np.arctan, "asinh": np.arcsinh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "softplus": lambda x: np.log1p(np.exp(x)),
}


@pytest.mark.parametrize("name", sorted(UNARY))
def test_unary_ops_agree_with_numpy(name):
    given = X * 0.1 if name == "acos" else X
    np.testing.assert_allclose(getattr(tf.math, name)(given).numpy(), UNARY[name](X), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name, numpy", [
    ("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide),
    ("maximum", np.maximum), ("minimum", np.minimum), ("atan2", np.arctan2), ("greater", np.greater),
    ("squared_difference", lambda a, b: (a - b) ** 2), ("floordiv", np.floor_divide),
])
def test_binary_ops_agree_with_numpy(name, numpy):
    np.testing.assert_allclose(getattr(tf.math, name)(X, Y).numpy(), numpy(X, Y), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(getattr(tf.math, name)(**dict(zip(["y", "x"] if name == "atan2" else ["x", "y"], [X, Y])))
                               .numpy(), numpy(X, Y), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name, numpy", [
    ("reduce_sum", np.sum), ("reduce_mean", np.mean), ("reduce_prod", np.prod), ("reduce_max", np.max),
    ("reduce_min", np.min), ("reduce_std", np.std), ("reduce_variance", np.var),
])
@pytest.mark.parametrize("axis", [None, 0, -1, [0, 1]])
@pytest.mark.parametrize("keepdims", [False, True])
def test_folds_agree_with_numpy(name, numpy, axis, keepdims):
    along = tuple(axis) if isinstance(axis, list) else axis
    made = getattr(tf.math, name)(X, axis=axis, keepdims=keepdims).numpy()
    np.testing.assert_allclose(made, numpy(X, axis=along, keepdims=keepdims), rtol=1e-5, atol=1e-6)


def test_folds_of_integers_and_booleans():
    assert tf.reduce_mean([1, 2]).numpy() == 1 and tf.reduce_sum([1, 2]).dtype == tf.int32
    assert tf.reduce_any([True, False]).numpy() and not tf.reduce_all([True, False]).numpy()
    assert tf.argmax([1, 5, 2]).numpy() == 1 and tf.argmax(X, axis=1).dtype == tf.int64
    with pytest.raises(TypeError, match="bool"):
        tf.reduce_mean([True, False])


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
@pytest.mark.parametrize("axis", [None, 0, 1, [], [0, 1]])
@pytest.mark.parametrize("shape", [(2, 3), (3, 4), (1, 1), (0, 3), (3, 0)])
def test_means_of_64_bits_keep_all_digits_and_wrap_around_as_in_tensorflow(dtype, axis, shape):
    limits = np.iinfo(dtype)
    numbers = np.array([limits.max, limits.max - 6, limits.min, 7, 5, 3 if dtype == "uint64" else -5], dtype)
    along = tuple(axis) if isinstance(axis, list) else axis
    for seed in range(4):
        x = np.random.default_rng(seed).choice(numbers, shape)
        total = x.sum(axis=along, dtype=dtype)
        count = max(x.size // max(total.size, 1), 1)
        expected = [abs(int(n)) // count * (-1 if n < 0 else 1) for n in total.ravel()]
        for mean in (tf.reduce_mean, tf.function(tf.reduce_mean)):
            made = mean(tf.constant(x), axis=axis)
            assert made.dtype == dtype and made.numpy().ravel().tolist() == expected


def test_shapes_are_changed_as_numpy_changes_them():
    x = tf.constant(X)
    for made, expected in [
        (tf.reshape(x, [2, -1]), X.reshape(2, -1)), (tf.transpose(x), X.T), (tf.expand_dims(x, 1), X[:, None]),
        (tf.squeeze(x[:, None]), X), (tf.concat([x, x], 0), np.concatenate([X, X])), (tf.stack([x, x], 1), np.stack([X, X], 1)),
        (tf.tile(x, [2, 1]), np.tile(X, [2, 1])), (tf.repeat(x, 2, axis=1), np.repeat(X, 2, 1)),
        (tf.reverse(x, [1]), X[:, ::-1]), (tf.roll(x, 1, 0), np.roll(X, 1, 0)), (tf.pad(x, [[1, 0], [0, 2]]), np.pad(X, [[1, 0], [0, 2]])),
        (tf.pad(x, [[1, 1], [1, 1]], "REFLECT"), np.pad(X, 1, "reflect")), (tf.broadcast_to(x[0], [5, 4]), np.broadcast_to(X[0], [5, 4])),
        (tf.slice(x, [1, 0], [2, -1]), X[1:3]), (tf.gather(x, [2, 0]), X[[2, 0]]), (tf.gather(x, [1], axis=1), X[:, [1]]),
        (tf.gather_nd(x, [[0, 1], [2, 3]]), X[[0, 2], [1, 3]]), (tf.where(x > 0, x, 0.0), np.where(X > 0, X, 0)),
        (tf.sort(x, axis=1), np.sort(X, 1)), (tf.boolean_mask(x, X[:, 0] > 0), X[X[:, 0] > 0]), (tf.cumsum(x, 1), X.cumsum(1)),
        (tf.linalg.band_part(x, 0, -1), np.triu(X)), (tf.eye(3, 4), np.eye(3, 4)), (tf.linalg.diag(x[0]), np.diag(X[0])),
        (tf.clip_by_value(x, -0.5, 0.5), X.clip(-0.5, 0.5)), (tf.unstack(x)[1], X[1]), (tf.split(x, 2, axis=1)[1], X[:, 2:]),
        (tf.split(x, [1, 3], axis=1)[1], X[:, 1:]), (tf.one_hot([0, 2], 3), np.eye(3)[[0, 2]]), (tf.norm(x), np.linalg.norm(X)),
        (tf.where([False, True, True]), [[1], [2]]), (tf.tensor_scatter_nd_update(x, [[0]], [X[1]]), np.stack([X[1], X[1], X[2]])),
    ]:
        np.testing.assert_allclose(made.numpy(), expected, rtol=1e-6, atol=1e-6)


def test_ranges_and_fills_are_recipes():
    assert tf.range(5).numpy().tolist() == [0, 1, 2, 3, 4] and tf.range(5, 0, -2).numpy().tolist() == [5, 3, 1]
    assert tf.range(0.0, 1.0, 0.25).numpy().tolist() == [0.0, 0.25, 0.5, 0.75] and tf.range(3, dtype=tf.int64).dtype == tf.int64
    for x in [tf.zeros([9]), tf.ones([9]), tf.fill([9], 2), tf.range(9), tf.eye(9), tf.linspace(0.0, 1.0, 9), tf.random.normal([9])]:
        assert x.is_recipe
    assert tf.zeros_like(tf.constant([1, 2])).dtype == tf.int32
    with pytest.raises(ValueError):
        tf.range(1, 2, 0)


def test_matrices():
    a = X @ X.T + np.eye(3, dtype=np.float32) * 5
    for made, expected in [
        (tf.matmul(X, Y, transpose_b=True), X @ Y.T), (tf.linalg.inv(a), np.linalg.inv(a)), (tf.linalg.det(a), np.linalg.det(a)),
        (tf.linalg.cholesky(a), np.linalg.cholesky(a)), (tf.linalg.solve(a, X), np.linalg.solve(a, X)),
        (tf.linalg.matvec(X, Y[0]), X @ Y[0]), (tf.einsum("ij,kj->ik", X, Y), X @ Y.T), (tf.tensordot(X, Y, [[1], [1]]), X @ Y.T),
        (tf.linalg.trace(a), np.trace(a)), (tf.linalg.svd(X, compute_uv=False), np.linalg.svd(X, compute_uv=False)),
        (tf.linalg.eigvalsh(a), np.linalg.eigvalsh(a)),
    ]:
        np.testing.assert_allclose(made.numpy(), expected, rtol=1e-3, atol=1e-4)
    s, u, v = tf.linalg.svd(X)
    np.testing.assert_allclose((u * s @ tf.transpose(v)).numpy(), X, atol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.matmul(X, Y)
    with pytest.raises(ValueError):
        tf.matmul([1.0], [2.0])


@pytest.mark.parametrize("ord", ["fro", 1, 2, np.inf])
@pytest.mark.parametrize("axis", [(0, 1), (2, 0), (-2, -1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_norms_of_matrices_are_numpys(ord, axis, keepdims):
    x = RNG.normal(size=(2, 3, 4)).astype(np.float32)
    made = tf.norm(x, ord, axis=list(axis), keepdims=keepdims).numpy()
    np.testing.assert_allclose(made, np.linalg.norm(x, ord, axis, keepdims), rtol=1e-5)


def test_the_largest_singular_value_has_a_gradient_and_other_norms_of_matrices_are_refused():
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        norm = tf.norm(x, 2, axis=[0, 1])
    u, _, v = np.linalg.svd(x.numpy())
    np.testing.assert_allclose(tape.gradient(norm, x), np.outer(u[:, 0], v[0]), rtol=1e-5)
    for ord, axis in ((3, [0, 1]), (1, [0, 0]), (1, [0, 2])):
        with pytest.raises(ValueError):
            tf.norm(x, ord, axis=axis)


def test_diagonals_of_tensors_have_all_axes_twice():
    x = RNG.normal(size=(2, 3)).astype(np.float32)
    expected = np.diag(x.reshape(-1)).reshape(2, 3, 2, 3)
    both = [tf.function(f, input_signature=[tf.TensorSpec([None] * r)]) for f, r in
            ((tf.linalg.tensor_diag, 2), (tf.linalg.tensor_diag_part, 4))]
    for make, part in ((tf.linalg.tensor_diag, tf.linalg.tensor_diag_part), both):
        made = make(tf.constant(x))
        assert made.numpy().tolist() == expected.tolist() and part(made).numpy().tolist() == x.tolist()
    assert tf.linalg.tensor_diag_part(tf.linalg.tensor_diag([1, 2])).numpy().tolist() == [1, 2]
    for wrong in (tf.zeros([2, 3]), tf.zeros([2, 2, 2]), tf.zeros([])):
        with pytest.raises(ValueError, match="two equal halves"):
            tf.linalg.tensor_diag_part(wrong)


def test_networks():
    logits, labels = tf.constant(X), tf.constant([0, 3, 1])
    expected = -np.log(np.exp(X)[range(3), [0, 3, 1]] / np.exp(X).sum(1))
    np.testing.assert_allclose(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits).numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(labels, 4), logits).numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(tf.nn.softmax(X).numpy().sum(-1), 1, rtol=1e-6)
    image, filters = RNG.normal(size=(1, 5, 5, 2)).astype("f4"), RNG.normal(size=(3, 3, 2, 4)).astype("f4")
    made = tf.nn.conv2d(image, filters, strides=1, padding="VALID").numpy()
    expected = np.einsum("abc,abcd->d", image[0, 1:4, 2:5], filters)
    np.testing.assert_allclose(made[0, 1, 2], expected, rtol=1e-4, atol=1e-5)
    assert tf.nn.max_pool(image, 2, 2, "SAME").shape == (1, 3, 3, 2) and tf.nn.conv2d(image, filters, 2, "SAME").shape == (1, 3, 3, 4)
    assert tf.nn.relu([-1.0, 1.0]).numpy().tolist() == [0.0, 1.0]
    values, indices = tf.math.top_k([1.0, 3.0, 2.0], 2)
    assert values.numpy().tolist() == [3.0, 2.0] and indices.numpy().tolist() == [1, 2]


def test_confusion_matrices_count_in_their_cells_or_not_at_all():
    made = tf.math.confusion_matrix([[0], [1], [2]], [0, 2, 2], weights=[1, 2, 3]).numpy()
    assert made.tolist() == [[1, 0, 0], [0, 0, 2], [0, 0, 3]]
    of_two = tf.function(lambda a, b: tf.math.confusion_matrix(a, b, num_classes=2))
    assert of_two(tf.constant([0, 1]), tf.constant([1, 1])).numpy().tolist() == [[0, 1], [0, 1]]
    for labels, predictions in (([0, 1], [0, 2]), ([2, 1], [0, 1]), ([1, 1], [0, -1]), ([-1, 1], [1, 1])):
        for count in (of_two, of_two.python_function):
            with pytest.raises(tf.errors.InvalidArgumentError, match="out of bound|negative values"):
                count(tf.constant(labels), tf.constant(predictions))
    for labels, predictions in (([0], [0, 1]), ([[0, 1]], [0, 1]), (0, [1, 1])):
        with pytest.raises(ValueError, match="shape"):
            tf.math.confusion_matrix(labels, predictions)


@pytest.mark.parametrize("function", [False, True])
def test_rows_of_negative_segments_are_left_out(function):
    def each(data, ids):
        names = ("sum", "mean", "max", "min")
        return [getattr(tf.math, f"unsorted_segment_{name}")(data, ids, 3) for name in names]

    data, ids = tf.constant([[9.0], [1.0], [2.0]]), tf.constant([-1, 0, 0])
    low, high = tf.float32.min, tf.float32.max
    made = [m[:, 0].numpy().tolist() for m in (tf.function(each) if function else each)(data, ids)]
    assert made == [[3.0, 0.0, 0.0], [1.5, 0.0, 0.0], [2.0, low, low], [1.0, high, high]]
    with tf.GradientTape() as tape:
        tape.watch(data)
        made = each(data, ids)
    assert tape.gradient(made[0], data).numpy().tolist() == [[0.0], [1.0], [1.0]]
    assert tf.math.unsorted_segment_max([5, 6], [1, -2], 2).numpy().tolist() == [tf.int32.min, 5]
    with pytest.raises(tf.errors.InvalidArgumentError, match="index 3"):
        each(data, tf.constant([-1, 3, 0]))


def test_segments_without_rows():
    assert tf.math.segment_max([1.0, 2.0, -3.0], [0, 0, 2]).numpy().tolist() == [2.0, 0.0, -3.0]
    assert tf.math.segment_min([[1], [2], [-3]], [0, 0, 2]).numpy().tolist() == [[1], [0], [-3]]
    for name in ("sum", "mean", "max", "min"):
        assert getattr(tf.math, f"segment_{name}")(tf.zeros([0, 3]), tf.zeros([0], tf.int32)).shape == (0, 3)


def test_numbers_from_the_longest_length_on_are_not_counted():
    x, weights = [1, 2, 7, 3, 1], [1.0, 2.0, 3.0, 4.0, 5.0]
    assert tf.math.bincount(x, maxlength=3).numpy().tolist() == [0, 2, 1]
    assert tf.math.bincount(x, minlength=9, maxlength=3).numpy().tolist() == [0, 2, 1]
    assert tf.math.bincount([1], minlength=2, maxlength=3).numpy().tolist() == [0, 1]
    assert tf.math.bincount(x, weights, maxlength=3).numpy().tolist() == [0.0, 6.0, 2.0]
    assert tf.math.bincount(x, maxlength=0).shape == (0,) and tf.math.bincount(x, maxlength=3).dtype == tf.int32
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.math.bincount([1, -1], maxlength=3)
    with pytest.raises(ValueError, match="1 weights for 5"):
        tf.math.bincount(x, [1.0], maxlength=3)


@pytest.mark.parametrize("function", [False, True])
def test_targets_that_nothing_is_known_of_are_not_among_the_first(function):
    scores = tf.constant([[1.0, 3.0, 2.0]] * 4 + [[1.0, 3.0, np.nan], [1.0, 3.0, -np.inf]])
    among = tf.function(lambda t, p: tf.math.in_top_k(t, p, 2)) if function else lambda t, p: tf.math.in_top_k(t, p, 2)
    assert among(tf.constant([1, 0, 3, -1, 1, 1]), scores).numpy().tolist() == [True, False, False, False, False, False]


def test_masks_of_several_axes_stand_anywhere():
    x = np.arange(24).reshape(2, 3, 2, 2)
    of_two, of_one = x[0, :, :, 0] % 3 > 0, np.array([True, False, True])
    for mask, axis, expected in ((of_two, 1, x[:, of_two]), (of_one, 1, x[:, of_one]), (of_one, -3, x[:, of_one]),
                                 (of_two[1:], 2, x[:, :, of_two[1:]]), (of_one[:2], -1, x[..., of_one[:2]])):
        assert tf.boolean_mask(x, mask, axis=axis).numpy().tolist() == expected.tolist()
    with pytest.raises(ValueError, match="rank 2"):
        tf.boolean_mask(x, of_two, axis=3)


def test_nothing_gives_nothing():
    assert tf.sequence_mask(tf.zeros([0], tf.int32)).shape == (0, 0)
    for periodic in (True, False):
        assert tf.signal.hann_window(0, periodic).shape == (0,) and tf.signal.hamming_window(0, periodic).shape == (0,)


def test_determinants_below_zero_have_no_logarithm():
    made = tf.linalg.logdet([[[1.0, 2.0], [3.0, 4.0]], [[2.0, 0.0], [0.0, 3.0]]]).numpy()
    assert np.isnan(made[0]) and np.isclose(made[1], np.log(6.0))


@pytest.mark.parametrize("wrong, says", [
    (lambda: tf.dynamic_partition([1, 2, 3], [0, 1, 5], 2), "up to, without, 2"),
    (lambda: tf.dynamic_partition([1, 2, 3], [0, 1, -1], 2), "up to, without, 2"),
    (lambda: tf.searchsorted([1, 2], [1], side="middle"), "middle"),
    (lambda: tf.math.cumulative_logsumexp([1.0, 2.0], axis=3), "no axis 3"),
    (lambda: tf.math.cumulative_logsumexp([1.0, 2.0], axis=-2), "no axis -2"),
    (lambda: tf.math.cumulative_logsumexp(1.0), "rank 0"),
    (lambda: tf.signal.frame([1.0, 2.0], 1, 0), "1 and 0"),
    (lambda: tf.signal.frame([1.0, 2.0], -1, 1), "-1 and 1"),
    (lambda: tf.linalg.set_diag(tf.zeros([3, 3]), [1.0]), "(1,)"),
    (lambda: tf.linalg.set_diag(tf.zeros([2, 3, 3]), [1.0, 1.0, 1.0]), "(3,)"),
    (lambda: tf.random.uniform([2], 0, 300, tf.uint8), "uint8"),
    (lambda: tf.random.uniform([2], -5, 3, tf.uint8), "uint8"),
    (lambda: tf.random.stateless_uniform([2], [1, 2], 0, 2 ** 40, tf.int32), "int32"),
])
def test_arguments_that_do_not_fit_are_refused(wrong, says):
    with pytest.raises(ValueError) as error:
        wrong()
    assert says in str(error.value)


def test_random_numbers_follow_their_seeds():
    tf.random.set_seed(1)
    a, b = tf.random.normal([5]).numpy(), tf.random.normal([5]).numpy()
    tf.random.set_seed(1)
    assert (tf.random.normal([5]).numpy() == a).all() and not (a == b).all()
    first = tf.random.stateless_uniform([4], [1, 2]).numpy()
    assert (tf.random.stateless_uniform([4], [1, 2]).numpy() == first).all()
    generator = tf.random.Generator.from_seed(7)
    assert not (generator.normal([3]).numpy() == generator.normal([3]).numpy()).all()
    drawn = tf.random.uniform([1000], 3, 9, tf.int32).numpy()
    assert drawn.min() == 3 and drawn.max() == 8
    assert tf.random.uniform([5000], 0, 256, tf.uint8).numpy().max() == 255
    assert sorted(tf.random.shuffle(tf.range(10)).numpy()) == list(range(10))


def test_spectra_are_pairs():
    real, imag = tf.signal.rfft(X)
    expected = np.fft.rfft(X)
    np.testing.assert_allclose(real.numpy() + 1j * imag.numpy(), expected, atol=1e-5)
    np.testing.assert_allclose(tf.signal.irfft(real, imag).numpy(), X, atol=1e-5)


def test_every_row_of_the_table_that_takes_tensors_alone_has_a_name():
    from tonnage import _names, _tonnage

    named = {row for table in (_names.MATH, _names.NN, _names.BITWISE) for row, _ in table.values()}
    rows = {name for name, _ in _tonnage.table()}
    assert named <= rows


def test_recipes_that_are_computed_in_doubles_are_read_in_their_own_dtype():
    x, y = tf.meshgrid(tf.linspace(-2.0, 1.0, 4), tf.linspace(-1.0, 1.0, 3))
    twice = tf.function(lambda x, y: (x * 2.0 + y, x + x))
    expected = np.meshgrid(np.linspace(-2, 1, 4), np.linspace(-1, 1, 3))
    for made in (twice(x, y), (x * 2.0 + y, x + x)):
        np.testing.assert_allclose(made[0].numpy(), expected[0] * 2 + expected[1])
        np.testing.assert_allclose(made[1].numpy(), expected[0] * 2)


IMAGE, FILTERS = tf.ones([1, 8, 8, 6]), tf.ones([3, 3, 6, 4])


@pytest.mark.parametrize("wrong, says", [
    (lambda: tf.nn.conv2d(IMAGE, FILTERS, 0, "SAME"), "at least 1"),
    (lambda: tf.nn.conv2d(IMAGE, FILTERS, -1, "SAME"), "-1"),
    (lambda: tf.nn.conv2d(IMAGE, FILTERS, 1, "SAME", dilations=0), "at least 1"),
    (lambda: tf.nn.conv2d(IMAGE, FILTERS, 1, [[0, 0], [-1, 0], [0, 0], [0, 0]]), "-1"),
    (lambda: tf.nn.conv2d(IMAGE, tf.ones([3, 3, 4, 4]), 1, "SAME"), "6 channels"),
    (lambda: tf.nn.conv2d(IMAGE, tf.ones([3, 3, 3, 3]), 1, "SAME"), "groups do not divide"),
    (lambda: tf.nn.conv2d(tf.ones([1, 2, 2, 6]), FILTERS, 1, "VALID"), "does not fit"),
    (lambda: tf.nn.max_pool2d(IMAGE, 0, 1, "VALID"), "at least 1"),
    (lambda: tf.nn.max_pool2d(IMAGE, 2, -2, "VALID"), "-2"),
    (lambda: tf.nn.avg_pool2d(IMAGE, 20, 1, "VALID"), "does not fit"),
    (lambda: tf.nn.space_to_depth(IMAGE, 3), "divides"),
    (lambda: tf.nn.space_to_depth(IMAGE, -2), "-2"),
    (lambda: tf.pad(IMAGE, [[0, 0], [2**62, 2**62], [0, 0], [0, 0]]), "2^63 bytes"),
    (lambda: tf.pad(IMAGE, [[0, 0], [-1, 0], [0, 0], [0, 0]]), "-1"),
    (lambda: tf.tile(IMAGE, [2**40, 2**30, 1, 1]), "2^63 bytes"),
    (lambda: tf.tile([1, 2], [-1]), "-1"),
    (lambda: tf.repeat([1, 2], -1), "-1"),
    (lambda: tf.repeat([1, 2], [-1, 2]), "-1"),
    (lambda: tf.eye(-1), "-1"),
    (lambda: tf.one_hot([1], -3), "-3"),
    (lambda: tf.linspace(0.0, 1.0, -2), "-2"),
    (lambda: tf.split(tf.ones([6]), 0), "0 equal pieces"),
    (lambda: tf.split(tf.ones([6]), -2), "-2"),
    (lambda: tf.math.top_k([1.0, 2.0], -1), "-1"),
    (lambda: tf.math.top_k([1.0, 2.0], 5), "at most"),
    (lambda: tf.nn.max_pool2d(IMAGE, 2, 2, [[0, 0], [2, 0], [0, 0], [0, 0]]), "below those of the windows"),
    (lambda: tf.nn.bias_add(tf.ones([2, 3]), 1.0), "one axis"),
    (lambda: tf.nn.bias_add(tf.ones([2, 3]), [[1.0, 2.0, 3.0]]), "one axis"),
    (lambda: tf.nn.bias_add(tf.ones([3]), [1.0, 2.0, 3.0]), "one axis"),
    (lambda: tf.nn.bias_add(tf.ones([2, 3]), [1.0]), "3 channels"),
    (lambda: tf.nn.bias_add(tf.ones([2, 3, 4]), tf.ones([4]), "NCW"), "3 channels"),
    (lambda: tf.repeat([1, 2, 3], [1, 2]), "each of 3 elements"),
    (lambda: tf.repeat([1, 2], [1, 2, 3]), "each of 2 elements"),
    (lambda: tf.repeat([[1, 2]], [1, 2], axis=5), "axis 5"),
    (lambda: tf.repeat([1, 2], [[1, 2]]), "one row"),
    (lambda: tf.slice([1, 2, 3], [1], [3]), "3 elements from 1"),
    (lambda: tf.slice([1, 2, 3], [-1], [1]), "from -1"),
    (lambda: tf.slice([1, 2, 3], [4], [-1]), "from 4"),
    (lambda: tf.slice([1, 2, 3], [1], [-2]), "-2 elements"),
    (lambda: tf.slice([[1, 2, 3]], [0], [1]), "begin has one number for each axis"),
    (lambda: tf.slice([1, 2, 3], [1], [1, 1]), "size has one number for each axis"),
    (lambda: tf.slice([1, 2, 3], 1, 1), "begin has one number for each axis"),
    (lambda: tf.nn.conv2d(IMAGE, FILTERS, 1, "SAME", data_format="NXYZ"), "'NXYZ'"),
    (lambda: tf.nn.max_pool2d(IMAGE, 2, 1, "SAME", data_format="NXYZ"), "'NXYZ'"),
    (lambda: tf.nn.conv2d(IMAGE, FILTERS, [2, 1, 1, 2], "SAME"), "strides: batch and channels"),
    (lambda: tf.nn.conv2d(IMAGE, FILTERS, 1, "SAME", dilations=[2, 1, 1, 1]), "dilations: batch and channels"),
    (lambda: tf.nn.depthwise_conv2d(IMAGE, FILTERS, [2, 1, 1, 1], "SAME"), "strides: batch and channels"),
    (lambda: tf.nn.max_pool2d(IMAGE, [2, 2, 2, 1], 1, "SAME"), "ksize: batch and channels"),
    (lambda: tf.nn.avg_pool2d(IMAGE, 2, [1, 1, 1, 2], "SAME"), "strides: batch and channels"),
    (lambda: tf.nn.conv2d(IMAGE, 1.0, 1, "SAME"), "4 axes"),
    (lambda: tf.nn.conv2d(IMAGE, [1.0], 1, "SAME"), "4 axes"),
    (lambda: tf.nn.convolution(tf.ones([4, 1]), FILTERS), "rank 3, 4 or 5"),
    (lambda: tf.nn.convolution(tf.ones([1, 1, 1, 4, 4, 1]), FILTERS), "rank 3, 4 or 5"),
    (lambda: tf.nn.conv2d_transpose(IMAGE, tf.ones([3, 3, 4, 6]), [2, 8, 8, 4], 1), "2 as its batch"),
    (lambda: tf.nn.conv2d_transpose(IMAGE, tf.ones([3, 3, 4, 6]), [1, 8, 8, 5], 1), "5 as its channels"),
    (lambda: tf.nn.conv2d_transpose(IMAGE, tf.ones([3, 3, 4, 6]), [1, 8, 8], 1), "4 lengths"),
    (lambda: tf.roll([1, 2, 3], [1, 2], [0]), "2 shifts for 1 axes"),
    (lambda: tf.roll([[1, 2, 3]], 1, [0, 1]), "1 shifts for 2 axes"),
    (lambda: tf.split(tf.ones([4]), [-1, 2], axis=3), "axis 3"),
    (lambda: tf.unstack(tf.ones([4]), num=4, axis=3), "axis 3"),
])
def test_attributes_that_make_no_sense_are_refused_clearly(wrong, says):
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        wrong()
    assert says in str(error.value)


def test_casts_that_saturate_stay_within_the_range():
    top = np.finfo("f4").max
    for given, dtype, expected in [
        (tf.constant([300, -1, 7]), tf.uint8, [255, 0, 7]), (tf.constant([2**40, -2**40], tf.int64), tf.int32, [2**31 - 1, -2**31]),
        (tf.constant([1e300, -1e300, np.inf], tf.float64), tf.float32, [top, -top, top]),
        (tf.constant([2**63 + 5, 3], tf.uint64), tf.int64, [2**63 - 1, 3]), (tf.constant([-5], tf.int64), tf.uint64, [0]),
        (tf.constant([2**40], tf.int64), tf.float16, [65504]), (tf.constant([1e10, -1e10, 2.9]), tf.int32, [2**31 - 1, -2**31, 2]),
        (tf.constant([300.7, -1.5], tf.float16), tf.uint8, [255, 0]), (tf.constant([True]), tf.int8, [1]),
    ]:
        for cast in [tf.saturate_cast, tf.function(tf.saturate_cast)]:
            made = cast(given, dtype)
            assert made.dtype == dtype and made.numpy().tolist() == expected


def test_slices_of_open_axes_are_known_when_it_runs():
    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([], tf.int32)])
    def cut(x, at):
        return tf.slice(x, [1, 0], [-1, 2]), tf.slice(x, [2, 1], [2, 2]), tf.slice(x, [at, 0], [1, -1])

    x = np.arange(15, dtype="f4").reshape(5, 3)
    for made, expected in zip(cut(x, 3), [x[1:, :2], x[2:4, 1:], x[3:4]]):
        np.testing.assert_array_equal(made.numpy(), expected)
    assert tf.slice([1, 2, 3], [3], [-1]).shape == [0] and tf.slice([1, 2, 3], [3], [0]).shape == [0]


def test_an_image_of_open_batches_is_asked_for_by_its_shape():
    @tf.function(input_signature=[tf.TensorSpec([None, 4, 4, 1])])
    def larger(x):
        return tf.nn.conv2d_transpose(x, tf.ones([3, 3, 2, 1]), [tf.shape(x)[0], 8, 8, 2], 2, "SAME")

    assert larger(tf.ones([3, 4, 4, 1])).shape == (3, 8, 8, 2)


def test_shifts_go_with_their_axes():
    for shift, axis in [(1, [0]), ([1], 0), ([1], [0]), (tf.constant(1), tf.constant(0))]:
        assert tf.roll([1, 2, 3], shift, axis).numpy().tolist() == [3, 1, 2]
    np.testing.assert_array_equal(tf.roll(X, [1, -2], [0, 1]).numpy(), np.roll(X, [1, -2], [0, 1]))


def test_axes_and_shapes_that_do_not_fit_are_refused():
    for axis in (-2, 2):
        with pytest.raises(ValueError, match="axis"):
            tf.one_hot([1], 3, axis=axis)
    with pytest.raises(ValueError, match="equal"):
        tf.add_n([tf.ones([2]), tf.ones([1])])
    assert tf.add_n([[1.0, 2.0], tf.ones([2])]).numpy().tolist() == [2.0, 3.0]


def test_long_sums_keep_their_terms():
    ones = np.ones((1 << 13, 2), "f4")
    ones[0] = 1 << 24
    made = tf.matmul(ones, np.ones_like(ones), transpose_a=True).numpy()
    assert np.abs(made - (2 ** 24 + 2 ** 13)).max() < 200


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("start, stop", [((), (3,)), ((3,), ()), ((2, 1), (3,)), ((2, 1), (1, 3)), ((1,), (2, 3)), ((2, 3), (2, 3))])
def test_linspace_broadcasts_its_ends(start, stop, axis):
    a, b = np.asarray(np.random.rand(*start), "f4"), np.asarray(np.random.rand(*stop), "f4")
    expected = np.linspace(*np.broadcast_arrays(a, b), 5, axis=axis)
    for made in [tf.linspace(a, b, 5, axis=axis), tf.function(lambda a, b: tf.linspace(a, b, 5, axis=axis))(a, b)]:
        assert made.shape == expected.shape
        np.testing.assert_allclose(made.numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("start, stop", list(itertools.product([-1.0, 2.5, 0.0, np.nan, np.inf, -np.inf], repeat=2)))
@pytest.mark.parametrize("num", [0, 1, 2, 5])
def test_linspace_ends_are_as_they_were_given(start, stop, num):
    # Python's numbers are a recipe, tensors are computed: both have the ends to the last bit.
    for made in (tf.linspace(start, stop, num), tf.linspace(tf.constant(start), tf.constant(stop), num)):
        made = made.numpy()
        assert made.shape == (num,)
        if num:
            np.testing.assert_array_equal(made[0], np.float32(start))
        if num > 1:
            np.testing.assert_array_equal(made[-1], np.float32(stop))


def test_half_of_a_sum_of_squares_is_a_number_where_the_sum_is_none():
    x = tf.constant([9.223372036854776e18] * 4)
    assert tf.nn.l2_loss(x).numpy() == np.float32(1.7014118e38)


def test_batch_normalization_keeps_the_digits_of_a_small_difference():
    x = tf.constant([1e30, 1e30 * (1 + 2**-20)])
    made = tf.nn.batch_normalization(x, tf.constant([1e30, 1e30]), tf.constant([1.0, 1.0]), tf.constant([0.5, 0.5]), None, 0.0)
    np.testing.assert_allclose(made, (x.numpy().astype("float64") - np.float32(1e30)) + 0.5, rtol=1e-6)
