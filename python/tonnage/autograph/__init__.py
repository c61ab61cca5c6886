"""AutoGraph: ``if``, ``while``, ``for`` and their kin on tensors become control flow while a function is traced.

``transform`` rewrites a function's source, ``runtime`` has what the rewritten source calls. Python values stay Python's:
what is decided on them is decided as the function is traced. Rewritten code keeps the user's file and lines, so that errors
point at them.
"""

import functools as _functools
import sys as _sys
import types as _types
import weakref as _weakref
from .._notices import ignores as _ignores
from ..errors import DataDecideError as _DataDecideError, OperatorNotAllowedInGraphError as _OperatorNotAllowedInGraphError

_PACKAGE = __file__.rpartition("autograph")[0]
_converted = _weakref.WeakKeyDictionary()
_UNCONVERTED = "__tonnage_do_not_convert__"


def do_not_convert(func=None):
    """Leaves a function as it is."""
    if func is None:
        return do_not_convert
    setattr(func, _UNCONVERTED, True)
    return func


def _is_user_code(function):
    name = function.__code__.co_filename
    if name.startswith("<frozen "):
        return False
    library = getattr(_sys, "base_prefix", _sys.prefix)
    return not (name.startswith(_PACKAGE) or "site-packages" in name or name.startswith(library + "/lib/python"))


def converted(function):
    """The function with its control flow rewritten; itself where there is nothing to rewrite, or no source."""
    if isinstance(function, _types.MethodType):
        inner = converted(function.__func__)
        return function if inner is function.__func__ else _types.MethodType(inner, function.__self__)
    if isinstance(function, _functools.partial):
        inner = converted(function.func)
        return function if inner is function.func else _functools.partial(inner, *function.args, **function.keywords)
    if not isinstance(function, _types.FunctionType) or getattr(function, _UNCONVERTED, False):
        return function
    if "__tonnage_ag" in function.__code__.co_freevars:
        return function  # it is inside of one that was rewritten
    found = _converted.get(function)
    if found is None:
        found = function
        if _is_user_code(function):
            from .source import NoSourceError
            from .transform import rewritten

            try:
                found = rewritten(function)
            except (NoSourceError, SyntaxError, TypeError, IndexError) as error:
                found = _as_it_is(function, error)
        # Of itself, a function is not held: that would keep it for good.
        _converted[function] = None if found is function else found
    return found or function


def _as_it_is(function, why):
    """A function that could not be rewritten: where it asks for the value of a tensor, the error says why it may not."""
    # By what it shares with the function: the function itself is not held.
    code, name = function.__code__, function.__qualname__
    copied = _types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    copied.__kwdefaults__ = function.__kwdefaults__

    @_functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return copied(*args, **kwargs)
        except _OperatorNotAllowedInGraphError as error:
            if not isinstance(error, _DataDecideError) and _is_within(_innermost_user_code(error.__traceback__), code):
                error.args = (f"{error}; AutoGraph could not rewrite {name}: {why}", *error.args[1:])
            raise

    del call.__wrapped__
    return call


def _is_within(inner, code):
    """Whether code is a function's or that of one inside of it."""
    return inner is code or any(_is_within(inner, c) for c in code.co_consts if isinstance(c, _types.CodeType))


def _innermost_user_code(traceback):
    found = None
    while traceback is not None:
        code, traceback = traceback.tb_frame.f_code, traceback.tb_next
        if not code.co_filename.startswith(_PACKAGE):
            found = code
    return found


def converted_lazily(function):
    """The function, rewritten when it is first called: to import and decorate costs nothing."""
    if not isinstance(function, (_types.FunctionType, _types.MethodType, _functools.partial)):
        return function

    @_functools.wraps(function, updated=())
    def call(*args, **kwargs):
        return converted(function)(*args, **kwargs)

    return call


def to_graph(entity, recursive=True, experimental_optional_features=None):
    """The function with its control flow rewritten, and those that it calls as they are called."""
    if not recursive or experimental_optional_features:
        from .._notices import no_effect

        no_effect("tf.autograph.to_graph", recursive=not recursive,
                  experimental_optional_features=experimental_optional_features)
    return converted(entity)


def set_verbosity(level, alsologtostdout=False):
    """What could not be rewritten is told once as a warning, and nothing more."""
    if level:
        from .._notices import no_effect

        no_effect("tf.autograph.set_verbosity", level=level)


class experimental:
    """What TensorFlow keeps under ``experimental``."""

    do_not_convert = staticmethod(do_not_convert)

    @staticmethod
    @_ignores("experimental.set_loop_options", "parallel_iterations")
    def set_loop_options(parallel_iterations=None, swap_memory=None, maximum_iterations=None, shape_invariants=None):
        """Says of the loop around it that shapes of its variables may change: its function runs op by op then."""
        from . import runtime

        runtime.set_options(shape_invariants)
        if swap_memory or maximum_iterations is not None:
            from .._notices import once

            once("set_loop_options", "set_loop_options: give swap_memory and maximum_iterations to tf.while_loop; here they "
                                     "do nothing")
