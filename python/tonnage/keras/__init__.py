"""``tf.keras``: layers, models and training, by the names people know.

What is ours: a training step is planned, so ``model.plan(batch)`` says its peak before it runs, ``fit(budget="512MiB")`` holds
it there, and the progress bar shows what was planned beside what was measured.

Decision: ``docs/decisions/own-keras-stays.md``.
"""

from . import backend
from . import initializers, activations, regularizers, constraints, losses, metrics, optimizers  # noqa: E401
from . import mixed_precision, layers, callbacks, models, saving, utils  # noqa: E401
from .layers import Input, InputSpec, Layer
from .layers.symbolic import KerasTensor
from .losses import Loss
from .metrics import Metric
from .mixed_precision import DTypePolicy
from .models import Functional, Model, Sequential
from .optimizers import Optimizer
from .regularizers import Regularizer
from .initializers import Initializer

__all__ = ["DTypePolicy", "Functional", "Initializer", "Input", "InputSpec", "KerasTensor", "Layer", "Loss", "Metric", "Model",
           "Optimizer", "Regularizer", "Sequential", "activations", "backend", "callbacks", "config", "constraints",
           "initializers", "layers", "losses", "metrics", "mixed_precision", "models", "optimizers", "regularizers", "saving",
           "utils"]


class config:
    """``tf.keras.config``."""

    floatx, set_floatx = staticmethod(backend.floatx), staticmethod(backend.set_floatx)
    epsilon, set_epsilon = staticmethod(backend.epsilon), staticmethod(backend.set_epsilon)
    image_data_format = staticmethod(backend.image_data_format)
    set_image_data_format = staticmethod(backend.set_image_data_format)
    dtype_policy = staticmethod(mixed_precision.dtype_policy)
    set_dtype_policy = staticmethod(mixed_precision.set_dtype_policy)
    backend = staticmethod(lambda: "tonnage")




def __getattr__(name):
    from .._missing import missing

    raise missing(__name__, name, globals())
