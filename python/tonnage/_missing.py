"""Names that are not there: the error says which was meant, if that can be told."""

import difflib
import sys
import types

# What TensorFlow has under these names are whole modules: nothing that is spelled alike is what was meant.
# The two packages are also those whose modules users name.
_NOT_HERE = {
    "tonnage": {"audio", "autodiff", "estimator", "feature_column", "graph_util", "lite", "mlir",
                "quantization", "queue", "ragged", "saved_model", "summary", "sysconfig",
                "tpu", "types", "xla"},
    "tonnage.keras": {"applications", "datasets", "dtype_policies", "export", "ops", "preprocessing", "quantizers", "random", "tree",
                      "visualization", "wrappers"},
}


def missing(module, name, names):
    """The error for a name that a module has not; ``names`` is a dictionary of those that it has."""
    text = f"module {module!r} has no attribute {name!r}"
    if name.startswith("__"):  # what Python itself asks for, as modules are imported
        return AttributeError(text)
    if name in _NOT_HERE.get(module, ()):
        return AttributeError(f"{text}: it is a module of TensorFlow that Tonnage does not have")
    if name in sys.modules["tonnage"]._LAZY:  # spelled right, and looked for in the wrong place
        return AttributeError(text)
    near = _meant(name, [n for n, value in names.items() if _is_public(module, n, value)])
    return AttributeError(f"{text}; did you mean {near!r}?" if near else text)


def _is_public(module, name, value):
    """Whether users should use it: not what a module imports for itself, nor the files that it is made of."""
    if name.startswith("_") or name in ("ignores", "refuse"):
        return False
    return not isinstance(value, types.ModuleType) or module in _NOT_HERE and value.__name__.startswith("tonnage.")


def _plain(name):
    return name.replace("_", "").lower()


def _kind(name):
    """What a name is, by the way it is spelled: a constant, a class, or a function, a dtype or a module."""
    return "constant" if name.isupper() and len(name) > 1 else "class" if name[:1].isupper() else "other"


def _meant(name, public):
    """The same name spelled otherwise, or one of the same kind that differs by a letter or two."""
    same = [n for n in public if _plain(n) == _plain(name)]
    alike = [n for n in public if _kind(n) == _kind(name)]
    return next(iter(same or difflib.get_close_matches(name, alike, 1, 0.8)), None)
