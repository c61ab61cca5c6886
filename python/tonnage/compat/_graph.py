"""Graphs with placeholders, and the sessions that run them.

Where no graph is built ops run at once, and a session gives their values: programs that mix both manners work as their
authors meant them.
"""

import threading

from .. import _nest
from .. import _tonnage as _t
from .._shape import TensorShape
from ..module import scoped
from .._notices import ignores

_local = threading.local()
_default = {"graph": None, "eager": True}
named = {}


def stack(name):
    """A list of this thread's own: graphs, sessions, scopes."""
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


def waited_for():
    """What ops that are made now wait for."""
    return list(stack("controls")[-1]) if stack("controls") else []


def leading(inputs):
    """The tensors that ops, nested as you like, lead to."""
    made = []
    for leaf in _nest.flatten(inputs):
        if isinstance(leaf, Operation):
            made += leading(leaf.parts)
        elif isinstance(leaf, _t.Tensor) and leaf.is_symbolic:
            made.append(leaf)
    return made


class Question(Operation):
    """What a session answers itself: whether a variable has a value."""

    def __init__(self, answer):
        super().__init__([], "question")
        self.answer = answer


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
        self._defaults = {}
        self._named = {}
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
        """A placeholder by its name, or what ``tf.identity`` named."""
        name = name.split(":")[0]
        found = self._placeholders.get(name, self._named.get(name))
        if found is None:
            known = ", ".join([*self._placeholders, *self._named]) or "none"
            raise KeyError(f"The name {name!r} refers to a Tensor which does not exist. Names are those of placeholders and "
                           f"of tf.identity(x, name=...): {known}")
        return found

    def give_name(self, tensor, name):
        """Lets a tensor be found by a name."""
        name = self.unique_name(scoped(name))
        tensor.name = name + ":0"
        self._named[name] = tensor
        return tensor

    def finalize(self):
        """Graphs may grow while sessions run them."""

    @ignores("Graph.get_collection", "scope")
    def get_collection(self, name, scope=None):
        """What was collected under a name."""
        return list(self.collections.get(name, []))


class _Entered:
    def __init__(self, graph):
        self.graph = graph

    def __enter__(self):
        self.graph.enter()
        stack("graphs").append(self.graph)
        return self.graph

    def __exit__(self, *exception):
        stack("graphs").pop()
        self.graph.leave()


def get_default_graph():
    """The graph that ops go into."""
    if stack("graphs"):
        return stack("graphs")[-1]
    if _default["graph"] is None:
        _default["graph"] = Graph()
    return _default["graph"]


def reset_default_graph():
    """Forgets the default graph, and the variables that were made by name."""
    if not _default["eager"]:
        stack("graphs").pop()
        _default["graph"].leave()
    _default["graph"] = Graph()
    named.clear()
    if not _default["eager"]:
        _default["graph"].enter()
        stack("graphs").append(_default["graph"])


def disable_eager_execution():
    """Lets ops go into the default graph from here on."""
    if _default["eager"]:
        _default["eager"] = False
        graph = _default["graph"] = _default["graph"] or Graph()
        graph.enter()
        stack("graphs").append(graph)


disable_v2_behavior = disable_eager_execution


def enable_eager_execution(*args, **kwargs):
    """Lets ops run at once again."""
    if not _default["eager"]:
        _default["eager"] = True
        stack("graphs").pop()
        _default["graph"].leave()


enable_v2_behavior = enable_eager_execution


def executing_eagerly():
    """Whether ops run at once."""
    return not _t.is_symbolic()


def placeholder(dtype, shape=None, name=None):
    """A value that is fed when the graph runs. Takes no memory."""
    if not stack("graphs"):
        raise RuntimeError("tf.placeholder() is not compatible with eager execution.")
    if shape is None:
        raise ValueError("a placeholder needs a shape; write None for lengths that are open")
    graph = stack("graphs")[-1]
    name = graph.unique_name(scoped(name or "Placeholder"))
    made = graph.add_placeholder(name, dtype, TensorShape(shape))
    made.name = name + ":0"
    graph._placeholders[name] = made
    return made


def placeholder_with_default(input, shape, name=None):
    """A value that is ``input`` where nothing is fed."""
    if not stack("graphs"):
        return _t.to_tensor(input, None, None)
    default = _t.to_tensor(input, None, None)
    made = placeholder(default.dtype, shape, name or "PlaceholderWithDefault")
    stack("graphs")[-1]._defaults[made.name.split(":")[0]] = default
    return made


class Session:
    """Runs graphs, and owns the values of their variables. Closing it frees them.

    Over tensors that have values already it gives them, as NumPy arrays that take no memory of their own.
    """

    def __init__(self, target="", graph=None, config=None):
        if target:
            raise ValueError(f"there is no other machine to run on: {target!r}")
        if config is not None:
            config._act()
        self.graph = graph if graph is not None else get_default_graph()
        self._session = _t.RawSession(self.graph)
        self._closed = False

    def __enter__(self):
        stack("sessions").append(self)
        self._entered = _Entered(self.graph) if not _default["eager"] or self.graph._placeholders else None
        if self._entered:
            self._entered.__enter__()
        return self

    def __exit__(self, *exception):
        if self._entered:
            self._entered.__exit__()
        stack("sessions").pop()
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
        if options is not None or run_metadata is not None:
            from .._notices import no_effect

            no_effect("Session.run", options=options is not None, run_metadata=run_metadata is not None)
        feeds = [self._feed(key, value) for key, value in (feed_dict or {}).items()]
        fed = {name for name, _ in feeds}
        for name, default in self.graph._defaults.items():
            if name not in fed:
                feeds.append((name, default if not default.is_symbolic else self._session.run(default, [], feeds)))
        leaves = _flatten(fetches)
        tensors, updates = [], []
        for leaf in leaves:
            self._collect(leaf, tensors, updates)
        made = iter(self._session.run(tensors, updates, feeds) if tensors or updates else [])
        return _rebuilt(fetches, iter([self._value(leaf, made) for leaf in leaves]))

    def is_initialized(self, variable):
        """Whether a variable has a value here."""
        if not _is_declared(variable, self.graph):
            return variable.initialized
        return self._session.is_initialized(variable)

    def _feed(self, key, value):
        if isinstance(key, str):
            key = self.graph.get_tensor_by_name(key)
        if not isinstance(key, _t.Tensor) or not key.is_symbolic:
            raise TypeError(f"Cannot interpret feed_dict key as Tensor: {key!r:.80} is no placeholder")
        if key.name.split(":")[0] not in self.graph._placeholders:
            raise TypeError(f"only placeholders can be fed, not {key!r}; make it a tf.compat.v1.placeholder_with_default")
        value = _t.call_eagerly(lambda: _t.to_tensor(value, key.dtype, None))
        if not key.shape.is_compatible_with(value.shape):
            raise ValueError(f"Cannot feed value of shape {value.shape} for Tensor {key.name!r}, which has shape "
                             f"{key.shape}")
        return key.name.split(":")[0], value

    def _collect(self, leaf, tensors, updates):
        if isinstance(leaf, Question):
            return
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
                self._session.initialize(variable)

    def _value(self, leaf, made):
        if isinstance(leaf, Question):
            return leaf.answer(self)
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
        stack("sessions").append(self)

    def close(self):
        """Frees everything that it holds."""
        if self in stack("sessions"):
            stack("sessions").remove(self)
        super().close()


class _AsDefault:
    def __init__(self, session):
        self.session = session

    def __enter__(self):
        stack("sessions").append(self.session)
        return self.session

    def __exit__(self, *exception):
        stack("sessions").pop()


def get_default_session():
    """The session that ``eval`` uses."""
    return stack("sessions")[-1] if stack("sessions") else None


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


class _Options:
    """Options by name, which can be set later too."""

    def __init__(self, **options):
        self.__dict__.update(options)


def GPUOptions(**options):
    """There is no GPU: what is said here has no effect."""
    return _Options(**options)


class ConfigProto(_Options):
    """What a session is told. The number of threads acts; memory is obtained as it is needed, and limits are ``tf.memory``'s."""

    def __init__(self, **options):
        super().__init__(gpu_options=GPUOptions(), graph_options=_Options(), **options)
        self.__dict__.update(options)

    def _act(self):
        from .._notices import no_effect
        from ..config import threading as threads

        count = getattr(self, "intra_op_parallelism_threads", 0)
        if count and threads.get_intra_op_parallelism_threads() != count:
            threads.set_intra_op_parallelism_threads(count)
        # What allows what is so anyway needs no word.
        harmless = ("gpu_options", "graph_options", "intra_op_parallelism_threads", "allow_soft_placement", "device_count")
        no_effect("tf.compat.v1.ConfigProto", **{n: v for n, v in vars(self).items() if n not in harmless})
