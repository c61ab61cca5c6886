"""Tensors: making them, operators, indexing, NumPy, text."""

import pickle

import numpy as np
import pytest

import tonnage as tf


@pytest.mark.parametrize("value, dtype, shape", [
    (1, "int32", ()), (2**40, "int64", ()), (1.5, "float32", ()), (True, "bool", ()),
    ([1, 2], "int32", (2,)), ([[1.0, 2]], "float32", (1, 2)), ([], "float32", (0,)), ((1, 2, 3), "int32", (3,)),
    (np.ones([2, 3]), "float64", (2, 3)), (np.int8(3), "int8", ()), (np.arange(4, dtype=np.uint16), "uint16", (4,)),
])
def test_data_take_tensorflows_dtypes(value, dtype, shape):
    x = tf.constant(value)
    assert x.dtype.name == dtype and tuple(x.shape) == shape
    np.testing.assert_array_equal(x.numpy(), np.asarray(value))


@pytest.mark.parametrize("bad, error", [
    ([[1], [1, 2]], ValueError), ([1, [2]], ValueError), (None, ValueError), ({"text": 1}, ValueError),
    (object(), ValueError), ([1, "a"], ValueError), ({"a": 1}, ValueError), ([True, 1], ValueError),
])
def test_what_is_no_tensor_is_refused(bad, error):
    with pytest.raises(error):
        tf.constant(bad)


def test_a_wanted_dtype_is_had_or_an_error():
    assert tf.constant([1, 2], tf.float32).dtype == tf.float32
    with pytest.raises(TypeError):
        tf.constant([1.5], tf.int32)
    with pytest.raises((TypeError, ValueError)):
        tf.constant(300, tf.uint8)
    with pytest.raises(ValueError):
        tf.convert_to_tensor(tf.constant(1.0), tf.float64)


def test_operators_agree_with_numpy():
    a, b = np.array([[1.0, -2.0], [3.5, 4.0]], np.float32), np.array([2.0, 5.0], np.float32)
    x, y = tf.constant(a), tf.constant(b)
    for make in [lambda p, q: p + q, lambda p, q: p - q, lambda p, q: p * q, lambda p, q: p / q, lambda p, q: p // q,
                 lambda p, q: p % q, lambda p, q: abs(p) ** q, lambda p, q: -p, lambda p, q: p < q, lambda p, q: p >= q,
                 lambda p, q: p == q, lambda p, q: p != q, lambda p, q: 2 + p, lambda p, q: 1.0 - p, lambda p, q: 3 * p,
                 lambda p, q: 2.0 / q, lambda p, q: p @ p]:
        np.testing.assert_allclose(make(x, y).numpy(), make(a, b), rtol=1e-6)
    i, j = np.array([6, 3]), np.array([3, 5])
    p, q = tf.constant(i), tf.constant(j)
    for make in [lambda a, b: a & b, lambda a, b: a | b, lambda a, b: a ^ b, lambda a, b: ~a, lambda a, b: a << 1,
                 lambda a, b: a >> 1, lambda a, b: a / b, lambda a, b: a // b, lambda a, b: a % b]:
        np.testing.assert_array_equal(make(p, q).numpy(), make(i, j))
    flags = tf.constant([True, False])
    assert (~flags & True).numpy().tolist() == [False, True]


def test_numpy_on_the_left_gives_a_tensor():
    made = np.ones([2], np.float32) + tf.constant([1.0, 2.0])
    assert isinstance(made, tf.Tensor) and made.numpy().tolist() == [2.0, 3.0]


def test_dtypes_are_never_mixed_silently():
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.constant(1.0) + tf.constant(1)
    with pytest.raises((TypeError, ValueError)):
        tf.constant([1, 2]) + 0.5
    assert (tf.constant([1.0]) + np.array([2.0])).dtype == tf.float32


def test_unequal_things_compare_as_unequal():
    x = tf.constant([1.0, 2.0])
    assert not (x == None) and (x != "a") and not (x == tf.constant([1.0, 2.0, 3.0]))  # noqa: E711
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    assert x.ref() == x.ref() and x.ref().deref() is x


@pytest.mark.parametrize("key", [
    0, -1, slice(1, None), slice(None, None, -1), (0, 1), (slice(None), 1), (Ellipsis, 0), (None, 1), (1, Ellipsis, None),
    (slice(0, 2), slice(None, None, 2)), (slice(5, 9), 0), np.int64(1),
])
def test_indexing_agrees_with_numpy(key):
    a = np.arange(24).reshape(3, 2, 4)
    np.testing.assert_array_equal(tf.constant(a)[key].numpy(), a[key])


def test_indexing_by_tensors():
    x = tf.constant([[1, 2], [3, 4], [5, 6]])
    assert x[tf.constant(1)].numpy().tolist() == [3, 4]
    assert x[x[:, 0] > 1].numpy().tolist() == [[3, 4], [5, 6]]
    with pytest.raises(IndexError):
        x[3]
    with pytest.raises(TypeError):
        x["a"]
    assert [row.numpy().tolist() for row in x] == [[1, 2], [3, 4], [5, 6]]


def test_numbers_of_tensors():
    assert int(tf.constant(3)) == 3 and float(tf.constant(1.5)) == 1.5 and bool(tf.constant(True))
    assert len(tf.zeros([4, 2])) == 4 and list(range(tf.constant(2))) == [0, 1]
    for bad in [lambda: len(tf.constant(1)), lambda: int(tf.constant([1, 2])), lambda: bool(tf.zeros([0]))]:
        with pytest.raises((TypeError, ValueError)):
            bad()


def test_text_reads_like_tensorflows():
    x = tf.constant([1.0, 2.0])
    assert repr(x) == "<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>"
    assert str(x) == "tf.Tensor([1. 2.], shape=(2,), dtype=float32)"
    assert str(tf.constant(3)) == "tf.Tensor(3, shape=(), dtype=int32)"
    assert repr(tf.constant(3)) == "<tf.Tensor: shape=(), dtype=int32, numpy=3>"
    assert str(tf.constant([[True], [False]])) == "tf.Tensor(\n[[ True]\n [False]], shape=(2, 1), dtype=bool)"
    assert f"{tf.constant(1.23456):.2f}" == "1.23" and repr(tf.float32) == "tf.float32"
    assert "shape=(1000, 1000, 1000)" in repr(tf.random.normal([1000, 1000, 1000]))


def test_arrays_are_views_that_nobody_can_write():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]]) * 2.0
    a = x.numpy()
    assert not a.flags.writeable and np.shares_memory(a, x.numpy())
    assert tf.transpose(x).numpy().tolist() == a.T.tolist()
    del x
    assert a.tolist() == [[2.0, 4.0], [6.0, 8.0]]


def test_one_number_everywhere_is_an_array_without_strides():
    a = tf.constant(1.0, shape=[1000, 1000, 1000]).numpy()
    assert type(a) is np.ndarray and a.shape == (1000, 1000, 1000) and a.strides == (0, 0, 0)
    assert not a.flags.writeable and a[5, 5, 5] == 1.0


def test_a_variables_array_keeps_its_values():
    v = tf.Variable([1.0, 2.0])
    before = v.numpy()
    v.assign_add([1.0, 1.0])
    assert before.tolist() == [1.0, 2.0] and v.numpy().tolist() == [2.0, 3.0]


def test_arrays_of_any_layout_and_byte_order_come_in():
    a = np.arange(6, dtype=">i4").reshape(2, 3).T
    assert tf.constant(a).numpy().tolist() == a.tolist()
    assert tf.constant(np.float16([1.5])).dtype == tf.float16


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32",
                                   "uint16", "uint8", "bool"])
def test_every_dtype_goes_to_numpy_and_back(dtype):
    a = np.array([[0, 1], [1, 0]]).astype(dtype)
    x = tf.constant(a)
    assert x.dtype == dtype and x.numpy().dtype == a.dtype
    np.testing.assert_array_equal(x.numpy(), a)
    assert pickle.loads(pickle.dumps(x)).numpy().tolist() == a.tolist()


def test_shapes_behave_like_tensorflows():
    shape = tf.zeros([2, 3]).shape
    assert shape == (2, 3) and shape == [2, 3] and shape[0] == 2 and shape.as_list() == [2, 3]
    assert f"{shape}" == "(2, 3)" and repr(shape) == "TensorShape([2, 3])" and shape.num_elements() == 6
    assert tf.TensorShape([None, 3]).is_compatible_with([2, 3]) and not tf.TensorShape([None]).is_fully_defined()


def test_a_name_that_is_not_there_says_the_nearest():
    with pytest.raises(AttributeError, match="reduce_sum"):
        tf.reduce_summ
    with pytest.raises(AttributeError, match="softmax"):
        tf.nn.softmaxx


def arrays_of(dtype):
    """An array of a dtype as it may lie: in either order, with gaps, turned around, unaligned, in the other order of bytes, read-only, without elements or axes."""
    plain = (np.arange(24) % 2 if dtype == np.bool_ else np.arange(24)).astype(dtype).reshape(2, 3, 4)
    shifted = np.frombuffer(b"\0" + plain.tobytes(), np.uint8)[1:].view(dtype)
    fixed = plain.copy()
    fixed.flags.writeable = False
    subclass = plain.view(type("Own", (np.ndarray,), {}))
    return [plain, np.asfortranarray(plain), plain[:, ::2], plain[::-1], plain.T, plain[:0], plain[0, 0, 0], np.array(plain[1, 2, 3]), plain[:, :1],
            shifted, plain.astype(plain.dtype.newbyteorder()), fixed, subclass]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "longlong", "float16", "float32",
                                   "float64"])
def test_arrays_become_tensors_of_their_numbers_however_they_lie(dtype):
    for array in arrays_of(np.dtype(dtype)):
        made = tf.constant(array)
        assert made.dtype.name == np.dtype(dtype).newbyteorder("=").name
        assert made.shape == array.shape
        assert np.array_equal(made.numpy(), array)
        wide = tf.constant(array, tf.float64)
        assert wide.dtype == tf.float64 and np.array_equal(wide.numpy(), array.astype(np.float64))
        kept = made.numpy().copy()
        if array.size and array.flags.writeable:
            array[...] = 1 - array
            assert np.array_equal(made.numpy(), kept), "a copy, not a view"
