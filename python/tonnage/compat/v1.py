"""``tf.compat.v1``: graphs with placeholders that run in sessions, and variables by name.

Where no graph is built ops run at once, and a session gives their values: programs that mix both manners work as their
authors meant them.
"""

import threading

import tonnage as _tf

from .. import _nest
from .. import _tonnage as _t
from .._shape import TensorShape
from .._variable import Variable as _Variable
from .._variable import wrap
from ..module import control_dependencies, group, no_op, scoped  # noqa: F401

_local = threading.local()
_named = {}
_containers = {}
_default = {"graph": None, "eager": True}


def _stack(name):
    if not hasattr(_local, name):
        setattr(_local, name, [])
    return getattr(_local, name)


class Operation:
    """Something that a session runs for its effect: what it leads to are tensors, variables' initializers, others."""

    def __init__(self, parts, name="op"):
        self.parts, self.name = parts, name

    def run(self, feed_dict=None, session=None):
        """Runs it in a session."""
        (session or get_default_session()).run(self, feed_dict)


class Initializer(Operation):
    """Gives variables their first values. ``None`` are all of the session's graph."""

    def __init__(self, variables=None):
        super().__init__([], "init")
        self.variables = variables


class Graph(_t.Graph):
    """A graph that is built first and run later: nothing in it runs, and nothing is obtained.

    >>> graph = tf.compat.v1.Graph()
    >>> with graph.as_default():
    ...     x = tf.compat.v1.placeholder(tf.float32, [None])
    """

    def __init__(self):
        super().__init__()
        self._placeholders = {}
        self._names = {}
        self._variables = {}
        self.collections = {}

    def as_default(self):
        """Lets ops go into it inside of ``with``."""
        return _Entered(self)

    def unique_name(self, name):
        """A name that is not taken."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return name if count == 0 else f"{name}_{count}"

    def get_tensor_by_name(self, name):
        """A placeholder by its name."""
        name = name.split(":")[0]
        if name not in self._placeholders:
            raise KeyError(f"The name {name!r} refers to a Tensor which does not exist.")
        return self._placeholders[name]

    def finalize(self):
        """Graphs may grow while sessions run them."""

    def get_collection(self, name, scope=None):
        """What was collected under a name."""
        return list(self.collections.get(name, []))


class _Entered:
    def __init__(self, graph):
        self.graph = graph

    def __enter__(self):
        self.graph.enter()
        _stack("graphs").append(self.graph)
        return self.graph

    def __exit__(self, *exception):
        _stack("graphs").pop()
        self.graph.leave()


def get_default_graph():
    """The graph that ops go into."""
    if _stack("graphs"):
        return _stack("graphs")[-1]
    if _default["graph"] is None:
        _default["graph"] = Graph()
    return _default["graph"]


def reset_default_graph():
    """Forgets the default graph, and the variables that were made by name."""
    if not _default["eager"]:
        _stack("graphs").pop()
        _default["graph"].leave()
    _default["graph"] = Graph()
    _named.clear()
    if not _default["eager"]:
        _default["graph"].enter()
        _stack("graphs").append(_default["graph"])


def disable_eager_execution():
    """Lets ops go into the default graph from here on."""
    if _default["eager"]:
        _default["eager"] = False
        graph = _default["graph"] = _default["graph"] or Graph()
        graph.enter()
        _stack("graphs").append(graph)


disable_v2_behavior = disable_eager_execution


def enable_eager_execution(*args, **kwargs):
    """Lets ops run at once again."""
    if not _default["eager"]:
        _default["eager"] = True
        _stack("graphs").pop()
        _default["graph"].leave()


enable_v2_behavior = enable_eager_execution


def executing_eagerly():
    """Whether ops run at once."""
    return not _t.is_symbolic()


def placeholder(dtype, shape=None, name=None):
    """A value that is fed when the graph runs. Takes no memory."""
    if not _stack("graphs"):
        raise RuntimeError("tf.placeholder() is not compatible with eager execution.")
    if shape is None:
        raise ValueError("a placeholder needs a shape; write None for lengths that are open")
    graph = _stack("graphs")[-1]
    name = graph.unique_name(scoped(name or "Placeholder"))
    made = graph.add_placeholder(name, dtype, TensorShape(shape))
    made.name = name + ":0"
    graph._placeholders[name] = made
    return made


def placeholder_with_default(input, shape, name=None):
    """The default: feeding another value is not there."""
    from .._notices import once

    once("placeholder_with_default", "placeholder_with_default: the default is used; feed a placeholder instead")
    return _t.to_tensor(input, None, None)


class Session:
    """Runs graphs, and owns the values of their variables. Closing it frees them.

    Over tensors that have values already it gives them, as NumPy arrays that take no memory of their own.
    """

    def __init__(self, target="", graph=None, config=None):
        self.graph = graph if graph is not None else get_default_graph()
        self._session = _t.RawSession(self.graph)
        self._closed = False

    def __enter__(self):
        _stack("sessions").append(self)
        self._entered = _Entered(self.graph) if not _default["eager"] or self.graph._placeholders else None
        if self._entered:
            self._entered.__enter__()
        return self

    def __exit__(self, *exception):
        if self._entered:
            self._entered.__exit__()
        _stack("sessions").pop()
        self.close()

    def as_default(self):
        """Makes it the one that ``eval`` uses, inside of ``with``, without closing it."""
        return _AsDefault(self)

    def close(self):
        """Frees everything that it holds. Closing twice is harmless."""
        self._closed = True
        self._session.close()

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        """Computes what is asked for, nested as you like, as NumPy arrays."""
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        feeds = [self._feed(key, value) for key, value in (feed_dict or {}).items()]
        leaves = _flatten(fetches)
        tensors, updates = [], []
        for leaf in leaves:
            self._collect(leaf, tensors, updates)
        made = iter(self._session.run(tensors, updates, feeds) if tensors or updates else [])
        return _rebuilt(fetches, iter([self._value(leaf, made) for leaf in leaves]))

    def _feed(self, key, value):
        if isinstance(key, str):
            key = self.graph.get_tensor_by_name(key)
        if not isinstance(key, _t.Tensor) or not key.is_symbolic:
            raise TypeError(f"Cannot interpret feed_dict key as Tensor: {key!r:.80} is no placeholder")
        value = _t.call_eagerly(lambda: _t.to_tensor(value, key.dtype, None))
        if not key.shape.is_compatible_with(value.shape):
            raise ValueError(f"Cannot feed value of shape {value.shape} for Tensor {key.name!r}, which has shape "
                             f"{key.shape}")
        return key.name.split(":")[0], value

    def _collect(self, leaf, tensors, updates):
        if isinstance(leaf, Initializer):
            self._initialize(leaf)
        elif isinstance(leaf, Operation):
            for part in leaf.parts:
                if isinstance(part, Initializer):
                    self._initialize(part)
                elif isinstance(part, Operation):
                    self._collect(part, [], updates)
                elif isinstance(part, _t.Tensor) and part.is_symbolic:
                    updates.append(part)
        elif isinstance(leaf, _t.Tensor):
            tensors.append(leaf)
        elif isinstance(leaf, str):
            tensors.append(self.graph.get_tensor_by_name(leaf))
        elif not isinstance(leaf, _t.Variable) and leaf is not None and not hasattr(leaf, "__tf_tensor__"):
            raise TypeError(f"Fetch argument {leaf!r:.80} has invalid type {type(leaf)}, must be a tensor, a variable "
                            "or an operation")

    def _initialize(self, leaf):
        if leaf.variables is None:
            self._session.initialize()
            return
        for variable in leaf.variables:
            if _is_declared(variable, self.graph):
                self._session.initialize()
                return

    def _value(self, leaf, made):
        if isinstance(leaf, (_t.Tensor, str)):
            return next(made).numpy()
        if isinstance(leaf, _t.Variable):
            if _is_declared(leaf, self.graph):
                return self._session.value(leaf).numpy()
            return leaf.numpy()
        if hasattr(leaf, "__tf_tensor__"):
            return leaf.__tf_tensor__().numpy()
        return None


class InteractiveSession(Session):
    """A session that is the default one from its making on."""

    def __init__(self, target="", graph=None, config=None):
        super().__init__(target, graph, config)
        _stack("sessions").append(self)

    def close(self):
        """Frees everything that it holds."""
        if self in _stack("sessions"):
            _stack("sessions").remove(self)
        super().close()


class _AsDefault:
    def __init__(self, session):
        self.session = session

    def __enter__(self):
        _stack("sessions").append(self.session)
        return self.session

    def __exit__(self, *exception):
        _stack("sessions").pop()


def get_default_session():
    """The session that ``eval`` uses."""
    return _stack("sessions")[-1] if _stack("sessions") else None


def _is_declared(variable, graph):
    return variable.number in {v.number for v in graph.variables()}


def _flatten(fetches):
    return _nest.flatten(fetches)


def _rebuilt(fetches, values):
    if isinstance(fetches, dict):
        made = {key: _rebuilt(fetches[key], values) for key in sorted(fetches)}
        return {key: made[key] for key in fetches}
    if isinstance(fetches, tuple) and hasattr(fetches, "_make"):
        return fetches._make(_rebuilt(part, values) for part in fetches)
    if isinstance(fetches, (list, tuple)):
        return type(fetches)(_rebuilt(part, values) for part in fetches)
    return next(values)


def ConfigProto(*args, **kwargs):
    """There is nothing to configure: memory is obtained as it is needed, and limits are ``tf.memory``'s."""
    from types import SimpleNamespace

    return SimpleNamespace(gpu_options=SimpleNamespace(), **kwargs)


def GPUOptions(*args, **kwargs):
    """There is no GPU."""
    from types import SimpleNamespace

    return SimpleNamespace(**kwargs)


# Variables by name.

AUTO_REUSE = "auto"


class variable_scope:
    """Puts a name before those of variables, and says whether ``get_variable`` finds them again."""

    def __init__(self, name_or_scope, default_name=None, values=None, initializer=None, reuse=None, dtype=None, **_):
        self._name = getattr(name_or_scope, "_name", name_or_scope) or default_name or ""
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


def get_variable(name, shape=None, dtype=None, initializer=None, regularizer=None, trainable=None, collections=None,
                 caching_device=None, partitioner=None, validate_shape=True, use_resource=None, custom_getter=None,
                 constraint=None, **_):
    """The variable of that name in the current scopes: made the first time, found again as ``reuse`` says."""
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
    graph = [wrap(v) for v in _stack("graphs")[-1].variables()] if _stack("graphs") else list(_named.values())
    return [v for v in graph if scope is None or v.name.startswith(scope)]


def trainable_variables(scope=None):
    """Those of them that tapes watch."""
    return [v for v in global_variables(scope) if v.trainable]


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
    """Whether it has a value."""
    return variable.is_initialized()


def report_uninitialized_variables(var_list=None, name=None):
    """The names of variables without a value."""
    return [v.plain_name for v in var_list or global_variables() if not v.initialized]


def name_scope(name, default_name=None, values=None):
    """Puts a name before those of variables."""
    return _tf.name_scope(name or default_name or "")


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
