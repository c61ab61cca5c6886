"""Modules that hand out Tonnage's names under TensorFlow's, and the finder that makes them.

``tensorflow.a.b`` is whatever ``tonnage.a.b`` is: a module, or a class that serves as one. A name that Tonnage has not is an
``AttributeError``, with Tonnage's words, where it is used; a module that it has not is a ``ModuleNotFoundError``. ``tensorflow.keras`` is the
Keras that is installed, and Tonnage's own where none is.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import types

import tonnage
from tonnage import _tonnage as _t

_KERAS = "keras._tf_keras.keras"

# Keras, and what its functions are called back through.
_LIBRARIES = ("keras", "optree", "tree")


class Served(types.ModuleType):
    """A module of TensorFlow's name whose attributes are those of ``of``; what it is given itself comes first."""

    def __init__(self, name, of, own=None):
        super().__init__(name, of.__doc__)
        self.__path__ = []
        self._tonnage_of = of
        self.__dict__.update(own or {})

    def __getattr__(self, name):
        if name.startswith("__"):  # what Python itself asks for
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        # A step of Keras looks up dozens of names: each is found once.
        found = self.__dict__[name] = getattr(self._tonnage_of, name)
        return found

    def __dir__(self):
        return sorted({*self.__dict__, *dir(self._tonnage_of)} - {"_tonnage_of"})


class _Root(Served):
    """``tensorflow`` itself."""

    def __getattr__(self, name):
        if name == "keras":
            return importlib.import_module("tensorflow.keras")
        if name == "__internal__":
            from . import internal

            return internal.TREE
        return super().__getattr__(name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``tensorflow`` and all below it; and looks at the version of Keras before others find that."""

    def find_spec(self, name, path=None, target=None):
        if name in _LIBRARIES:
            if name == "keras":
                from . import check_keras

                check_keras()
            # A line of Keras is not the user's: what it does is done where the user called it.
            found = importlib.machinery.PathFinder.find_spec(name, path)
            for folder in found.submodule_search_locations or () if found is not None else ():
                _t.pass_over_folder(folder + os.sep)
            return None
        if name != "tensorflow" and not name.startswith("tensorflow."):
            return None
        if _found(name) is None:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return _found(spec.name)

    def exec_module(self, module):
        """Served modules are whole as they are made."""


def _found(name):
    """The module of that name, or none."""
    from . import TENSORFLOW_VERSION, internal

    below = name.split(".")[1:]
    if not below:
        own = {"__version__": TENSORFLOW_VERSION, "version": _Version, "while_loop": internal.while_loop}
        return _Root(name, tonnage, own)
    if below[0] == "keras":
        return _keras(below[1:])
    if below[0] in ("python", "compiler") or ".".join(below) == "experimental.dtensor":
        names = internal.module(".".join(below))
        return None if names is None else Served(name, _Empty(name), names)
    of = tonnage
    for part in below:
        try:
            of = getattr(of, part)
        except AttributeError:
            return None
    return Served(name, of) if isinstance(of, (types.ModuleType, type)) else None


def _keras(below):
    """Keras, or a part of it: the one that is installed, as TensorFlow shows it, or Tonnage's own."""
    root = _KERAS if importlib.util.find_spec("keras") is not None else "tonnage.keras"
    name = ".".join([root, *below])
    try:
        return _Alias(importlib.import_module(name))
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return None


class _Alias(Served):
    """A module of Keras under TensorFlow's name."""

    def __init__(self, of):
        super().__init__(of.__name__, of)


class _Version:
    """``tf.version``: that of the names which are served, and Tonnage's own."""

    from . import TENSORFLOW_VERSION as VERSION
    GIT_VERSION = f"tonnage-{tonnage.__version__}"
    COMPILER_VERSION = GIT_VERSION


class _Empty:
    """Where an internal module has no such name: TensorFlow's inner parts are not here."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        raise AttributeError(f"module {self._name!r} has no attribute {name!r}: Tonnage serves TensorFlow's public names, and of its inner "
                             "modules what Keras uses")
