"""``tf.debugging``: assertions on tensors, in functions too."""

from . import _tonnage as _t
from .errors import InvalidArgumentError as _InvalidArgumentError
from ._notices import ignores as _ignores


def _failed(message, what, *values):
    shown = "\n".join(str(v) for v in values)
    lead = f"{message}\n" if message else ""
    raise _InvalidArgumentError(None, None, f"{lead}{what}\n{shown}")


def _holds(condition, message, what, *values):
    condition = _t.to_tensor(condition, None, None)
    if condition.dtype != _t.DType("bool"):
        condition = _t.cast(condition, "bool")
    all_hold = _t.reduce_all(condition, None, False)
    if all_hold.is_symbolic:
        tensors = [v for v in values if isinstance(v, _t.Tensor)]

        def check(given):
            if not bool(given[0]):
                rest = iter(given[1:])
                _failed(message, what, *[next(rest) if isinstance(v, _t.Tensor) else v for v in values])
            return []

        _t.host_callback(check, [all_hold, *tensors], [])
    elif not bool(all_hold):
        _failed(message, what, *values)


@_ignores("Assert", "summarize")
def Assert(condition, data=(), summarize=None, name=None):
    """Raises where a condition does not hold."""
    _holds(condition, None, "assertion failed:", *[_show(d) for d in data])


def _show(value):
    try:
        return _t.to_tensor(value, None, None)
    except (TypeError, ValueError):
        return value


def _pair(x, y):
    x = _t.to_tensor(x, None, getattr(y, "dtype", None))
    return x, _t.to_tensor(y, None, x.dtype)


def _compare(name, sign, compare):
    def check(x, y, message=None, summarize=None, name=None):
        x, y = _pair(x, y)
        _holds(compare(x, y), message, f"Condition x {sign} y did not hold.", x, y)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raises unless ``x {sign} y`` for all elements."
    return check


assert_equal = _compare("assert_equal", "==", lambda x, y: x == y)
assert_none_equal = _compare("assert_none_equal", "!=", lambda x, y: x != y)
assert_less = _compare("assert_less", "<", lambda x, y: x < y)
assert_less_equal = _compare("assert_less_equal", "<=", lambda x, y: x <= y)
assert_greater = _compare("assert_greater", ">", lambda x, y: x > y)
assert_greater_equal = _compare("assert_greater_equal", ">=", lambda x, y: x >= y)


@_ignores("assert_positive", "summarize")
def assert_positive(x, message=None, summarize=None, name=None):
    """Raises unless all elements are positive."""
    x = _t.to_tensor(x, None, None)
    _holds(x > 0, message, "Condition x > 0 did not hold.", x)


@_ignores("assert_negative", "summarize")
def assert_negative(x, message=None, summarize=None, name=None):
    """Raises unless all elements are negative."""
    x = _t.to_tensor(x, None, None)
    _holds(x < 0, message, "Condition x < 0 did not hold.", x)


@_ignores("assert_non_negative", "summarize")
def assert_non_negative(x, message=None, summarize=None, name=None):
    """Raises where an element is negative."""
    x = _t.to_tensor(x, None, None)
    _holds(x >= 0, message, "Condition x >= 0 did not hold.", x)


@_ignores("assert_near", "summarize")
def assert_near(x, y, rtol=None, atol=None, message=None, summarize=None, name=None):
    """Raises unless all elements are close."""
    x, y = _pair(x, y)
    small = 10 * {"float16": 9.77e-4, "bfloat16": 7.8e-3, "float64": 2.2e-16}.get(x.dtype.name, 1.19e-7)
    rtol, atol = small if rtol is None else rtol, small if atol is None else atol
    _holds(abs(x - y) <= atol + rtol * abs(y), message, "x and y not equal to tolerance", x, y)


def assert_all_finite(x, message, name=None):
    """Raises where an element is NaN or infinite."""
    x = _t.to_tensor(x, None, None)
    _holds(_t.Op("is_finite", "is_finite", ["x"])(x), message, "Tensor had NaN or Inf values", x)
    return x


def check_numerics(tensor, message, name=None):
    """The tensor; raises where an element is NaN or infinite."""
    return assert_all_finite(tensor, message)


_before_checks = None


def enable_check_numerics(stack_height_limit=30, path_length_limit=50):
    """From here on every op that gives a NaN or an infinity raises, and is named with its line. Functions run op by op.

    >>> tf.debugging.enable_check_numerics()
    >>> tf.math.log(tf.constant([1.0, -1.0]))
    Traceback (most recent call last):
    tonnage.errors.InvalidArgumentError: ...
    >>> tf.debugging.disable_check_numerics()
    """
    from . import config
    from ._notices import no_effect

    no_effect("tf.debugging.enable_check_numerics", stack_height_limit=stack_height_limit != 30,
              path_length_limit=path_length_limit != 50)
    global _before_checks
    if _before_checks is None:
        _before_checks = config.functions_run_eagerly()
        config.run_functions_eagerly(True)
    _t.check_numerics(True)


def disable_check_numerics():
    """As it was before ``enable_check_numerics``."""
    from . import config

    global _before_checks
    if _before_checks is not None:
        config.run_functions_eagerly(_before_checks)
        _before_checks = None
    _t.check_numerics(False)


def assert_rank(x, rank, message=None, name=None):
    """Raises unless a tensor has so many axes."""
    x = _t.to_tensor(x, None, None)
    if x.ndim != int(rank):
        raise ValueError(f"{message or ''} Tensor must have rank {rank}. Received rank {x.ndim}, shape {x.shape}")


def assert_rank_at_least(x, rank, message=None, name=None):
    """Raises where a tensor has fewer axes."""
    x = _t.to_tensor(x, None, None)
    if x.ndim < int(rank):
        raise ValueError(f"{message or ''} Tensor must have rank at least {rank}. Received rank {x.ndim}")


def assert_rank_in(x, ranks, message=None, name=None):
    """Raises unless the number of axes is among these."""
    x = _t.to_tensor(x, None, None)
    if x.ndim not in [int(r) for r in ranks]:
        raise ValueError(f"{message or ''} Tensor must have one of the ranks {ranks}. Received rank {x.ndim}")


@_ignores("assert_shapes", "data", "summarize")
def assert_shapes(shapes, data=None, summarize=None, message=None, name=None):
    """Raises unless tensors have these shapes; a name stands for the same length everywhere."""
    named = {}
    for tensor, shape in shapes.items() if isinstance(shapes, dict) else shapes:
        tensor = _t.to_tensor(tensor, None, None)
        if tensor.ndim != len(shape):
            raise ValueError(f"{message or ''} a tensor of shape {tensor.shape}, but {tuple(shape)} is needed")
        for have, want in zip(tensor.lengths, shape):
            if want is None or have is None:
                continue
            wanted = want if isinstance(want, int) else named.setdefault(want, have)
            if have != wanted:
                raise ValueError(f"{message or ''} a tensor of shape {tensor.shape}, but {tuple(shape)} is needed")


def assert_type(tensor, tf_type, message=None, name=None):
    """Raises unless a tensor has that dtype."""
    if _t.to_tensor(tensor, None, None).dtype != tf_type:
        raise TypeError(f"{message or ''} {tensor!r} must be of type {_t.DType(tf_type)!r}")


def assert_same_float_dtype(tensors=None, dtype=None):
    """The float dtype that all have; raises where they differ."""
    found = {_t.to_tensor(t, None, None).dtype for t in tensors or []} | ({_t.DType(dtype)} if dtype else set())
    if len(found) > 1 or any(not d.is_floating for d in found):
        raise ValueError(f"expected one floating point type, got {sorted(d.name for d in found)}")
    return next(iter(found), _t.DType("float32"))


def assert_scalar(tensor, message=None, name=None):
    """Raises unless a tensor has no axes."""
    assert_rank(tensor, 0, message)


def is_numeric_tensor(tensor):
    """Whether it is a tensor of numbers."""
    return isinstance(tensor, _t.Tensor) and tensor.dtype != _t.DType("bool")


@_ignores("assert_non_positive", "summarize")
def assert_non_positive(x, message=None, summarize=None, name=None):
    """Raises where an element is positive."""
    x = _t.to_tensor(x, None, None)
    _holds(x <= 0, message, "Condition x <= 0 did not hold.", x)


def assert_integer(x, message=None, name=None):
    """Raises unless a tensor is of integers."""
    x = _t.to_tensor(x, None, None)
    if not x.dtype.is_integer:
        raise TypeError(f"{message or ''} Expected \"x\" to be integer type. Found: {x.dtype!r}")


def assert_proper_iterable(values):
    """Raises unless it is a list or the like: no tensor, no array, no text."""
    if isinstance(values, (_t.Tensor, _t.Variable, str, bytes)) or hasattr(values, "__array__"):
        raise TypeError(f"Expected argument \"values\" to be a \"proper\" iterable. Found: {type(values)}")
    if not hasattr(values, "__iter__"):
        raise TypeError(f"Expected argument \"values\" to be iterable. Found: {type(values)}")


def set_log_device_placement(enabled):
    """There is one device; asking for more about it warns once."""
    if enabled:
        from ._notices import once

        once("log_device_placement", "set_log_device_placement: all ops run on the CPU; tf.memory.trace tells what each did")


def get_log_device_placement():
    """Whether it is told where ops run: never, they run on the CPU."""
    return False


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
