"""``tf.keras``: as much of it as programs of tensors and tapes need. Layers are modules; weights are made when the
first input comes."""

from . import activations, initializers, layers, losses, optimizers
from .models import Model, Sequential

__all__ = ["Model", "Sequential", "activations", "backend", "initializers", "layers", "losses", "optimizers"]


def Input(shape=None, batch_size=None, dtype=None, name=None, **_):
    """The shape of an input: a first layer of :class:`Sequential` that makes weights at once."""
    return layers.InputLayer(shape, batch_size, dtype, name)


class backend:
    """What little of the backend is there."""

    @staticmethod
    def clear_session():
        """There is no session to clear."""

    @staticmethod
    def floatx():
        """The dtype of weights."""
        return "float32"

    @staticmethod
    def epsilon():
        """A small number."""
        return 1e-7
