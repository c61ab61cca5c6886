"""``import tensorflow`` served by Tonnage, so that programs and Keras run on it without a line changed.

:func:`install` puts a finder before Python's own. Nothing of this is loaded by ``import tonnage``.

* ``served``: the finder, and modules that hand out Tonnage's names under TensorFlow's
* ``internal``: ``tf.__internal__``, and the few modules of ``tensorflow.python`` that Keras imports
* ``tracking``: the classes that Keras' layers and variables derive from

Decision: ``docs/decisions/keras-over-tensorflow-names.md``.
"""

import importlib.metadata
import os
import sys

# The version of TensorFlow whose names are served: what ``tf.__version__`` says to programs that ask.
TENSORFLOW_VERSION = "2.21.0"

# The versions of Keras that are tested: from the first, up to and without the second.
KERAS_VERSIONS = ((3, 15), (3, 16))


def install():
    """Serves ``import tensorflow`` by Tonnage from here on, and lets Keras take it as its backend.

    An error where another TensorFlow was imported already, or where Keras was imported with another backend: both would stay half in use.
    Calling it again does nothing.
    """
    from .served import Finder, Served

    if isinstance(sys.modules.get("tensorflow"), Served):
        return
    if "tensorflow" in sys.modules:
        where = getattr(sys.modules["tensorflow"], "__file__", None) or "memory"
        raise ImportError(f"tonnage.install(): another tensorflow was imported before, from {where}; call it first, or start the program "
                          "with `python -m tonnage`")
    if "keras" in sys.modules:
        raise ImportError("tonnage.install(): keras was imported before, with another backend; call it first, or start the program with "
                          "`python -m tonnage`")
    wanted = os.environ.get("KERAS_BACKEND", "tensorflow")
    if wanted != "tensorflow":
        raise ImportError(f"tonnage.install(): KERAS_BACKEND is {wanted!r}, but Tonnage serves Keras' backend 'tensorflow'; unset it")
    os.environ["KERAS_BACKEND"] = "tensorflow"
    sys.meta_path.insert(0, Finder())
    importlib.import_module("tensorflow")
    _label()


def _label():
    """Lets classes say that they are TensorFlow's: Keras tells data of one framework from that of another by the names of classes and
    of their modules, so that it need not import the others."""
    from .. import _tonnage, sparse
    from .._ragged import RaggedTensor
    from ..data.dataset import DatasetV2

    for cls, module in (
        (_tonnage.Tensor, "framework.tensor"), (sparse.SparseTensor, "framework.sparse_tensor"),
        (RaggedTensor, "ops.ragged.ragged_tensor"), (DatasetV2, "data.ops.dataset_ops"),
    ):
        cls.__module__ = f"tensorflow.python.{module}"


def check_keras():
    """Refuses a Keras whose version is outside of :data:`KERAS_VERSIONS`. Called where Keras is imported."""
    try:
        version = importlib.metadata.version("keras")
    except importlib.metadata.PackageNotFoundError:
        return  # no version to check: a checkout, or nothing at all, which importing says
    least, end = KERAS_VERSIONS
    numbers = tuple(int(part) if part.isdigit() else 0 for part in version.split(".")[:2])
    if not least <= numbers < end:
        raise ImportError(f"keras {version} is installed, but Tonnage runs keras from {_text(least)} up to, without, {_text(end)}; install "
                          f"one of those: pip install 'keras>={_text(least)},<{_text(end)}'", name="keras")


def _text(numbers):
    return ".".join(map(str, numbers))
