"""Gradients: tapes, functions with a gradient of their own, gradients of graphs."""

import contextlib
import functools

from . import _nest
from . import _tonnage as _t
from ._notices import ignores
from ._shape import IndexedSlices, StandIn, _lengths_of


class UnconnectedGradients:
    """What stands for the gradient of a source that the target does not depend on."""

    NONE = "none"
    ZERO = "zero"


def _checked(unconnected):
    value = getattr(unconnected, "value", unconnected)
    if value not in ("none", "zero"):
        raise ValueError(f"Unknown value for unconnected_gradients: {unconnected!r}")
    return value


def _sources(nested):
    """What gradients are taken by, as a list: what stands for a variable as that variable."""
    return [leaf.handle if isinstance(leaf, StandIn) and hasattr(leaf, "handle") else leaf for leaf in _nest.flatten(nested)]


def _zeros(gradients, sources, unconnected):
    if _checked(unconnected) == "none":
        return gradients
    return [_t.zeros_like(s) if g is None else g for g, s in zip(gradients, sources)]


class GradientTape:
    """Records ops inside of ``with``, for gradients. Trainable variables are watched by themselves, tensors on request.

    >>> x = tf.constant(3.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> float(tape.gradient(y, x))
    6.0
    """

    def __init__(self, persistent=False, watch_accessed_variables=True):
        self._persistent = bool(persistent)
        self._watch_variables = bool(watch_accessed_variables)
        self._tape = None
        self._recording = False
        self._used = False
        self._variables = {}

    def __enter__(self):
        if self._recording:
            raise ValueError("Tape is still recording, This can happen if you try to re-enter an already-active tape.")
        if self._tape is None:
            self._tape = _t.Tape(self._persistent, self._watch_variables)
        else:
            self._tape.resume()
        self._recording = True
        return self

    def __exit__(self, *exception):
        if self._recording:
            self._tape.pause()
            self._recording = False

    def watch(self, tensor):
        """Watches tensors and variables, nested in any way."""
        if self._tape is None:
            raise RuntimeError("the tape does not record yet; call watch inside of `with`")
        for leaf in _sources(tensor):
            if isinstance(leaf, _t.Variable):
                self._variables[leaf.number] = leaf
            elif not isinstance(leaf, _t.Tensor):
                raise ValueError(f"Passed in object {leaf!r:.80} of type {type(leaf).__name__!r}, not tf.Tensor or "
                                 "tf.Variable")
            self._tape.watch(leaf)

    def watched_variables(self):
        """The variables that it watched, as far as somebody still holds them."""
        from ._variable import living

        numbers = sorted(self._tape.watched_variables())
        known = living()
        known.update(self._variables)
        return tuple(known[number] for number in numbers if number in known)

    @contextlib.contextmanager
    def stop_recording(self):
        """Records nothing inside of ``with``."""
        if not self._recording:
            raise ValueError("Tape is not recording.")
        self._tape.pause()
        self._recording = False
        try:
            yield
        finally:
            self._tape.resume()
            self._recording = True

    def reset(self):
        """Forgets what it recorded and what it watches."""
        if self._tape is not None:
            self._tape.reset()
        self._used = False

    def _open(self):
        if self._tape is None or (self._used and not self._persistent):
            raise RuntimeError("A non-persistent GradientTape can only be used to compute one set of gradients (or "
                               "jacobians)")
        self._used = True
        return self._tape

    def gradient(self, target, sources, output_gradients=None, unconnected_gradients=UnconnectedGradients.NONE):
        """Gradients of a target, or of the sum of several, nested as the sources are."""
        unconnected = _checked(unconnected_gradients)
        flat = _sources(sources)
        targets = [_t.to_tensor(t, None, None) for t in _nest.flatten(target)]
        for t in targets:
            if not t.dtype.is_floating:
                from ._notices import once

                once("gradient dtype", f"The dtype of the target tensor must be floating (e.g. tf.float32) when "
                                       f"calling GradientTape.gradient, got {t.dtype!r}")
        outputs = None
        if output_gradients is not None:
            given = _nest.flatten(output_gradients)
            outputs = [_t.ones_like(t) if g is None else _t.to_tensor(g, None, t.dtype)
                       for g, t in zip(given, targets)]
        tape = self._open()
        was = self._recording
        kept = [i for i, t in enumerate(targets) if t.dtype.is_floating]
        if not kept:
            made = [None] * len(flat)
        else:
            targets = [targets[i] for i in kept]
            outputs = outputs and [outputs[i] for i in kept]
            made = tape.gradient(targets, flat, outputs)
        if was and not self._persistent:
            tape.pause()
            self._recording = False
        return _nest.pack_sequence_as(sources, _zeros(made, flat, unconnected))

    @ignores("GradientTape.jacobian", "parallel_iterations", "experimental_use_pfor")
    def jacobian(self, target, sources, unconnected_gradients=UnconnectedGradients.NONE, parallel_iterations=None,
                 experimental_use_pfor=True):
        """The derivative of every element of the target by every element of the sources."""
        flat = _sources(sources)
        made = self._open().jacobian(_t.to_tensor(target, None, None), flat)
        return _nest.pack_sequence_as(sources, _zeros(made, flat, unconnected_gradients))

    @ignores("GradientTape.batch_jacobian", "parallel_iterations", "experimental_use_pfor")
    def batch_jacobian(self, target, source, unconnected_gradients=UnconnectedGradients.NONE,
                       parallel_iterations=None, experimental_use_pfor=True):
        """The same for each row of a batch on its own."""
        target, source = _t.to_tensor(target, None, None), _t.to_tensor(source, None, None)
        made = self._open().batch_jacobian(target, source)
        if made is None and _checked(unconnected_gradients) == "zero":
            return _t.fill([*_lengths_of(target), *_lengths_of(source)[1:]], 0, source.dtype)
        return made


def stop_gradient(input, name=None):
    """The same values, as a constant to gradients."""
    return _t.stop_gradient(input)


def _dense(gradient):
    return gradient.__tf_tensor__() if isinstance(gradient, IndexedSlices) else gradient


def custom_gradient(f=None):
    """A function with a gradient of its own: it returns its result and a function for the gradient.

    What that function uses of the forward pass is saved, and nothing else. It may call ``tf.gradients`` on it. Where it takes
    ``variables`` it is given those that ``f`` used and returns their gradients too; otherwise they are differentiated as
    usual.

    >>> @tf.custom_gradient
    ... def log1pexp(x):
    ...     e = tf.exp(x)
    ...     return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))
    >>> x = tf.constant(100.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = log1pexp(x)
    >>> float(tape.gradient(y, x))
    1.0
    """
    if f is None:
        return custom_gradient

    @functools.wraps(f)
    def decorated(*args, **kwargs):
        return _Custom(f, args, kwargs).run()

    return decorated


class _UsesVariables(Exception):
    """Ends a trace of a function whose gradient takes the variables that it read."""


class _Custom:
    """One call of a function with a gradient of its own."""

    def __init__(self, f, args, kwargs):
        self.f, self.args, self.kwargs = f, args, kwargs
        self.flat = _nest.flatten(list(args))
        self.places = [i for i, leaf in enumerate(self.flat) if _is_tensor(leaf)]
        self.variables = []

    def run(self):
        tensors = [_t.to_tensor(self.flat[i], None, None) for i in self.places]
        try:
            return self._traced(tensors)
        except _UsesVariables as used:
            # Once more, with the variables among the arguments.
            self.variables = used.args[0]
            return self._traced(tensors + [v.read_value() for v in self.variables])

    def _traced(self, tensors):
        if tensors:
            return _t.custom_gradient(self.forward, tensors)
        try:
            return self.forward([])[0]
        except _UsesVariables as used:
            self.variables = used.args[0]
            return _t.custom_gradient(self.forward, [v.read_value() for v in self.variables])

    def forward(self, symbols):
        from ._variable import wrap

        count = len(self.places)
        given = list(self.flat)
        for i, symbol in zip(self.places, symbols):
            given[i] = symbol
        args = _nest.pack_sequence_as(list(self.args), given)
        (result, grad), read = _t.with_variables_as(lambda: self.f(*args, **self.kwargs), self.variables,
                                                    list(symbols[count:]))
        takes = _takes_variables(grad)
        used = [wrap(v) for v in read if v.trainable]
        if takes and used and not self.variables:
            raise _UsesVariables(used)
        result = _nest.map_structure(lambda r: _t.to_tensor(r, None, None), result)

        def back(grads, inner):
            grads = _nest.flatten(grads)
            if takes:
                made, rest = grad(*grads, variables=self.variables)
            else:
                made, rest = grad(*grads), []
            made = _nest.flatten(made) if isinstance(made, (list, tuple)) else [made]
            if len(made) == len(self.flat) != count:
                made = [made[i] for i in self.places]
            rest = _nest.flatten(rest if rest is not None else [])
            if len(made) != count:
                raise ValueError(f"custom_gradient function expected to return {count} gradients, but returned "
                                 f"{len(made)} instead.")
            if len(rest) != len(self.variables):
                raise ValueError("Must return gradient for each variable from @custom_gradient grad_fn: there are "
                                 f"{len(self.variables)}, and {len(rest)} gradients.")
            return [_t.zeros_like(s) if g is None else _t.to_tensor(_dense(g), None, s.dtype)
                    for g, s in zip([*made, *rest], inner)]

        return result, back


def _takes_variables(grad):
    import inspect

    try:
        takes = inspect.signature(grad).parameters
    except (TypeError, ValueError):
        return False
    return "variables" in takes or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in takes.values())


def _is_tensor(leaf):
    if isinstance(leaf, (_t.Tensor, _t.Variable, float)):
        return True
    return hasattr(leaf, "__array__")


def recompute_grad(f):
    """The function, whose inner values are computed again for the gradient instead of kept."""

    @functools.wraps(f)
    def decorated(*args, **kwargs):
        flat = _nest.flatten(list(args))
        places = [i for i, leaf in enumerate(flat) if _is_tensor(leaf)]

        def run(symbols):
            given = list(flat)
            for i, symbol in zip(places, symbols):
                given[i] = symbol
            return f(*_nest.pack_sequence_as(list(args), given), **kwargs)

        return _t.checkpoint(run, [_t.to_tensor(flat[i], None, None) for i in places])

    return decorated


def gradients(ys, xs, grad_ys=None, name="gradients", gate_gradients=False, aggregation_method=None,
              stop_gradients=None, unconnected_gradients=UnconnectedGradients.NONE):
    """Gradients of the sum of ``ys`` by the nodes of the graph that is built: in functions, in ``custom_gradient`` and
    in deferred graphs."""
    if stop_gradients is not None:
        raise NotImplementedError("gradients: stop_gradients is not there; use tf.stop_gradient where the values are made")
    if gate_gradients or aggregation_method is not None:
        from ._notices import no_effect

        no_effect("tf.gradients", gate_gradients=gate_gradients, aggregation_method=aggregation_method is not None)
    targets = [_t.to_tensor(y, None, None) for y in _nest.flatten(ys)]
    if not any(t.is_symbolic for t in targets):
        raise RuntimeError("tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape "
                           "instead.")
    flat = _sources(xs)
    outputs = None
    if grad_ys is not None:
        given = _nest.flatten(grad_ys)
        outputs = [_t.ones_like(t) if g is None else _t.to_tensor(g, None, t.dtype) for g, t in zip(given, targets)]
    made = _t.graph_gradients(targets, flat, outputs)
    return _zeros(made, flat, unconnected_gradients)


def hessians(ys, xs, gate_gradients=False, aggregation_method=None, name="hessians"):
    """Second derivatives of each of ``xs``, in a function or a deferred graph."""
    made = []
    for x in _nest.flatten(xs):
        slope = gradients(ys, x, None, name, gate_gradients, aggregation_method)[0]
        count = x.shape.num_elements()
        if count is None:
            raise ValueError("hessians need a shape that is known")
        flat = _t.reshape(slope, [count])
        rows = [gradients(flat[i], x)[0] for i in range(count)]
        rows = [_t.zeros_like(x) if row is None else row for row in rows]
        made.append(_t.reshape(_t.stack(rows, 0), x.lengths * 2))
    return made


def no_gradient(op_type):
    """There is nothing to register: each op of the table says its own gradient."""
    raise NotImplementedError("ops are rows of a table; write tf.custom_gradient for a gradient of your own")
