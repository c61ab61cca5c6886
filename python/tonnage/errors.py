"""Exceptions under TensorFlow's names.

Each is a standard exception too, so that ``except ValueError`` and ``except tf.errors.InvalidArgumentError`` both do.
"""


class OpError(Exception):
    """What every error of an op is."""

    __slots__ = ()  # the class of panics takes `InternalError` for its base, which is possible among classes of one layout
    error_code = 2

    def __init__(self, node_def=None, op=None, message="", *args):
        super().__init__(message)
        self.node_def = node_def
        self.op = op
        self.message = message


class CancelledError(OpError):
    """Something was cancelled."""


class UnknownError(OpError):
    """Nothing else fits: a callback that failed."""


class EndlessRecursionError(UnknownError, RecursionError):
    """Calls that are nested too deep."""


class InvalidArgumentError(OpError, ValueError):
    """An argument that makes no sense: shapes, dtypes, axes, indices."""

    error_code = 3


class DTypeError(InvalidArgumentError, TypeError):
    """Dtypes that do not agree, or that an op has no meaning for."""


class OutOfBoundsError(InvalidArgumentError, IndexError):
    """A position that an axis does not have."""


class SignatureError(InvalidArgumentError, TypeError):
    """Arguments that a function's signature does not take."""


class NotFoundError(OpError):
    """Something that is not there."""


class AlreadyExistsError(OpError):
    """Something that is there already."""


class PermissionDeniedError(OpError):
    """Something that the system forbids."""


class ResourceExhaustedError(OpError, MemoryError):
    """No memory: it never fits, it is over the budget, or the system refused. The message lists who holds what."""

    error_code = 8


class FailedPreconditionError(OpError):
    """Something that comes too early: a variable without a value."""

    error_code = 9


class AbortedError(OpError):
    """Something was broken off."""


class OutOfRangeError(OpError):
    """An iteration that is at its end."""


class EndOfSequenceError(OutOfRangeError, StopIteration):
    """The same of ``next(iterator)``, which ends Python's loops."""


class UnimplementedError(OpError, NotImplementedError):
    """Something that Tonnage does not have."""


class InternalError(OpError):
    """A mistake of Tonnage itself; a panic of its Rust code is one."""

    __slots__ = ()
    error_code = 13

    def __init__(self, node_def=None, op=None, message="", *args):
        if isinstance(node_def, str) and not message:  # a panic comes with its text alone
            node_def, message = None, f"{node_def}; this is a bug in Tonnage, please report it"
        super().__init__(node_def, op, message, *args)


class UnavailableError(OpError):
    """Something that is not to be had now."""


class DataLossError(OpError):
    """A file that is broken."""


class ClosedError(FailedPreconditionError, RuntimeError):
    """A session or container that is closed."""


class OperatorNotAllowedInGraphError(TypeError):
    """Reading the values of a tensor that has none yet, while a function is traced."""

    def __init__(self, node_def=None, op=None, message="", *args):
        super().__init__(message if message else node_def)
        self.op = op


class DataDecideError(OperatorNotAllowedInGraphError):
    """A size, or a number of the program, that only the data know: it cannot be planned. A function runs op by op then."""

    def __init__(self, what, *args):
        super().__init__(what if "traced" in what else f"{what} depends on values that are not known while a function is "
                                                       "traced")


class InaccessibleTensorError(OpError, ValueError, TypeError):
    """A symbolic tensor outside of its function."""


class GradientError(OpError, LookupError):
    """An op without a gradient."""


class TapeError(OpError, RuntimeError, ValueError):
    """A tape that cannot answer."""


class NameTakenError(OpError, ValueError):
    """A name that is taken."""


def invalid(error):
    """An exception of a user's generator as TensorFlow has it, an :class:`InvalidArgumentError`, and of its own class still."""
    text = f"{type(error).__name__}: {error}"
    try:
        return type(type(error).__name__, (InvalidArgumentError, type(error)), {})(None, None, text)
    except TypeError:  # a class that no other goes with, or that is made of something else than a text
        return InvalidArgumentError(None, None, text)
