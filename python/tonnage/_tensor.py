"""What the tensor of the extension has besides: NumPy, text, iteration, and TensorFlow's small methods."""

from . import _tonnage as _t
from ._shape import TensorShape
from .errors import DataDecideError, OperatorNotAllowedInGraphError

Tensor = _t.Tensor


def _numpy(self):
    """Its values as a NumPy array, without a copy and so read-only; a tensor without axes as a NumPy scalar.

    One number everywhere is an array whose strides are zero: it takes no memory either.
    """
    import numpy as np

    if self.is_symbolic:
        raise NotImplementedError(
            "numpy() of a symbolic tensor: it has no values while a function is traced; return it, or use "
            "tf.py_function"
        )
    dtype = self.dtype
    if dtype == _t.DType("bfloat16"):
        try:
            import ml_dtypes

            array = np.asarray(self.export()).view(ml_dtypes.bfloat16)
        except ImportError:
            array = _t.cast(self, "float32").numpy()
        return array[()] if self.ndim == 0 else array
    if self.ndim > 0:
        value = self.fill_value()
        if value is not None:
            return np.broadcast_to(np.asarray(value, dtype.as_numpy_dtype), self.lengths)
    array = np.asarray(self.export())
    return array[()] if self.ndim == 0 else array


def _array(self, dtype=None, copy=None):
    import numpy as np

    array = np.asarray(self.numpy())
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


def _iter(self):
    if self.ndim == 0:
        raise TypeError("Cannot iterate over a scalar tensor.")
    length = self.lengths[0]
    if length is None:
        raise OperatorNotAllowedInGraphError(
            "Iterating over a symbolic tensor whose first length is open; use tf.map_fn, tf.scan, or a `for` loop "
            "in a tf.function"
        )
    return (self[i] for i in range(length))


def _shape_text(self):
    return str(TensorShape(self.lengths))


def _str(self):
    if self.is_symbolic:
        return f'Tensor("{self.name}", shape={_shape_text(self)}, dtype={self.dtype.name})'
    text = self.text()
    gap = "\n" if "\n" in text or self.ndim > 1 else ""
    return f"tf.Tensor({gap}{text}, shape={_shape_text(self)}, dtype={self.dtype.name})"


def _repr(self):
    if self.is_symbolic:
        return f"<tf.Tensor '{self.name}' shape={_shape_text(self)} dtype={self.dtype.name}>"
    count = TensorShape(self.lengths).num_elements()
    if count <= 1000:
        text = repr(self.numpy()) if self.ndim else str(self.numpy())
    else:
        # Reads no more than is shown: a tensor that takes no memory takes none after it was printed.
        text = f"array({self.text()}, dtype={self.dtype.name})"
    gap = "\n" if "\n" in text else ""
    return f"<tf.Tensor: shape={_shape_text(self)}, dtype={self.dtype.name}, numpy={gap}{text}>"


def _format(self, spec):
    if self.is_symbolic or not spec:
        return format(str(self), spec)
    return format(self.numpy(), spec)


class Ref:
    """A tensor or a variable as a key: equal to refs of the same one."""

    __slots__ = ("_of", "_key")

    def __init__(self, of, key):
        self._of = of
        self._key = key

    def deref(self):
        """What it refers to."""
        return self._of

    def __eq__(self, other):
        return isinstance(other, Ref) and self._key == other._key

    def __hash__(self):
        return hash(self._key)

    def __repr__(self):
        return f"<Reference wrapping {self._of!r}>"


def _set_shape(self, shape):
    if getattr(self, "_shape_is_guessed", False) and not self.shape.is_compatible_with(shape):
        raise DataDecideError("the shape of what Python returns")
    self.shape.assert_is_compatible_with(shape)


def _eval(self, feed_dict=None, session=None):
    from .compat import v1

    session = session or v1.get_default_session()
    if session is None:
        return self.numpy()
    return session.run(self, feed_dict)


def _name(self):
    return getattr(self, "_name", None) or f"Tensor_{self.identity & 0xFFFFFFFF}:0"


def _set_name(self, name):
    self._name = name


def _reduce(self):
    return _t.to_tensor, (self.numpy(), self.dtype, None)


def _dlpack(self, **kwargs):
    """For another framework; see ``tf.experimental.dlpack``."""
    from .experimental import exported

    return exported(self, **kwargs)


def _dlpack_device(self):
    """Its device as DLPack knows it: a kind and a number."""
    from .experimental import _device_of

    return _device_of(self)


def _cpu(self):
    """The same values in host memory: itself where it lies there, otherwise a copy."""
    return _t.copied_to(self, "cpu:0")


def _gpu(self, gpu_index=0):
    """The same values on a GPU: itself where it lies there, otherwise a copy."""
    from .config import _device

    return _t.copied_to(self, _device(f"/GPU:{int(gpu_index)}"))


def _install():
    Tensor.numpy = _numpy
    Tensor.__array__ = _array
    Tensor.__array_priority__ = 100
    Tensor.__iter__ = _iter
    Tensor.__str__ = _str
    Tensor.__repr__ = _repr
    Tensor.__format__ = _format
    Tensor.__round__ = lambda self, digits=0: _t.to_tensor(self.numpy().round(digits), None, None)
    Tensor.__copy__ = lambda self: self
    Tensor.__deepcopy__ = lambda self, memo: self
    Tensor.__reduce__ = _reduce
    Tensor.__dlpack__ = _dlpack
    Tensor.__dlpack_device__ = _dlpack_device
    Tensor.ref = lambda self: Ref(self, ("tensor", self.identity))
    Tensor.get_shape = lambda self: self.shape
    Tensor.set_shape = _set_shape
    Tensor.eval = _eval
    Tensor.name = property(_name, _set_name)
    Tensor.cpu = _cpu
    Tensor.gpu = _gpu
    Tensor.op = property(lambda self: self)
    # Which op made a tensor is not kept, so that one kind stands for all.
    Tensor.type = property(lambda self: "Tensor")
    Tensor.graph = property(_graph)
    Tensor.experimental_ref = Tensor.ref


def _graph(self):
    if not self.is_symbolic:
        raise AttributeError("Tensor.graph is undefined when eager execution is enabled.")
    from .compat import v1

    return v1.get_default_graph()


_install()
