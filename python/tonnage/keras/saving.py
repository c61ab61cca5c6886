"""Objects as configurations, and back: what ``get_config``, ``from_config`` and whole models in files rest on.

A configuration is plain data (JSON). Code never comes out of a file: a function or a class of one's own is looked up by
the name that it was registered under.
"""

import contextlib as _contextlib
import functools as _functools
import importlib as _importlib
import inspect as _inspect

import numpy as _np

from .. import _tonnage as _t

_registered = {}
_names = {}
_scopes = []
_MODULES = ("layers", "models", "optimizers", "losses", "metrics", "initializers", "regularizers", "constraints",
            "activations", "mixed_precision", "optimizers.schedules", "callbacks")


def register_keras_serializable(package="Custom", name=None):
    """Lets a class or a function be found by its name as files are loaded."""

    def decorate(target):
        key = f"{package}>{name or target.__name__}"
        if _inspect.isclass(target) and not hasattr(target, "get_config"):
            raise ValueError("Cannot register a class that does not have a get_config() method.")
        _registered[key] = target
        _names[target] = key
        return target

    return decorate


def get_registered_name(target):
    """The name that it was registered under, or its own."""
    return _names.get(target, target.__name__)


def get_registered_object(name, custom_objects=None, module_objects=None):
    """What was registered under a name, or none."""
    for known in (custom_objects or {}, *reversed(_scopes), _registered, module_objects or {}):
        if name in known:
            return known[name]
    return None


def get_custom_objects():
    """What was registered, by name; it may be added to."""
    return _registered


@_contextlib.contextmanager
def custom_object_scope(custom_objects):
    """Inside of ``with``, classes and functions are found by these names."""
    _scopes.append(dict(custom_objects))
    try:
        yield
    finally:
        _scopes.pop()


CustomObjectScope = custom_object_scope


@_functools.lru_cache(maxsize=None)
def _signature(init):
    return _inspect.signature(init)


class Configured:
    """An object that knows what it was made with, so that it can be made again."""

    def __new__(cls, *args, **kwargs):
        self = super().__new__(cls)
        try:
            bound = _signature(cls.__init__).bind(self, *args, **kwargs)
        except TypeError:
            return self  # the call of __init__ that follows says what is wrong
        given = {}
        for name, value in list(bound.arguments.items())[1:]:
            kind = bound.signature.parameters[name].kind
            if kind is _inspect.Parameter.VAR_KEYWORD:
                given.update(value)
            elif kind is not _inspect.Parameter.VAR_POSITIONAL:
                given[name] = value
        object.__setattr__(self, "_made_with", given)
        return self

    def _arguments(self):
        """What it was made with, the usual values filled in."""
        given = {}
        for name, parameter in _signature(type(self).__init__).parameters.items():
            if name != "self" and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                given[name] = parameter.default
        given.update(self._made_with)
        missing = [name for name, value in given.items() if value is _inspect.Parameter.empty]
        if missing:
            raise NotImplementedError(f"{type(self).__name__} does not say how it is made again: {missing}; write a "
                                      "get_config()")
        return given

    def get_config(self):
        """What it was made with, as plain data."""
        return {name: serialize_keras_object(value) for name, value in self._arguments().items()}

    @classmethod
    def from_config(cls, config):
        """Made again from what :meth:`get_config` gave."""
        return cls(**{name: deserialize_keras_object(value) for name, value in config.items()})


def serialize_keras_object(obj):
    """An object as plain data."""
    if obj is None or isinstance(obj, (bool, int, float, str)):
        return obj
    if isinstance(obj, _np.generic):
        return obj.item()
    if isinstance(obj, tuple):
        return {"class_name": "__tuple__", "items": [serialize_keras_object(o) for o in obj]}
    if isinstance(obj, list):
        return [serialize_keras_object(o) for o in obj]
    if isinstance(obj, dict):
        return {key: serialize_keras_object(value) for key, value in obj.items()}
    if isinstance(obj, _np.ndarray):
        return {"class_name": "__numpy__", "config": {"value": obj.tolist(), "dtype": obj.dtype.name}}
    if isinstance(obj, _t.DType):
        return obj.name
    if isinstance(obj, (_t.Tensor, _t.Variable)):
        return {"class_name": "__tensor__", "config": {"value": obj.numpy().tolist(), "dtype": obj.dtype.name}}
    if hasattr(obj, "as_list") and hasattr(obj, "is_fully_defined"):
        return {"class_name": "__tuple__", "items": obj.as_list()}
    if _inspect.isfunction(obj) or isinstance(obj, _t.Op):
        return _function(obj)
    if hasattr(obj, "get_config"):
        return _object(obj)
    raise TypeError(f"Cannot serialize object {obj!r:.80} of type {type(obj)}.")


def _function(obj):
    name = getattr(obj, "__name__", None) or obj.name
    module = _home(name, obj)
    if module is not None:
        return {"module": module, "class_name": "function", "config": name, "registered_name": name}
    if name == "<lambda>":
        raise ValueError("a lambda cannot be saved: it has no name to be found by; use a function of its own, registered "
                         "with tf.keras.saving.register_keras_serializable")
    return {"module": "custom", "class_name": "function", "config": name, "registered_name": get_registered_name(obj)}


def _object(obj):
    cls = type(obj)
    module = _home(cls.__name__, cls)
    made = {"module": module or "custom", "class_name": cls.__name__, "config": obj.get_config(),
            "registered_name": None if module else get_registered_name(cls)}
    build = getattr(obj, "get_build_config", None)
    if build is not None and build():
        made["build_config"] = build()
    compiled = getattr(obj, "get_compile_config", None)
    if compiled is not None and compiled():
        made["compile_config"] = compiled()
    return made


def _module(name):
    return _importlib.import_module(f"{__package__}.{name}")


def _home(name, obj):
    """The module of Keras that has it under that name."""
    for module in _MODULES:
        if getattr(_module(module), "__dict__", {}).get(name) is obj:
            return f"keras.{module}"
    return None


def _found(config, custom_objects):
    name, registered = config["class_name"], config.get("registered_name")
    if name == "function":
        name = config["config"]
    for wanted in (registered, name):
        if wanted is not None:
            found = get_registered_object(wanted, custom_objects)
            if found is not None:
                return found
    # A class that is registered under a package is found by its own name too.
    for key, value in _registered.items():
        if key.rpartition(">")[2] == name:
            return value
    module = str(config.get("module") or "")
    order = [m for m in _MODULES if module == f"keras.{m}"] + list(_MODULES)
    if module != "custom":
        for candidate in order:
            found = getattr(_module(candidate), name, None) if not name.startswith("_") else None
            if found is not None:
                return found
    raise TypeError(f"Could not locate {'function' if config['class_name'] == 'function' else 'class'} {name!r}. Make sure "
                    "custom classes and functions are decorated with @tf.keras.saving.register_keras_serializable(), or "
                    "give them in custom_objects.")


def deserialize_keras_object(config, custom_objects=None, safe_mode=True):
    """What plain data stand for."""
    if isinstance(config, list):
        return [deserialize_keras_object(c, custom_objects) for c in config]
    if not isinstance(config, dict):
        return config
    name = config.get("class_name")
    if name is None or ("config" not in config and "items" not in config):
        return {key: deserialize_keras_object(value, custom_objects) for key, value in config.items()}
    if name == "__tuple__":
        return tuple(deserialize_keras_object(c, custom_objects) for c in config["items"])
    inner = config["config"]
    if name == "__numpy__":
        return _np.array(inner["value"], dtype=inner["dtype"])
    if name == "__tensor__":
        return _t.to_tensor(_np.array(inner["value"], dtype=inner["dtype"]), None, None)
    found = _found(config, custom_objects)
    if name == "function":
        return found
    with custom_object_scope(custom_objects or {}):
        made = found.from_config(inner) if hasattr(found, "from_config") else found(**(inner or {}))
        if config.get("build_config") and hasattr(made, "build_from_config"):
            made.build_from_config(config["build_config"])
        if config.get("compile_config") and hasattr(made, "compile_from_config"):
            made.compile_from_config(config["compile_config"])
    return made


def get(identifier, module, what, kinds=()):
    """An object of a module by a name, a configuration, or as it is."""
    if identifier is None:
        return None
    if isinstance(identifier, dict):
        return deserialize_keras_object(identifier)
    if isinstance(identifier, str):
        found = get_registered_object(identifier) or module.get(identifier)
        if found is None:
            lowered = identifier.lower().replace("_", "")
            found = next((v for k, v in module.items() if not k.startswith("_") and k.lower().replace("_", "") == lowered
                          and _inspect.isclass(v) and issubclass(v, kinds or object)), None)
        if found is None or (not callable(found)) or identifier.startswith("_"):
            raise ValueError(f"Could not interpret {what} identifier: {identifier!r}")
        return found() if _inspect.isclass(found) else found
    if _inspect.isclass(identifier) and (not kinds or issubclass(identifier, kinds)):
        return identifier()
    if callable(identifier) or (kinds and isinstance(identifier, kinds)):
        return identifier
    raise ValueError(f"Could not interpret {what} identifier: {identifier!r}")


def load_model(filepath, custom_objects=None, compile=True, safe_mode=True):
    """A whole model from a file that ``model.save`` wrote: its layers, its weights, how it was compiled, and where its
    optimizer was."""
    from .models.files import load_model as load

    return load(filepath, custom_objects, compile)


def save_model(model, filepath, overwrite=True, **kwargs):
    """A whole model to a file. See ``model.save``."""
    model.save(filepath, overwrite=overwrite, **kwargs)
