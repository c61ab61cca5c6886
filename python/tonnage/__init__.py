"""Tonnage under TensorFlow's names: ``import tonnage as tf``.

Every byte is planned and accounted for. The peak of a function is known before it runs (:func:`memory.plan`), and a
budget is a contract (``tf.function(budget="512MiB")``).

>>> import tonnage as tf
>>> x = tf.constant(1.0, shape=[1000, 1000, 1000])   # takes no memory
>>> float(tf.reduce_sum(x * 2.0 + 1.0))
3000000000.0
"""

import os as _os

from . import _tonnage as _t

_t.pass_over_folder(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)

if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_t.after_fork)

from . import _shape, errors  # noqa: E402, F401

_t.set_error_classes(errors)
_t.set_sugar(_shape)

from . import _notices  # noqa: E402, F401
from ._shape import Dimension, IndexedSlices, StandIn, TensorShape, TensorSpec, TypeSpec  # noqa: E402, F401
from ._tensor import Tensor  # noqa: E402, F401
from . import _strings  # noqa: E402, F401
from ._complex import complex  # noqa: E402, F401
from ._array import *  # noqa: E402, F401, F403
from ._array import range, slice  # noqa: E402, F401
from ._index import *  # noqa: E402, F401, F403
from . import bitwise, config, debugging, linalg, math, nn, random, signal  # noqa: E402, F401
from . import _nest as nest  # noqa: E402, F401
from .math import (  # noqa: E402, F401
    abs, acos, acosh, add, add_n, argmax, argmin, asin, asinh, atan, atan2, atanh, clip_by_global_norm, clip_by_norm,
    clip_by_value, cos, cosh, cumsum, divide, equal, exp, floor, global_norm, greater, greater_equal, less, less_equal,
    logical_and, logical_not, logical_or, maximum, minimum, multiply, negative, not_equal, pow, reduce_all, reduce_any,
    reduce_logsumexp, reduce_max, reduce_mean, reduce_min, reduce_prod, reduce_sum, round, scalar_mul, sigmoid, sign,
    sin, sinh, sqrt, square, subtract, tan, tanh, truediv,
)
from .linalg import einsum, matmul, norm, tensordot  # noqa: E402, F401
from .nn import depth_to_space, space_to_depth  # noqa: E402, F401
from .module import Module, control_dependencies, group, name_scope, no_op  # noqa: E402, F401
from ._variable import Variable  # noqa: E402, F401
from ._gradient import (  # noqa: E402, F401
    GradientTape, UnconnectedGradients, custom_gradient, gradients, hessians, recompute_grad, stop_gradient,
)
from ._function import function, numpy_function, py_function  # noqa: E402, F401
from ._control import (  # noqa: E402, F401
    case, cond, foldl, foldr, map_fn, scan, switch_case, vectorized_map, while_loop,
)
from ._tensor_array import TensorArray  # noqa: E402, F401
from ._print import print  # noqa: E402, F401
from .config import device  # noqa: E402, F401
from .debugging import Assert, assert_equal, assert_greater, assert_less, assert_rank  # noqa: E402, F401
from . import memory  # noqa: E402, F401

DType = _t.DType

float64 = double = _t.dtype("float64")
float32 = _t.dtype("float32")
float16 = half = _t.dtype("float16")
bfloat16 = _t.dtype("bfloat16")
int64 = _t.dtype("int64")
int32 = _t.dtype("int32")
int16 = _t.dtype("int16")
int8 = _t.dtype("int8")
uint64 = _t.dtype("uint64")
uint32 = _t.dtype("uint32")
uint16 = _t.dtype("uint16")
uint8 = _t.dtype("uint8")
bool = _t.dtype("bool")  # noqa: A001
string = _t.dtype("string")
newaxis = None
__version__ = "0.1.0"


class version:
    """``tf.version``."""

    VERSION = __version__


def as_dtype(type_value):
    """A dtype by its name."""
    return _t.dtype(type_value)


class dtypes:
    """``tf.dtypes``."""

    as_dtype = staticmethod(as_dtype)
    cast = staticmethod(cast)  # noqa: F405
    saturate_cast = staticmethod(saturate_cast)  # noqa: F405
    complex = staticmethod(complex)
    DType = DType


for _name in ("float64 double float32 float16 half bfloat16 int64 int32 int16 int8 uint64 uint32 uint16 uint8 "
              "bool string").split():
    setattr(dtypes, _name, globals()[_name])


def executing_eagerly():
    """Whether ops run at once."""
    return not _t.is_symbolic()


def is_tensor(x):
    """Whether it is a tensor or a variable."""
    return isinstance(x, (_t.Tensor, _t.Variable, StandIn))


def inside_function():
    """Whether a function is being traced."""
    return _t.is_tracing()


class init_scope:
    """What runs inside of ``with`` runs at once, whatever is traced."""

    def __enter__(self):
        _t.enter_eager()

    def __exit__(self, *exception):
        _t.leave_eager()


def install():
    """Serves ``import tensorflow`` by Tonnage from here on: programs for TensorFlow, and Keras from the registry, run on it.

    Call it before either is imported, or start a program with ``python -m tonnage program.py``.
    """
    from ._as_tensorflow import install as installed

    installed()


_LAZY = {
    "distribute": ".distribute", "io": ".io", "sparse": ".sparse", "sets": ".sets", "lookup": ".lookup", "image": ".image", "raw_ops": ".raw_ops", "compat": ".compat", "keras": ".keras", "autograph": ".autograph", "data": ".data", "train": ".train",
    "onnx": ".onnx", "profiler": ".profiler", "experimental": ".experimental", "test": ".test",
    "strings": ".strings", "initializers": ".keras.initializers", "losses": ".keras.losses", "metrics": ".keras.metrics",
    "optimizers": ".keras.optimizers",
}
_FROM = {
    "VariableAggregation": "._composite", "VariableSynchronization": "._composite", "SparseTensor": ".sparse",
    "SparseTensorSpec": ".sparse", "RaggedTensor": "._ragged", "RaggedTensorSpec": "._ragged",
}
_FROM_KERAS = {
    "zeros_initializer": "Zeros", "ones_initializer": "Ones", "constant_initializer": "Constant",
    "random_normal_initializer": "RandomNormal", "random_uniform_initializer": "RandomUniform",
}

def __getattr__(name):
    import importlib

    if name in _LAZY:
        return importlib.import_module(_LAZY[name], __name__)
    if name in _FROM:
        found = globals()[name] = getattr(importlib.import_module(_FROM[name], __name__), name)
        return found
    if name in _FROM_KERAS:
        return getattr(importlib.import_module(".keras.initializers", __name__), _FROM_KERAS[name])
    from ._missing import missing

    raise missing(__name__, name, globals() | dict.fromkeys([*_LAZY, *_FROM, *_FROM_KERAS]))


def __dir__():
    return sorted([*globals(), *_LAZY, *_FROM, *_FROM_KERAS])
