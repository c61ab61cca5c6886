"""Optimizers: the rules of ``tonnage::optim`` under Keras' names, and a base for rules of one's own."""

from ..saving import get as _get
from . import schedules  # noqa: F401
from .base import Optimizer  # noqa: F401
from .rules import (  # noqa: F401
    SGD, Adadelta, Adafactor, Adagrad, Adam, Adam8Bit, Adamax, AdamW, Ftrl, Lion, LossScaleOptimizer, Nadam, RMSprop,
)


def serialize(optimizer):
    """An optimizer as plain data."""
    from ..saving import serialize_keras_object

    return serialize_keras_object(optimizer)


def deserialize(config, custom_objects=None):
    """An optimizer from plain data."""
    from ..saving import deserialize_keras_object

    return deserialize_keras_object(config, custom_objects)


def get(identifier):
    """The optimizer of that name; an optimizer is itself."""
    made = _get(identifier, globals(), "optimizer", Optimizer)
    if made is not None and not isinstance(made, Optimizer):
        raise ValueError(f"Could not interpret optimizer identifier: {identifier!r}")
    return made


class legacy:
    """The names of older programs."""

    SGD, Adam, RMSprop, Adagrad, Adadelta, Adamax, Nadam, Ftrl = SGD, Adam, RMSprop, Adagrad, Adadelta, Adamax, Nadam, Ftrl
