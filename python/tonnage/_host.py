"""Python in the middle of a program: ``py_function`` and ``numpy_function``."""

from . import _nest
from . import _tonnage as _t
from ._gradient import GradientTape
from ._shape import TensorShape, TensorSpec
from .errors import DataDecideError


def host(func, inp, Tout, arrays):
    """Calls Python with tensors, or with ``arrays`` of NumPy."""
    several = isinstance(Tout, (list, tuple))
    kinds = [k for k in (Tout if several else [Tout]) if k is not None]
    dtypes = [_t.DType(getattr(k, "dtype", k)) for k in kinds]
    inputs = [_t.to_tensor(x, None, None) for x in inp]

    def call(values):
        made = func(*([v.numpy() for v in values] if arrays else values))
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        if not kinds:
            return []
        if len(made) != len(kinds):
            from .errors import InvalidArgumentError

            raise InvalidArgumentError(None, None, f"pyfunc returns {len(made)} values, but expects to see {len(kinds)}")
        return [_t.to_tensor(m, d, None) for m, d in zip(made, dtypes)]

    if not _t.is_symbolic():
        given = [_t.stop_gradient(x) for x in inputs] if arrays else inputs
        made = call(given)
    else:
        made = _planned(call, inputs, kinds, dtypes, arrays)
    return made if several else (made[0] if made else None)


def _planned(call, inputs, kinds, dtypes, arrays):
    shapes = [k.shape if isinstance(k, TensorSpec) else TensorShape(None) for k in kinds]
    if not all(shape.is_fully_defined() for shape in shapes):
        raise DataDecideError("the shape of what Python returns (say it by Tout=tf.TensorSpec(shape, dtype))")
    results = [(d, s.as_list()) for d, s in zip(dtypes, shapes)]
    floats = [i for i, x in enumerate(inputs) if x.dtype.is_floating and None not in x.lengths]
    if arrays or not floats or not kinds:
        return _t.host_callback(call, [_t.stop_gradient(x) if x.dtype.is_floating else x for x in inputs], results)
    types = [(inputs[i].dtype, inputs[i].lengths) for i in floats]

    def forward(symbols):
        def slopes(values):
            # Python again, under a tape: what it computed in between was never here.
            grads, given = values[:len(kinds)], values[len(kinds):]
            with GradientTape() as tape:
                tape.watch([given[i] for i in floats])
                made = call(given)
            found = tape.gradient(made, [given[i] for i in floats], grads, unconnected_gradients="zero")
            return [_t.to_tensor(g, None, None) for g in found]

        def back(grads, inner):
            made = iter(_t.host_callback(slopes, [*_nest.flatten(grads), *inner], types))
            return [next(made) if i in floats else _t.zeros_like(x) for i, x in enumerate(inner)]

        return _t.host_callback(call, list(symbols), results), back

    return _t.custom_gradient(forward, inputs)
