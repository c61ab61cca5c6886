"""Functions: a Python callable becomes a planned program, traced once for each signature.

Tensors are arguments of the program; anything else is part of the signature, so that a Python ``True`` and a Python
``False`` are two programs, and a boolean tensor is one with both branches.
"""

import functools

from . import _nest
from . import _tonnage as _t
from ._shape import TensorSpec
from ._variable import wrap
from .errors import SignatureError


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

    def _may_run_eagerly(self, error, traceback):
        """Whether a call whose trace failed so is made op by op: where the data decide on sizes. Asked by the extension."""
        from .errors import DataDecideError, OperatorNotAllowedInGraphError

        if not isinstance(error, OperatorNotAllowedInGraphError):
            return False
        if not isinstance(error, DataDecideError) and not _asked_by_an_op(traceback):
            return False
        if self._options["budget"] is not None:
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

    def pretty_printed_concrete_signatures(self, verbose=True):
        """What it was traced for, in words."""
        return f"{self.__name__}: {self.traces} traces"

    def __repr__(self):
        return f"<tonnage Function {getattr(self._python_function, '__qualname__', self._python_function)}>"


class BoundFunction:
    """A function of one object, which it holds: the function itself holds it weakly, since the object holds the function."""

    __slots__ = ("__self__", "__wrapped__", "__weakref__")

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


class ConcreteFunction:
    """A function for one signature."""

    def __init__(self, function, args, kwargs):
        self._function, self._args, self._kwargs = function, args, kwargs

    @property
    def structured_input_signature(self):
        """The arguments that it was traced for."""
        return self._args, self._kwargs

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
    met is refused before anything runs, with the least that would do. ``spill=False`` keeps it from using files,
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
    whose shape is not announced runs op by op.
    """
    from ._host import host

    return host(func, inp, Tout, False)


def numpy_function(func=None, inp=None, Tout=None, stateful=True, name=None):
    """The same with NumPy arrays, and without gradients."""
    from ._host import host

    return host(func, inp, Tout, True)
