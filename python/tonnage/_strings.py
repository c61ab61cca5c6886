"""What the tensor of strings of the extension has besides: NumPy and text. It is a ``tf.Tensor`` to programs, with ``tf.string`` as its dtype."""

from . import _tensor
from . import _tonnage as _t

Strings = _t.StringTensor


def _numpy(self):
    """Its values as a NumPy array of bytes; without axes as bytes."""
    import numpy as np

    if self.is_symbolic:
        raise NotImplementedError("numpy() of a symbolic tensor: it has no values while a function is traced; return it, or use tf.py_function")
    elements = self.elements()
    if not self.ndim:
        return elements[0]
    array = np.empty(len(elements), object)
    array[:] = elements
    return array.reshape(self.lengths)


def _array(self, dtype=None, copy=None):
    import numpy as np

    array = np.asarray(self.numpy(), None if self.ndim else object)
    return array if dtype is None or array.dtype == dtype else array.astype(dtype)


def _str(self):
    if self.is_symbolic:
        return f'Tensor("{self.name}", shape={self.shape}, dtype=string)'
    text = str(self.numpy())
    return f"tf.Tensor({chr(10) if self.ndim > 1 else ''}{text}, shape={self.shape}, dtype=string)"


def _repr(self):
    if self.is_symbolic:
        return f"<tf.Tensor '{self.name}' shape={self.shape} dtype=string>"
    text = repr(self.numpy())
    return f"<tf.Tensor: shape={self.shape}, dtype=string, numpy={chr(10) if chr(10) in text else ''}{text}>"


def _format(self, spec):
    return format(str(self) if self.is_symbolic else self.numpy(), spec)


def _set_shape(self, shape):
    self.shape.assert_is_compatible_with(shape)


def _install():
    Strings.numpy = _numpy
    Strings.__array__ = _array
    Strings.__array_priority__ = 100
    Strings.__str__ = _str
    Strings.__repr__ = _repr
    Strings.__format__ = _format
    Strings.set_shape = _set_shape
    Strings.cpu = lambda self: self
    Strings.gpu = lambda self, gpu_index=0: self
    for name in ("__iter__", "__copy__", "__deepcopy__", "__reduce__", "ref", "get_shape", "eval", "name", "op", "type", "graph", "experimental_ref"):
        setattr(Strings, name, _tensor.Tensor.__dict__[name])


_install()
