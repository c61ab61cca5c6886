"""``tf.compat.v1``: variables by name, and the names of TensorFlow 1. Graphs and sessions are in ``_graph``."""

import tonnage as _tf

from .. import _tonnage as _t
from .._shape import TensorShape
from .._variable import Variable as _Variable
from .._variable import wrap as _wrap
from ..module import control_dependencies, group, no_op  # noqa: F401
from ._graph import (  # noqa: F401
    ConfigProto, GPUOptions, Graph, Initializer, InteractiveSession, Operation, Question, Session, disable_eager_execution,
    disable_v2_behavior, enable_eager_execution, enable_v2_behavior, executing_eagerly, get_default_graph,
    get_default_session, placeholder, placeholder_with_default, reset_default_graph,
)
from . import _train as train  # noqa: F401
from ._graph import named as _named
from ._graph import stack as _stack
from .._notices import ignores as _ignores, refuse as _refuse

_containers = {}

AUTO_REUSE = "auto"

_taken = {}


def _unique(name):
    count = _taken[name] = _taken.get(name, -1) + 1
    return name if count == 0 else f"{name}_{count}"


class variable_scope:
    """Puts a name before those of variables, and says whether ``get_variable`` finds them again."""

    def __init__(self, name_or_scope, default_name=None, values=None, initializer=None, reuse=None, dtype=None, **unknown):
        _refuse("variable_scope", unknown.keys() - {"auxiliary_name_scope", "use_resource"})
        if name_or_scope is None and default_name is None:
            raise ValueError("If default_name is None then name_or_scope is required")
        self._name = getattr(name_or_scope, "_name", name_or_scope) or default_name or ""
        self._default = name_or_scope is None  # then the name is made one that is not taken
        self._initializer, self._dtype = initializer, dtype
        self._reuse = reuse

    @property
    def name(self):
        """Its full name."""
        return self._full

    def reuse_variables(self):
        """Finds variables again from here on."""
        self._reuse = True

    @property
    def original_name_scope(self):
        """Its full name."""
        return self._full + "/"

    def __enter__(self):
        scopes = _stack("scopes")
        above = scopes[-1] if scopes else None
        if self._default:
            lead = f"{above._full}/" if above and above._full else ""
            home = _stack("graphs")[-1].unique_name if _stack("graphs") else _unique
            self._name = home(f"scope {lead}{self._name}").removeprefix(f"scope {lead}")
        self._full = f"{above._full}/{self._name}" if above and above._full and self._name else (
            self._name or (above._full if above else ""))
        if self._reuse is None and above is not None:
            self._reuse = above._reuse
        if self._initializer is None and above is not None:
            self._initializer = above._initializer
        scopes.append(self)
        return self

    def __exit__(self, *exception):
        _stack("scopes").pop()


def get_variable_scope():
    """The innermost scope."""
    scopes = _stack("scopes")
    if scopes:
        return scopes[-1]
    scope = variable_scope("")
    scope._full = ""
    return scope


@_ignores("get_variable", "synchronization", "aggregation")
def get_variable(name, shape=None, dtype=None, initializer=None, regularizer=None, trainable=None, collections=None,
                 caching_device=None, partitioner=None, validate_shape=True, use_resource=None, custom_getter=None,
                 constraint=None, synchronization=None, aggregation=None):
    """The variable of that name in the current scopes: made the first time, found again as ``reuse`` says."""
    if regularizer or caching_device or partitioner or custom_getter or not validate_shape:
        from .._notices import no_effect

        no_effect("tf.compat.v1.get_variable", regularizer=regularizer, caching_device=caching_device,
                  partitioner=partitioner, custom_getter=custom_getter, validate_shape=not validate_shape)
    scope = get_variable_scope()
    full = f"{scope._full}/{name}" if scope._full else name
    home = _stack("graphs")[-1]._variables if _stack("graphs") else _container_table()
    found = home.get(full)
    if found is not None:
        if not scope._reuse:
            raise ValueError(f"Variable {full} already exists, disallowed. Did you mean to set reuse=True or "
                             f"reuse=tf.AUTO_REUSE in VarScope?")
        if shape is not None and not found.shape.is_compatible_with(shape):
            raise ValueError(f"Trying to share variable {full}, but specified shape {TensorShape(shape)} and found "
                             f"shape {found.shape}.")
        return found
    if scope._reuse is True:
        raise ValueError(f"Variable {full} does not exist, or was not created with tf.get_variable(). Did you mean to "
                         "set reuse=tf.AUTO_REUSE in VarScope?")
    initializer = initializer if initializer is not None else scope._initializer
    value = _first(initializer, shape, dtype)
    made = _Variable(value, trainable=trainable, name=full, dtype=dtype, constraint=constraint)
    home[full] = made
    for collection in collections or []:
        if collection not in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.TRAINABLE_VARIABLES):
            add_to_collection(collection, made)
    return made


def _first(initializer, shape, dtype):
    if initializer is None:
        from ..keras.initializers import GlorotUniform, Zeros

        floats = dtype is None or _t.DType(dtype).is_floating
        initializer = GlorotUniform() if floats else Zeros()
    if isinstance(initializer, type):
        initializer = initializer()
    if callable(initializer) and not isinstance(initializer, (_t.Tensor, _t.Variable)):
        if shape is None:
            raise ValueError("Shape of a new variable must be fully defined when its initializer is a function.")
        lengths = TensorShape(shape).as_list()
        return initializer(lengths, dtype=dtype) if dtype is not None else initializer(lengths)
    return initializer


class container:
    """Holds the variables that are made by name inside of ``with``; ``close`` frees them."""

    def __init__(self, container_name):
        self.name = container_name

    def __enter__(self):
        _stack("containers").append(_containers.setdefault(self.name, {}))
        return self.name

    def __exit__(self, *exception):
        _stack("containers").pop()


def _container_table():
    return _stack("containers")[-1] if _stack("containers") else _named


def reset_container(name):
    """Frees the variables of a container that nobody else holds."""
    _containers.pop(name, None)


def global_variables(scope=None):
    """The variables of the default graph, and those that were made by name."""
    graph = [_wrap(v) for v in _stack("graphs")[-1].variables()] if _stack("graphs") else list(_named.values())
    return [v for v in graph if scope is None or v.name.startswith(scope)]


def trainable_variables(scope=None):
    """Those of them that tapes watch."""
    return [v for v in global_variables(scope) if v.trainable]


@_ignores("local_variables", "scope")
def local_variables(scope=None):
    """There are no others."""
    return []


def global_variables_initializer():
    """What gives all variables of a graph their first values. Variables that are made eagerly have theirs."""
    return Initializer()


initialize_all_variables = global_variables_initializer


def local_variables_initializer():
    """What has nothing to do."""
    return Operation([])


def variables_initializer(var_list, name="init"):
    """What gives these variables their first values."""
    return Initializer(list(var_list))


@_ignores("assign", "validate_shape")
def assign(ref, value, validate_shape=None, use_locking=None, name=None):
    """Gives a variable another value."""
    return ref.assign(value)


def assign_add(ref, value, use_locking=None, name=None):
    """Adds to a variable."""
    return ref.assign_add(value)


def assign_sub(ref, value, use_locking=None, name=None):
    """Takes from a variable."""
    return ref.assign_sub(value)


def is_variable_initialized(variable):
    """Whether it has a value; of a variable of a graph, in the session that is asked."""
    return Question(lambda session: session.is_initialized(variable)) if _stack("graphs") else variable.is_initialized()


def report_uninitialized_variables(var_list=None, name=None):
    """The names of variables without a value; in a graph, in the session that is asked."""
    if not _stack("graphs"):
        return [v.plain_name for v in var_list or global_variables() if not v.initialized]
    variables = list(var_list or global_variables())

    def answer(session):
        import numpy as np

        return np.array([v.plain_name for v in variables if not session.is_initialized(v)], dtype=object)

    return Question(answer)


class GraphKeys:
    """Names of collections."""

    GLOBAL_VARIABLES = "variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    LOCAL_VARIABLES = "local_variables"
    GLOBAL_STEP = "global_step"
    LOSSES = "losses"
    REGULARIZATION_LOSSES = "regularization_losses"
    UPDATE_OPS = "update_ops"
    SUMMARIES = "summaries"


def get_collection(key, scope=None):
    """What was collected under a name."""
    if key == GraphKeys.GLOBAL_VARIABLES:
        return global_variables(scope)
    if key == GraphKeys.TRAINABLE_VARIABLES:
        return trainable_variables(scope)
    return list(get_default_graph().collections.get(key, []))


def add_to_collection(name, value):
    """Collects a value under a name."""
    get_default_graph().collections.setdefault(name, []).append(value)


def get_collection_ref(key):
    """The list that a collection is."""
    return get_default_graph().collections.setdefault(key, [])


def name_scope(name, default_name=None, values=None):
    """Puts a name before those of variables."""
    return _tf.name_scope(name or default_name or "")


@_ignores("Print", "first_n", "summarize")
def Print(input_, data, message=None, first_n=None, summarize=None, name=None):
    """Prints values when the program runs; gives the input."""
    _tf.print(message or "", *data)
    return _t.to_tensor(input_, None, None)


def to_float(x, name=None):
    """As float32."""
    return _tf.cast(x, "float32")


def to_int32(x, name=None):
    """As int32."""
    return _tf.cast(x, "int32")


def zeros_initializer(dtype="float32"):
    """Starts as zeros."""
    from ..keras.initializers import Zeros

    return Zeros()


def ones_initializer(dtype="float32"):
    """Starts as ones."""
    from ..keras.initializers import Ones

    return Ones()


def constant_initializer(value=0, dtype="float32"):
    """Starts as one number."""
    from ..keras.initializers import Constant

    return Constant(value)


def random_normal_initializer(mean=0.0, stddev=1.0, seed=None, dtype="float32"):
    """Starts as normal random numbers."""
    from ..keras.initializers import RandomNormal

    return RandomNormal(mean, stddev, seed)


def glorot_uniform_initializer(seed=None, dtype="float32"):
    """Starts as Glorot and Bengio say."""
    from ..keras.initializers import GlorotUniform

    return GlorotUniform(seed)


Variable = _Variable


def __getattr__(name):
    # Everything else is as in TensorFlow 2.
    return getattr(_tf, name)
