"""``tf.__internal__``, and what Keras imports of TensorFlow's inner modules: as much as that, and nothing more."""

import contextlib
import inspect

import tonnage
from tonnage import _tonnage as _t
from tonnage._array import dynamic_update_slice
from tonnage._shape import StandIn
from tonnage.config import _determinism
from tonnage.compat._graph import Graph

from . import tracking


class _HasValues(type):
    def __instancecheck__(cls, value):
        return isinstance(value, _t.Tensor) and not value.is_symbolic


class EagerTensor(metaclass=_HasValues):
    """For ``isinstance``: tensors that have values."""


class CompositeTensor:
    """What is made of several tensors. Those of Tonnage (``IndexedSlices``) say so themselves."""


class FuncGraph(Graph):
    """A graph to try a computation in: Keras finds the shapes of results so."""

    def __new__(cls, name):
        return super().__new__(cls)

    def __init__(self, name):
        super().__init__()
        self.name = name

    @contextlib.contextmanager
    def as_default(self):
        """Lets ops go into it inside of ``with``, whatever else is traced: a layer may be built while a function is."""
        with tonnage.init_scope(), super().as_default():
            yield self


def smart_cond(pred, true_fn=None, false_fn=None, name=None):
    """What one of two functions returns; a condition that is known now decides now."""
    if isinstance(pred, _t.Variable):
        return tonnage.cond(pred, true_fn, false_fn)
    known = pred if not isinstance(pred, _t.Tensor) else tonnage.get_static_value(pred)
    if known is not None:
        return true_fn() if known else false_fn()
    return tonnage.cond(pred, true_fn, false_fn)


def maybe_merge_call(fn, strategy, *args, **kwargs):
    """Calls a function for all replicas: there is one."""
    return fn(strategy, *args, **kwargs)


@contextlib.contextmanager
def eager_mode():
    """What runs inside of ``with`` runs at once."""
    with tonnage.init_scope():
        yield


_WHILE_LOOP = inspect.signature(tonnage.while_loop)


def while_loop(*args, **kwargs):
    """``tf.while_loop``, with hints that do as little as in TensorFlow: recurrent layers of Keras ask to swap states to host memory, where
    there is a GPU. To Tonnage that would be a file; a budget is what lets states wait there."""
    given = _WHILE_LOOP.bind(*args, **kwargs).arguments
    return tonnage.while_loop(**{name: value for name, value in given.items() if name not in ("parallel_iterations", "swap_memory")})


class _Context:
    """What there is to do for a process: nothing is kept beside functions themselves, and ops do not run behind their caller's back."""

    @staticmethod
    def clear_kernel_cache():
        """There is no cache of kernels."""


class _Tree:
    """A namespace; a name that it has not is an error that says so."""

    def __init__(self, name, **names):
        self.__dict__.update(names)
        self.__name__ = name

    def __getattr__(self, name):
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}: of TensorFlow's inner names Tonnage has those that Keras uses")


def _tree(name, **names):
    return _Tree(f"tensorflow.__internal__{name}", **names)


TREE = _tree(
    "",
    CompositeTensor=CompositeTensor,
    EagerTensor=EagerTensor,
    FuncGraph=FuncGraph,
    distribute=_tree(
        ".distribute",
        interim=_tree(".distribute.interim", maybe_merge_call=maybe_merge_call),
        strategy_supports_no_merge_call=lambda: True,
    ),
    eager_context=_tree(".eager_context", eager_mode=eager_mode),
    smart_cond=_tree(".smart_cond", smart_cond=smart_cond),
    tf2=_tree(".tf2", enabled=lambda: True),
    tracking=_tree(
        ".tracking",
        AutoTrackable=tracking.AutoTrackable,
        Trackable=tracking.Trackable,
        no_automatic_dependency_tracking=tracking.no_automatic_dependency_tracking,
    ),
    types=_tree(".types", Tensor=StandIn),
)

def _sparse_product(a, b, dtype):
    """The product of sparse matrices, or of batches of them."""
    from tonnage import sparse

    return sparse.from_dense(tonnage.matmul(sparse.to_dense(a), sparse.to_dense(b)))


def _sparse(indices, values, dense_shape):
    return tonnage.SparseTensor(indices, values, dense_shape)


# Inner modules by what is imported from them.
_MODULES = {
    "compiler.tf2xla.python.xla": {"dynamic_update_slice": dynamic_update_slice},
    "experimental.dtensor": {},
    "python.eager.context": {"context": _Context, "async_wait": lambda: None},
    "python.framework.config": {
        "disable_op_determinism": lambda: _determinism.update(asked=False),
        "enable_op_determinism": tonnage.config.experimental.enable_op_determinism,
        "is_op_determinism_enabled": lambda: _determinism["asked"],
    },
    "python.ops.linalg.sparse.sparse_csr_matrix_ops": {
        "sparse_tensor_to_csr_sparse_matrix": _sparse,
        "sparse_matrix_sparse_mat_mul": _sparse_product,
        "csr_sparse_matrix_to_sparse_tensor": lambda matrix, dtype: matrix,
    },
    "python.ops.math_ops": {"is_nan": tonnage.math.is_nan},
    "python.trackable.data_structures": {"ListWrapper": tracking.ListWrapper, "_DictWrapper": tracking._DictWrapper},
}


def module(name):
    """What an inner module has, or none where there is no such module."""
    if name in _MODULES:
        return _MODULES[name]
    return {} if any(known.startswith(name + ".") for known in _MODULES) else None
