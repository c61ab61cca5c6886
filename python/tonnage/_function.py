"""Functions: a Python callable becomes a planned program, traced once for each signature.

Tensors are arguments of the program; anything else is part of the signature, so that a Python ``True`` and a Python
``False`` are two programs, and a boolean tensor is one with both branches.

Decision: ``docs/decisions/data-decided-sizes-in-python.md``.
"""

import functools

from . import _nest
from . import _tonnage as _t
from ._shape import TensorSpec
from ._variable import wrap
from .errors import SignatureError
from ._notices import ignores


class Function(_t.Function):
    """A planned program. See :func:`function`."""

    def __new__(cls, python_function, input_signature=None, autograph=True, reduce_retracing=False, budget=None,
                spill=True, exact=False, owner=None):
        body = python_function
        if autograph:
            from .autograph import converted_lazily

            body = converted_lazily(python_function)
        if owner is not None:
            body = _of(body, owner)
        signature = None
        if input_signature is not None:
            signature = tuple(input_signature)
        self = _t.Function.__new__(cls, body, signature, budget, bool(reduce_retracing), bool(spill), bool(exact))
        self._python_function = python_function
        self._options = dict(input_signature=input_signature, autograph=autograph,
                             reduce_retracing=reduce_retracing, budget=budget, spill=spill, exact=exact)
        self._signature = signature
        self._owner = owner
        functools.update_wrapper(self, python_function, updated=())
        return self

    def __init__(self, *args, **kwargs):
        super().__init__()

    @property
    def python_function(self):
        """The callable."""
        return self._python_function

    @property
    def input_signature(self):
        """The only signature that it takes, if it was given one."""
        return self._signature

    @property
    def variables(self):
        """The variables that were made while it was traced."""
        return [wrap(v) for v in self.made_variables]

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        # Each object has functions of its own, which go with it.
        name = "_tonnage_method_" + getattr(self._python_function, "__name__", str(id(self)))
        try:
            bound = instance.__dict__.get(name)
        except AttributeError:
            bound = None
        if bound is None or bound._python_function is not self._python_function or bound._owner() is not instance:
            options = dict(self._options)
            if options["input_signature"] is not None:
                options["input_signature"] = list(options["input_signature"])
            import weakref

            bound = Function(self._python_function, owner=weakref.ref(instance), **options)
            try:
                instance.__dict__[name] = bound
            except (AttributeError, TypeError):
                pass
        return BoundFunction(instance, bound)

    def _fitted(self, args, kwargs):
        """Arguments as the signature has them, by position, where they were given otherwise. Asked by the extension."""
        if self._signature is None:
            return None
        given, named = list(args), dict(kwargs or {})
        if named:
            import inspect

            names = list(inspect.signature(self._python_function).parameters)[self._owner is not None:]
            while len(given) < len(self._signature) and names[len(given)] in named:
                given.append(named.pop(names[len(given)]))
        if named or len(given) != len(self._signature):
            return None
        made = [_fit(spec, value) for spec, value in zip(self._signature, given)]
        return tuple(made) if kwargs or any(a is not b for a, b in zip(made, given)) else None

    def _may_run_eagerly(self, error, traceback):
        """Whether a call whose trace failed so is made op by op: where the data decide on sizes. Asked by the extension."""
        from .errors import DataDecideError, OperatorNotAllowedInGraphError

        if not isinstance(error, OperatorNotAllowedInGraphError):
            return False
        if not isinstance(error, DataDecideError) and not _asked_by_an_op(traceback):
            return False
        from .data.iterator import took_elements

        if took_elements():
            error.add_note("the call took elements of an iterator before this was found, so it cannot start again op by op: say the "
                           "shapes of what Python returns")
            return False
        if self._options["budget"] is not None or _t.has_budget_around():
            error.add_note("the function has a budget, so it cannot run op by op: give sizes that are known, or a bound")
            return False
        from ._notices import tell

        while traceback.tb_next is not None and not _is_ours(traceback.tb_next):
            traceback = traceback.tb_next
        line = f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}"
        tell(f"{self!r} runs op by op from here on, unplanned: {error} (at {line})")
        return True

    def get_concrete_function(self, *args, **kwargs):
        """The function for such arguments alone, traced now; lengths of ``TensorSpec`` may be open."""
        if not args and not kwargs and self._signature is not None:
            args = self._signature
        self.trace(*args, **kwargs)
        return ConcreteFunction(self, args, kwargs)

    def experimental_get_tracing_count(self):
        """How many traces are remembered."""
        return self.traces

    @ignores("Function.pretty_printed_concrete_signatures", "verbose")
    def pretty_printed_concrete_signatures(self, verbose=True):
        """What it was traced for, in words."""
        return f"{self.__name__}: {self.traces} traces"

    def __repr__(self):
        return f"<tonnage Function {getattr(self._python_function, '__qualname__', self._python_function)}>"


def _fit(spec, value):
    """A value as a part of a signature has it: numbers and arrays where it says a tensor are one."""
    if isinstance(spec, TensorSpec):
        plain = isinstance(value, (bool, int, float, list, tuple))
        return _t.to_tensor(value, spec.dtype, None) if plain else value
    if isinstance(spec, (list, tuple)) and isinstance(value, (list, tuple)) and len(spec) == len(value):
        made = [_fit(s, v) for s, v in zip(spec, value)]
        return value if all(a is b for a, b in zip(made, value)) else type(spec)(made)
    if isinstance(spec, dict) and isinstance(value, dict) and spec.keys() == value.keys():
        made = {key: _fit(spec[key], value[key]) for key in value}
        return value if all(made[key] is value[key] for key in value) else made
    return value


class _BoundSignature:
    """The signature of a bound function: without the object."""

    def __get__(self, bound, owner=None):
        if bound is None:
            return None
        import inspect

        whole = inspect.signature(bound.__wrapped__)
        return whole.replace(parameters=list(whole.parameters.values())[1:])


class BoundFunction:
    """A function of one object, which it holds: the function itself holds it weakly, since the object holds the function."""

    __slots__ = ("__self__", "__wrapped__", "__weakref__")
    __signature__ = _BoundSignature()

    def __init__(self, instance, function):
        self.__self__, self.__wrapped__ = instance, function

    def __call__(self, *args, **kwargs):
        return self.__wrapped__(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self.__wrapped__, name)

    def __repr__(self):
        return repr(self.__wrapped__)


def unbound(f):
    """A function itself, where one of an object is given."""
    return f.__wrapped__ if isinstance(f, BoundFunction) else f


_FOLDER = __file__.rpartition("_function")[0]


def _is_ours(traceback):
    return traceback.tb_frame.f_code.co_filename.startswith(_FOLDER)


def _asked_by_an_op(traceback):
    """Whether an op wanted to know a value, not the user: then the innermost frame is of this package, and no tensor's."""
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    name = traceback.tb_frame.f_code.co_filename
    return _is_ours(traceback) and not name.endswith(("_tensor.py", "_variable.py")) and "autograph" not in name


def _of(body, owner):
    """A method of an object that is held weakly: the object holds the function."""
    return lambda *args, **kwargs: body(owner(), *args, **kwargs)


def _spec(value):
    """A tensor as its type."""
    return TensorSpec(value.shape, value.dtype) if isinstance(value, (_t.Tensor, _t.Variable)) else value


class ConcreteFunction:
    """A function for one signature."""

    def __init__(self, function, args, kwargs):
        self._function, self._args, self._kwargs = function, args, kwargs

    @property
    def structured_input_signature(self):
        """The arguments that it was traced for; tensors as their types."""
        return _nest.map_structure(_spec, self._args), _nest.map_structure(_spec, self._kwargs)

    @property
    def structured_outputs(self):
        """What it returns, nested as it is; tensors as their types."""
        seen = []

        def look(*args, **kwargs):
            made = self._function(*args, **kwargs)
            seen.append(_nest.map_structure(_spec, made))
            return made

        function(look, autograph=False).trace(*self._args, **self._kwargs)
        return seen[0]

    @property
    def outputs(self):
        """The types of the tensors that it returns."""
        return [leaf for leaf in _nest.flatten(self.structured_outputs) if isinstance(leaf, TensorSpec)]

    @property
    def output_shapes(self):
        """The shapes of what it returns, nested as it is."""
        return _nest.map_structure(lambda leaf: getattr(leaf, "shape", None), self.structured_outputs)

    @property
    def output_dtypes(self):
        """The dtypes of what it returns, nested as it is."""
        return _nest.map_structure(lambda leaf: getattr(leaf, "dtype", None), self.structured_outputs)

    @property
    def inputs(self):
        """The tensors among them."""
        leaves = _nest.flatten(list(self._args)) + _nest.flatten(self._kwargs)
        return [leaf for leaf in leaves if isinstance(leaf, (TensorSpec, _t.Tensor))]

    @property
    def variables(self):
        """The variables that were made while it was traced."""
        return self._function.variables

    trainable_variables = property(lambda self: tuple(v for v in self.variables if v.trainable))

    def __call__(self, *args, **kwargs):
        given = [_t.to_tensor(a, None, None) if isinstance(a, (int, float, bool)) else a for a in args]
        own = _nest.flatten(list(self._args))
        for spec, value in zip(own, _nest.flatten(given)):
            fits = not isinstance(spec, (TensorSpec, _t.Tensor)) or (
                spec.dtype == value.dtype and spec.shape.is_compatible_with(value.shape))
            if not fits:
                raise SignatureError(None, None, f"the function was traced for {spec}, not for {value.dtype!r} of shape "
                                                 f"{value.shape}")
        return self._function(*given, **kwargs)

    def plan(self):
        """What a call takes; runs nothing."""
        return self._function.plan(*self._args, **self._kwargs)

    @property
    def graph(self):
        """Its graph as text."""
        return self._function.graph_text(*self._args, **self._kwargs)


def function(func=None, input_signature=None, autograph=True, jit_compile=None, reduce_retracing=False,
             experimental_implements=None, experimental_autograph_options=None, experimental_attributes=None,
             experimental_relax_shapes=None, experimental_compile=None, budget=None, spill=True, exact=False):
    """Makes a callable a planned program.

    ``budget`` is the most that a call may hold: a number of bytes or text such as ``"512MiB"``. A budget that cannot be
    met is refused before anything runs, with the least that would do; ``"least"`` takes that at once. Without a budget it is the smallest
    plan whose expected time is within 5% of the fastest's. ``spill=False`` keeps it from using files,
    ``exact=True`` from anything that changes results in the last bit.

    >>> @tf.function
    ... def f(x):
    ...     return x * x + 1.0
    """
    if jit_compile or experimental_compile:
        from ._notices import once

        once("jit_compile", "jit_compile: there is no XLA; functions are planned and fused anyway")
    if experimental_relax_shapes:
        reduce_retracing = True
    if experimental_implements or experimental_autograph_options or experimental_attributes:
        from ._notices import no_effect

        no_effect("tf.function", experimental_implements=experimental_implements, experimental_attributes=
                  experimental_attributes, experimental_autograph_options=experimental_autograph_options)

    def decorate(inner):
        return Function(inner, input_signature, autograph, reduce_retracing, budget, spill, exact)

    return decorate if func is None else decorate(func)


def py_function(func=None, inp=None, Tout=None, name=None):
    """Calls Python with the values when the program runs; gradients go through it.

    ``Tout`` says what it returns: dtypes, or in a planned function ``tf.TensorSpec`` with shapes; a function with a result
    whose shape is not announced, and is not that of the first input, runs op by op.
    """
    from ._host import host

    return host(func, inp, Tout, False)


def numpy_function(func=None, inp=None, Tout=None, stateful=True, name=None):
    """The same with NumPy arrays, and without gradients."""
    from ._host import host

    return host(func, inp, Tout, True)
