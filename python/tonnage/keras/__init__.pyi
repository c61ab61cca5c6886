"""Written by python/tools/stubs.py; change that, or the package, not this."""

from tonnage.keras import (
    activations as activations, backend as backend, callbacks as callbacks, constraints as constraints,
    initializers as initializers, layers as layers, losses as losses, metrics as metrics, mixed_precision as mixed_precision,
    models as models, optimizers as optimizers, regularizers as regularizers, saving as saving, utils as utils
)
from tonnage.keras.initializers import Initializer as Initializer
from tonnage.keras.layers.base import Layer as Layer
from tonnage.keras.layers.core import Input as Input
from tonnage.keras.layers.spec import InputSpec as InputSpec
from tonnage.keras.layers.symbolic import KerasTensor as KerasTensor
from tonnage.keras.losses import Loss as Loss
from tonnage.keras.metrics.base import Metric as Metric
from tonnage.keras.mixed_precision import DTypePolicy as DTypePolicy
from tonnage.keras.models.model import Model as Model, Model as _Model
from tonnage.keras.models.sequential import Sequential as Sequential
from tonnage.keras.optimizers.base import Optimizer as Optimizer
from tonnage.keras.regularizers import Regularizer as Regularizer
from typing import Any

class config:
    @staticmethod
    def backend() -> Any: ...
    @staticmethod
    def dtype_policy() -> DTypePolicy: ...
    @staticmethod
    def epsilon() -> float: ...
    @staticmethod
    def floatx() -> str: ...
    @staticmethod
    def image_data_format() -> str: ...
    @staticmethod
    def set_dtype_policy(policy: Any) -> None: ...
    @staticmethod
    def set_epsilon(value: Any) -> None: ...
    @staticmethod
    def set_floatx(value: Any) -> None: ...
    @staticmethod
    def set_image_data_format(data_format: str) -> None: ...
Functional = _Model
