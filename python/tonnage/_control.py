"""Branches and loops that the data decide.

Decision: ``docs/decisions/python-loop-bodies-are-traced.md``.
"""

import builtins

from . import _nest
from . import _tonnage as _t
from .errors import DataDecideError, DTypeError, InvalidArgumentError, OperatorNotAllowedInGraphError
from ._array import get_static_value
from ._notices import ignores


def _python(value):
    """Whether a condition is Python's, or has its value."""
    return not isinstance(value, (_t.Tensor, _t.Variable)) or not _t.to_tensor(value, None, None).is_symbolic


def cond(pred, true_fn=None, false_fn=None, name=None):
    """What one of two functions returns, as a boolean says. Only that one runs.

    >>> x = tf.constant(3)
    >>> int(tf.cond(x > 2, lambda: x * 10, lambda: x))
    30
    """
    if not callable(true_fn) or not callable(false_fn):
        raise TypeError("true_fn and false_fn must be callable.")
    if _python(pred):
        return true_fn() if pred else false_fn()
    return _t.cond(pred, true_fn, false_fn)


@ignores("case", "strict")
def case(pred_fn_pairs, default=None, exclusive=False, strict=False, name="case"):
    """What the function of the first condition that holds returns."""
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, dict) else list(pred_fn_pairs)
    if not pairs and default is None:
        raise ValueError("pred_fn_pairs must be a non-empty list of pairs")
    if exclusive or default is None:
        from .debugging import Assert

        preds = [_t.cast(_t.to_tensor(pred, None, None), "int32") for pred, _ in pairs]
        count = _t.reduce_sum(_t.stack(preds, 0), None, False)
        if exclusive:
            Assert(count <= 1, ["Input error: exclusive=True: more than 1 conditions evaluated as True:", count])
        if default is None:
            Assert(count >= 1, ["Input error: None of conditions evaluated as True:", count])
            *pairs, (_, default) = pairs
    return _first_of(pairs, default)


def _first_of(pairs, default):
    if not pairs:
        return default()
    (pred, fn), *rest = pairs
    return cond(pred, fn, lambda: _first_of(rest, default))


def switch_case(branch_index, branch_fns, default=None, name="switch_case"):
    """What the function of that number returns; the last, or the default, where there is none.

    >>> int(tf.switch_case(tf.constant(1), [lambda: tf.constant(5), lambda: tf.constant(6)]))
    6
    """
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
    """Runs a body as long as a condition holds, in the memory of one iteration.

    Its gradient keeps carried values only, at checkpoints: ``checkpoints`` says how many. With ``swap_memory`` those of
    all iterations wait in a file: memory does not depend on the number of iterations, and in a function whose tape is inside of
    it no iteration runs again. ``parallel_iterations`` has nothing to do: an iteration's ops run on all threads.

    >>> i, total = tf.while_loop(lambda i, t: i < 4, lambda i, t: (i + 1, t + i), [tf.constant(0), tf.constant(0)])
    >>> int(total)
    6
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
    as_python = not _t.is_symbolic() and any(hasattr(leaf, "_changes_structure") for leaf in _nest.flatten(start))
    if not as_python and any(getattr(leaf, "is_shaped", True) is False for leaf in _nest.flatten(start)):
        _find_shapes(body, start)
    _hints("tf.while_loop", parallel_iterations)
    most = get_static_value(maximum_iterations)
    if maximum_iterations is not None and most is None:
        return _counted(cond, body, loop_vars, maximum_iterations, single, back_prop=back_prop, swap_memory=swap_memory,
                        shape_invariants=shape_invariants, checkpoints=checkpoints)
    most = None if most is None else int(most)

    def run_body(state):
        made = body(*state)
        made = [made] if single or not isinstance(made, (list, tuple)) else list(made)
        if len(made) != len(state):
            raise ValueError(f"The number of inputs and outputs of the body must match, got {len(state)} and "
                             f"{len(made)}")
        if not back_prop:
            made = _nest.map_structure(lambda t: _t.stop_gradient(t) if _floats(t) else t, made)
        made = [_like(m, s) for m, s in zip(made, state)]
        if shape_invariants is not None and _t.is_tracing() and _lengths(made) != _lengths(state):
            raise DataDecideError("the shape of a loop variable")
        return made

    try:
        if as_python:
            raise DataDecideError("what a loop carries")
        made = _t.while_loop(lambda state: cond(*state), run_body, start, most, checkpoints,
                            bool(swap_memory))
    except (OperatorNotAllowedInGraphError, DataDecideError, DTypeError):
        if _t.is_symbolic():
            raise
        # It looks at values, or joins Python's numbers with tensors of any dtype: then as Python runs it.
        made = _python_loop(cond, run_body, [loop_vars] if single else list(loop_vars), most)
    if single:
        return made[0]
    return type(loop_vars)(made) if type(loop_vars) in (list, tuple) else made


def _counted(cond, body, loop_vars, most, single, shape_invariants=None, **options):
    """A loop of as many iterations as a tensor says: with a count among what it carries."""
    both = _t.Op("logical_and", "logical_and", ["x", "y"])
    start = [loop_vars] if single else list(loop_vars)
    count = _t.fill([], 0, _t.to_tensor(most, None, None).dtype)
    shapes = None if shape_invariants is None else [None, *([shape_invariants] if single else shape_invariants)]

    def step(at, *state):
        made = body(*state)
        return [at + 1, *([made] if single or not isinstance(made, (list, tuple)) else made)]

    made = while_loop(lambda at, *state: both(at < most, cond(*state)), step, [count, *start], shapes, **options)[1:]
    if single:
        return made[0]
    return type(loop_vars)(made) if type(loop_vars) in (list, tuple) else made


class _Seen(Exception):
    """Ends a trace that was made to see something."""


def _find_shapes(body, start):
    """Runs an iteration for nothing: arrays that have no shape yet learn theirs, which they share with those that are written."""
    def look(state):
        body(*start)
        raise _Seen

    try:
        _t.while_loop(lambda state: _t.to_tensor(True, None, None), look, [_t.to_tensor(0, None, None)])
    except _Seen:
        pass


def _lengths(values):
    return [leaf.lengths for leaf in _nest.flatten(values) if isinstance(leaf, _t.Tensor)]


def _python_loop(cond, body, state, most):
    iterations = 0
    while bool(cond(*state)) and (most is None or iterations < most):
        state = body(state)
        iterations += 1
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
    """What a function makes of every row, stacked. Runs in the memory of one iteration.

    >>> tf.map_fn(lambda row: tf.reduce_sum(row), tf.constant([[1, 2], [3, 4]])).numpy().tolist()
    [3, 7]
    """
    _hints("tf.map_fn", parallel_iterations, infer_shape)
    wanted = fn_output_signature if fn_output_signature is not None else dtype

    def run(row):
        made = fn(row)
        # Without a word on it, results are of the dtypes of the rows.
        kinds = _nest.flatten(wanted if wanted is not None else elems)
        leaves = [leaf if hasattr(leaf, "_tonnage_flatten") else _t.to_tensor(leaf, None, getattr(kind, "dtype", kind))
                  for leaf, kind in zip(_nest.flatten(made), kinds)]
        for leaf, kind in zip(leaves, kinds):
            if isinstance(leaf, _t.Tensor) and leaf.dtype != getattr(kind, "dtype", kind):
                raise InvalidArgumentError(None, None, f"map_fn: fn returns {leaf.dtype!r}, where "
                                           f"{getattr(kind, 'dtype', kind)!r} was expected; say what it returns by "
                                           "fn_output_signature")
        return _nest.pack_sequence_as(made, leaves) if len(leaves) == len(_nest.flatten(made)) else made

    if any(_is_sparse(leaf) for leaf in _nest.flatten(elems)):
        return _stopped(_map_sparse(run, elems), back_prop)
    elems = _nest.map_structure(lambda e: _t.to_tensor(e, None, None), elems)
    return _stopped(_map_rows(run, elems, bool(swap_memory)), back_prop)


def _map_rows(run, elems, spill=False):
    if not _have_strings(elems):
        return _t.map_rows(run, elems, spill)
    made = [run(row) for row in _rows_of(elems)]
    return _nest.map_structure(lambda *leaves: _t.stack(list(leaves), 0), *made)


def _have_strings(values):
    return any(getattr(leaf, "dtype", None) == "string" for leaf in _nest.flatten(values))


def _rows_of(elems, reverse=False):
    """Rows with strings among them: a loop of Python over how many there are, since each iteration has strings of other lengths."""
    if _t.is_symbolic():
        raise DataDecideError("how many bytes strings have")
    count = len(_nest.flatten(elems)[0])
    places = builtins.range(count)
    return [_nest.map_structure(lambda e, i=i: e[i], elems) for i in (reversed(places) if reverse else places)]


def _is_sparse(value):
    return hasattr(value, "dense_shape")


def _map_sparse(run, elems):
    """Rows of sparse tensors have as many elements as the data decide: a loop of Python over how many rows there are."""
    from .sparse import _row

    def row_of(leaf, i):
        return _row(leaf, i) if _is_sparse(leaf) else leaf[i]

    elems = _nest.map_structure(lambda e: e if _is_sparse(e) else _t.to_tensor(e, None, None), elems)
    count = next(leaf.shape[0] for leaf in _nest.flatten(elems) if leaf.shape[0] is not None)
    made = [run(_nest.map_structure(lambda leaf, i=i: row_of(leaf, i), elems)) for i in range(count)]
    return _nest.map_structure(lambda *leaves: _t.stack(list(leaves), 0), *made)


def _hints(where, parallel_iterations=None, infer_shape=True):
    """What loops are told and have no use for: an iteration's ops run on all threads, shapes are known."""
    asked = parallel_iterations not in (None, 10)
    if asked or not infer_shape:
        from ._notices import no_effect

        no_effect(where, parallel_iterations=asked, infer_shape=not infer_shape)


def _stopped(values, back_prop):
    if back_prop:
        return values
    return _nest.map_structure(lambda t: _t.stop_gradient(t) if _floats(t) else t, values)


def vectorized_map(fn, elems, fallback_to_while_loop=True, warn=True):
    """What a function makes of every row, stacked. It is a loop, in the memory of one iteration."""
    if not fallback_to_while_loop and warn:
        from ._notices import no_effect

        no_effect("tf.vectorized_map", fallback_to_while_loop=True)
    return _map_rows(fn, _nest.map_structure(lambda e: _t.to_tensor(e, None, None), elems))


def scan(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, infer_shape=True,
         reverse=False, name=None):
    """All states of a fold along the first axis, stacked.

    >>> tf.scan(lambda state, row: state + row, tf.constant([1, 2, 3])).numpy().tolist()
    [1, 3, 6]
    """
    _hints("tf.scan", parallel_iterations, infer_shape)
    return _stopped(_scan(fn, elems, initializer, bool(reverse), bool(swap_memory)), back_prop)


def _states(fn, elems, initializer, reverse):
    """All states of a fold over rows with strings among them, or of states that are strings."""
    rows = _rows_of(elems, reverse)
    state, states = (rows.pop(0) if initializer is None else initializer), []
    if initializer is None:
        states.append(state)
    for row in rows:
        state = _like(fn(state, row), state)
        states.append(state)
    return state, states[::-1] if reverse else states


def _scan(fn, elems, initializer, reverse, spill):
    elems = _nest.map_structure(lambda e: _t.to_tensor(e, None, None), elems)
    if initializer is not None:
        initializer = _nest.map_structure(lambda v: _t.to_tensor(v, None, None), initializer)
    if _have_strings([elems, initializer]):
        return _nest.map_structure(lambda *leaves: _t.stack(list(leaves), 0), *_states(fn, elems, initializer, reverse)[1])
    if initializer is None:
        at = -1 if reverse else 0
        start = _nest.map_structure(lambda e: e[at], elems)
        rest = _nest.map_structure(lambda e: e[:-1] if reverse else e[1:], elems)
        _, rows = _t.scan(lambda s, row: _twice(fn(s, row)), start, rest, reverse, spill)
        ends = _nest.map_structure(lambda s: _t.expand_dims(s, 0), start)
        join = (lambda a, b: _t.concat([b, a], 0)) if reverse else (lambda a, b: _t.concat([a, b], 0))
        return _nest.map_structure(join, ends, rows)

    def step(state, row):
        made = fn(state, row)
        made = _nest.map_structure(lambda m, s: _like(m, s), made, state) if _nest.is_nested(state) else _like(made, state)
        return _twice(made)

    return _t.scan(step, initializer, elems, reverse, spill)[1]


def _twice(value):
    return value, value


def _fold(fn, elems, initializer, reverse, spill):
    elems = _nest.map_structure(lambda e: _t.to_tensor(e, None, None), elems)
    if initializer is not None:
        initializer = _nest.map_structure(lambda v: _t.to_tensor(v, None, None), initializer)
    if _have_strings([elems, initializer]):
        return _states(fn, elems, initializer, reverse)[0]
    if initializer is None:
        at = -1 if reverse else 0
        initializer = _nest.map_structure(lambda e: e[at], elems)
        elems = _nest.map_structure(lambda e: e[:-1] if reverse else e[1:], elems)
    return _t.scan(lambda state, row: (_like(fn(state, row), state), []), initializer, elems, reverse,
                   spill)[0]


def foldl(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, name=None):
    """The last state of a fold along the first axis. Runs in the memory of one iteration.

    >>> int(tf.foldl(lambda state, row: state * 2 + row, tf.constant([1, 0, 1])))
    5
    """
    _hints("tf.foldl", parallel_iterations)
    return _stopped(_fold(fn, elems, initializer, False, bool(swap_memory)), back_prop)


def foldr(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False, name=None):
    """The same from the other end."""
    _hints("tf.foldr", parallel_iterations)
    return _stopped(_fold(fn, elems, initializer, True, bool(swap_memory)), back_prop)
