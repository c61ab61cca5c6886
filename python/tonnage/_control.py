"""Branches and loops that the data decide."""

import builtins

from . import _nest
from . import _tonnage as _t
from .errors import OperatorNotAllowedInGraphError


def _python(value):
    """Whether a condition is Python's, or has its value."""
    return not isinstance(value, (_t.Tensor, _t.Variable)) or not _t.to_tensor(value, None, None).is_symbolic


def cond(pred, true_fn=None, false_fn=None, name=None):
    """What one of two functions returns, as a boolean says. Only that one runs."""
    if not callable(true_fn) or not callable(false_fn):
        raise TypeError("true_fn and false_fn must be callable.")
    if _python(pred):
        return true_fn() if pred else false_fn()
    return _t.cond(pred, true_fn, false_fn)


def case(pred_fn_pairs, default=None, exclusive=False, strict=False, name="case"):
    """What the function of the first condition that holds returns."""
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, dict) else list(pred_fn_pairs)
    if not pairs:
        raise ValueError("pred_fn_pairs must be a non-empty list of pairs")
    if default is None:
        *pairs, (_, default) = pairs
    if not pairs:
        return default()
    (pred, fn), *rest = pairs
    if rest:
        return cond(pred, fn, lambda: case(rest, default))
    return cond(pred, fn, default)


def switch_case(branch_index, branch_fns, default=None, name="switch_case"):
    """What the function of that number returns; the last, or the default, where there is none."""
    if isinstance(branch_fns, dict):
        branch_fns = list(branch_fns.items())
    if branch_fns and isinstance(branch_fns[0], tuple):
        table = dict(branch_fns)
        last = default or table[max(table)]
        branches = [table.get(i, last) for i in builtins.range(max(table) + 1)]
    else:
        branches = list(branch_fns)
    branches.append(default or branches[-1])
    if _python(branch_index):
        at = int(branch_index)
        return branches[at if 0 <= at < len(branches) else -1]()
    return _t.switch(branch_index, branches)


def while_loop(cond, body, loop_vars, shape_invariants=None, parallel_iterations=10, back_prop=True,
               swap_memory=False, maximum_iterations=None, name=None, checkpoints=None):
    """Runs a body as long as a condition holds, in the memory of one round.

    Its gradient keeps carried values only, at checkpoints: ``checkpoints`` says how many, ``swap_memory`` that there be
    few (the rest is computed again). ``parallel_iterations`` has nothing to do: a round's ops run on all threads.
    """
    if not callable(cond) or not callable(body):
        raise TypeError("'cond' and 'body' must be callable.")
    if not loop_vars and not isinstance(loop_vars, (_t.Tensor, _t.Variable)):
        raise ValueError("'loop_vars' must be provided.")
    single = not isinstance(loop_vars, (list, tuple))
    start = [loop_vars] if single else list(loop_vars)
    start = _nest.map_structure(_as_tensor, start)
    if shape_invariants is not None:
        _check_invariants(_nest.flatten(start), _flat_shapes(shape_invariants))
    most = None
    if maximum_iterations is not None:
        most = int(maximum_iterations)
    if swap_memory and checkpoints is None:
        checkpoints = 2

    def run_body(state):
        made = body(*state)
        made = [made] if single or not isinstance(made, (list, tuple)) else list(made)
        if len(made) != len(state):
            raise ValueError(f"The number of inputs and outputs of the body must match, got {len(state)} and "
                             f"{len(made)}")
        if not back_prop:
            made = _nest.map_structure(lambda t: _t.stop_gradient(t) if _floats(t) else t, made)
        return [_like(m, s) for m, s in zip(made, state)]

    try:
        made = _t.while_loop(lambda state: cond(*state), run_body, start, most, checkpoints)
    except OperatorNotAllowedInGraphError:
        if _t.is_symbolic():
            raise
        made = _python_loop(cond, run_body, start, most)  # it looks at values: then as Python runs it
    if single:
        return made[0]
    return type(loop_vars)(made) if type(loop_vars) in (list, tuple) else made


def _python_loop(cond, body, state, most):
    rounds = 0
    while bool(cond(*state)) and (most is None or rounds < most):
        state = body(state)
        rounds += 1
    return state


def _as_tensor(value):
    if hasattr(value, "_tonnage_flatten"):
        return value
    return _t.to_tensor(value, None, None)


def _floats(value):
    return isinstance(value, _t.Tensor) and value.dtype.is_floating


def _like(made, before):
    """What a body returned, in the dtype that it was given."""
    if isinstance(before, _t.Tensor) and not isinstance(made, (_t.Tensor, _t.Variable)):
        return _t.to_tensor(made, None, before.dtype)
    return made


def _flat_shapes(shapes):
    if isinstance(shapes, (list, tuple)) and any(hasattr(s, "rank") or isinstance(s, (list, tuple)) for s in shapes):
        return [leaf for shape in shapes for leaf in _flat_shapes(shape)]
    return [shapes]


def _check_invariants(values, shapes):
    from ._shape import TensorShape, TensorSpec

    for value, shape in zip(values, shapes):
        shape = shape.shape if isinstance(shape, TensorSpec) else TensorShape(shape)
        if not shape.is_compatible_with(value.shape):
            raise ValueError(f"The shape invariant {shape} is not compatible with the initial shape {value.shape}")


def map_fn(fn, elems, dtype=None, parallel_iterations=None, back_prop=True, swap_memory=False, infer_shape=True,
           name=None, fn_output_signature=None):
    """What a function makes of every row, stacked. Runs in the memory of one round."""
    wanted = fn_output_signature if fn_output_signature is not None else dtype

    def run(row):
        made = fn(row)
        if wanted is not None and not _nest.is_nested(made) and not _nest.is_nested(wanted):
            made = _t.to_tensor(made, getattr(wanted, "dtype", wanted), None)
        return made

    return _t.map_rows(run, elems)


def vectorized_map(fn, elems, fallback_to_while_loop=True, warn=True):
    """What a function makes of every row, stacked."""
    return _t.map_rows(fn, elems)


def scan(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, infer_shape=True,
         reverse=False, name=None):
    """All states of a fold along the first axis, stacked."""
    if initializer is None:
        first = _nest.map_structure(lambda e: _t.to_tensor(e, None, None), elems)
        at = -1 if reverse else 0
        start = _nest.map_structure(lambda e: e[at], first)
        rest = _nest.map_structure(lambda e: e[:-1] if reverse else e[1:], first)
        _, rows = _t.scan(lambda s, row: _twice(fn(s, row)), start, rest, reverse)
        ends = _nest.map_structure(lambda s: _t.expand_dims(s, 0), start)
        join = (lambda a, b: _t.concat([b, a], 0)) if reverse else (lambda a, b: _t.concat([a, b], 0))
        return _nest.map_structure(join, ends, rows)
    start = _nest.map_structure(lambda v: _t.to_tensor(v, None, None), initializer)

    def step(state, row):
        made = fn(state, row)
        made = _nest.map_structure(lambda m, s: _like(m, s), made, state) if _nest.is_nested(state) else _like(made, state)
        return _twice(made)

    return _t.scan(step, start, elems, bool(reverse))[1]


def _twice(value):
    return value, value


def _fold(fn, elems, initializer, reverse):
    elems = _nest.map_structure(lambda e: _t.to_tensor(e, None, None), elems)
    if initializer is None:
        at = -1 if reverse else 0
        initializer = _nest.map_structure(lambda e: e[at], elems)
        elems = _nest.map_structure(lambda e: e[:-1] if reverse else e[1:], elems)
    start = _nest.map_structure(lambda v: _t.to_tensor(v, None, None), initializer)
    return _t.scan(lambda state, row: (_like(fn(state, row), state), []), start, elems, reverse)[0]


def foldl(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, name=None):
    """The last state of a fold along the first axis. Runs in the memory of one round."""
    return _fold(fn, elems, initializer, False)


def foldr(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, name=None):
    """The same from the other end."""
    return _fold(fn, elems, initializer, True)


class TensorArray:
    """Tensors by number: a buffer whose rows are written in place. In loops it needs a ``size`` and an
    ``element_shape``; outside it finds the shape itself and grows."""

    def __init__(self, dtype, size=None, dynamic_size=None, clear_after_read=None, tensor_array_name=None,
                 handle=None, flow=None, infer_shape=True, element_shape=None, colocate_with_first_write_call=True,
                 name=None):
        self.dtype = _t.DType(dtype)
        self._size = 0 if size is None else int(size)
        self._dynamic = bool(dynamic_size)
        self._rows = None
        if element_shape is not None and self._size:
            from ._shape import TensorShape

            shape = TensorShape(element_shape)
            if shape.is_fully_defined():
                self._rows = _t.fill([self._size] + shape.as_list(), 0, self.dtype)

    @classmethod
    def _of(cls, dtype, size, dynamic, rows):
        made = cls.__new__(cls)
        made.dtype, made._size, made._dynamic, made._rows = dtype, size, dynamic, rows
        return made

    def _tonnage_flatten(self):
        dtype, size, dynamic = self.dtype, self._size, self._dynamic
        if self._rows is None:
            raise ValueError("a TensorArray that a loop carries needs a size and an element_shape, or a first write "
                             "before the loop")
        return [self._rows], lambda rows: TensorArray._of(dtype, size, dynamic, rows)

    @property
    def element_shape(self):
        """The shape of its tensors."""
        from ._shape import TensorShape

        return TensorShape(None if self._rows is None else self._rows.lengths[1:])

    def size(self, name=None):
        """How many there are."""
        return _t.to_tensor(self._size, "int32", None)

    def write(self, index, value, name=None):
        """An array with another tensor at a number."""
        value = _t.to_tensor(value, None, self.dtype)
        if value.dtype != self.dtype:
            raise ValueError(f"a TensorArray of {self.dtype!r} takes no {value.dtype!r}")
        rows, size = self._rows, self._size
        at = index if isinstance(index, _t.Tensor) and index.is_symbolic else int(index)
        if isinstance(at, int) and at >= size:
            if not self._dynamic:
                from .errors import OutOfRangeError

                raise OutOfRangeError(None, None, f"Tried to write to index {at} but array size is: {size}")
            more = at + 1 - size
            size = at + 1
            if rows is not None:
                rows = _t.concat([rows, _t.fill([more] + value.lengths, 0, self.dtype)], 0)
        if rows is None:
            rows = _t.fill([max(size, 1)] + value.lengths, 0, self.dtype)
        start = [at] + [0] * value.ndim
        start = _t.cast(_t.stack(start, 0), "int32") if not isinstance(at, int) else _t.to_tensor(start, "int32", None)
        return TensorArray._of(self.dtype, size, self._dynamic, _t.dynamic_update(rows, _t.expand_dims(value, 0), start))

    def read(self, index, name=None):
        """The tensor at a number."""
        self._there()
        return self._rows[index]

    def stack(self, name=None):
        """All of them as one tensor."""
        self._there()
        return self._rows

    def concat(self, name=None):
        """All of them one after the other."""
        self._there()
        lengths = self._rows.lengths
        return _t.reshape(self._rows, [lengths[0] * lengths[1]] + lengths[2:])

    def gather(self, indices, name=None):
        """Some of them as one tensor."""
        self._there()
        return _t.gather(self._rows, indices, 0, 0)

    def unstack(self, value, name=None):
        """An array of the rows of a tensor."""
        value = _t.to_tensor(value, None, self.dtype)
        return TensorArray._of(self.dtype, value.lengths[0], self._dynamic, value)

    def identity(self):
        """Itself."""
        return self

    def close(self, name=None):
        """There is nothing to close."""

    def _there(self):
        if self._rows is None:
            raise ValueError("nothing was written to this TensorArray yet")

    def __len__(self):
        return self._size
