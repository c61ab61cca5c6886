"""Modules: objects that find the variables and modules that they hold. And scopes of names."""

import re as _re
import threading as _threading

from . import _tonnage as _t

_scopes = _threading.local()


def _stack():
    if not hasattr(_scopes, "names"):
        _scopes.names = []
    return _scopes.names


class name_scope:
    """Puts a name before those of variables that are made inside of ``with``. What is done there counts to a layer of that name, in plans and
    in reports."""

    def __init__(self, name):
        self._name = name

    @property
    def name(self):
        """The name."""
        return self._name

    def __enter__(self):
        _stack().append(self._name)
        _t.enter_layer((self._name or "").strip("/"))
        return current_scope() + "/"

    def __exit__(self, *exception):
        _t.leave_layer()
        _stack().pop()


def current_scope():
    """The names of all scopes around."""
    return "/".join(name.strip("/") for name in _stack() if name)


def scoped(name):
    """A name with those of the scopes around it."""
    scope = current_scope()
    return f"{scope}/{name}" if scope else name


def camel_to_snake(name):
    """``DenseLayer`` as ``dense_layer``."""
    name = _re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return _re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


class Module:
    """A base for objects that hold variables: finds them, and those of modules that it holds.

    >>> class Dense(tf.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.w = tf.Variable(tf.zeros([2, 2]), name="w")
    """

    def __init__(self, name=None):
        self._name = name or camel_to_snake(type(self).__name__)

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        # A checkpoint that was restored before the attribute was there gives it its state now.
        if "_tonnage_deferred" in self.__dict__:
            from .train.checkpoint import resume

            resume(self)

    @property
    def name(self):
        """Its name."""
        return getattr(self, "_name", camel_to_snake(type(self).__name__))

    @property
    def name_scope(self):
        """The scope of its name."""
        return name_scope(self.name)

    @classmethod
    def with_name_scope(cls, method):
        """A method that runs inside of its module's scope."""
        import functools

        @functools.wraps(method)
        def inside(self, *args, **kwargs):
            with self.name_scope:
                return method(self, *args, **kwargs)

        return inside

    def _walk(self, seen, wanted):
        # What it holds itself comes before what its modules hold.
        modules = []
        for key in sorted(vars(self)):
            if key.startswith("_tonnage_method_") or key in getattr(self, "_not_tracked", ()):
                continue
            for leaf in _leaves(vars(self)[key], seen):
                if isinstance(leaf, wanted):
                    yield leaf
                if isinstance(leaf, Module):
                    modules.append(leaf)
        for module in modules:
            yield from module._walk(seen, wanted)

    @property
    def variables(self):
        """All variables that it holds."""
        return tuple(self._walk(set(), _t.Variable))

    @property
    def trainable_variables(self):
        """Those that tapes watch by themselves."""
        return tuple(v for v in self.variables if v.trainable)

    @property
    def non_trainable_variables(self):
        """The others."""
        return tuple(v for v in self.variables if not v.trainable)

    @property
    def submodules(self):
        """All modules that it holds, and those that they hold."""
        return tuple(self._walk({id(self)}, Module))


def _leaves(value, seen):
    """The variables and modules of an attribute that were not seen yet."""
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part, seen)
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _leaves(value[key], seen)
    elif isinstance(value, (_t.Variable, Module)):
        key = ("variable", value.number) if isinstance(value, _t.Variable) else id(value)
        if key not in seen:
            seen.add(key)
            yield value


class control_dependencies:
    """In a deferred graph, what is built inside of ``with`` runs after these, and reads variables as they leave them. Elsewhere
    effects run in the order of the program anyway."""

    def __init__(self, control_inputs):
        self._inputs = control_inputs

    def __enter__(self):
        from ._variable import deferred_graph

        self._graph = deferred_graph()
        if self._graph is None:
            return self
        from .compat._graph import leading, stack

        tensors = leading(self._inputs) if self._inputs is not None else []
        self._shown = []
        for tensor in tensors:
            variable = getattr(tensor, "_updates", None)
            if variable is not None:
                self._shown.append((variable, variable.read_value()))
                self._graph.show(variable, tensor)
        before = stack("controls")[-1] if stack("controls") and self._inputs is not None else []
        stack("controls").append([*before, *tensors])
        self._before = self._graph.wait_for(stack("controls")[-1])
        return self

    def __exit__(self, *exception):
        if self._graph is None:
            return
        from .compat._graph import stack

        stack("controls").pop()
        self._graph.wait_for(self._before)
        for variable, value in reversed(self._shown):
            self._graph.show(variable, value)


def group(*inputs, name=None, **kwargs):
    """Several ops as one."""
    from ._notices import refuse
    from .compat._graph import Operation, waited_for

    refuse("tf.group", kwargs)
    return Operation([*inputs, *waited_for()])


def no_op(name=None):
    """An op that does nothing."""
    from .compat._graph import Operation, waited_for

    return Operation(waited_for())
