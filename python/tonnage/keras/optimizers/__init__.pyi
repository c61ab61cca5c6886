"""Written by python/tools/stubs.py; change that, or the package, not this."""

from collections.abc import Mapping
from tonnage.keras.optimizers import schedules as schedules
from tonnage.keras.optimizers.base import Optimizer as Optimizer
from tonnage.keras.optimizers.rules import (
    Adadelta as Adadelta, Adadelta as _Adadelta, Adafactor as Adafactor, Adagrad as Adagrad, Adagrad as _Adagrad, Adam as Adam,
    Adam as _Adam, Adam8Bit as Adam8Bit, AdamW as AdamW, Adamax as Adamax, Adamax as _Adamax, Ftrl as Ftrl, Ftrl as _Ftrl,
    Lion as Lion, LossScaleOptimizer as LossScaleOptimizer, Nadam as Nadam, Nadam as _Nadam, RMSprop as RMSprop,
    RMSprop as _RMSprop, SGD as SGD, SGD as _SGD
)
from typing import Any, TypeAlias

def deserialize(config: dict[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any: ...
def get(identifier: Any) -> Any: ...
class legacy:
    Adadelta: TypeAlias = _Adadelta
    Adagrad: TypeAlias = _Adagrad
    Adam: TypeAlias = _Adam
    Adamax: TypeAlias = _Adamax
    Ftrl: TypeAlias = _Ftrl
    Nadam: TypeAlias = _Nadam
    RMSprop: TypeAlias = _RMSprop
    SGD: TypeAlias = _SGD
def serialize(optimizer: str | dict[str, Any] | Optimizer) -> Any: ...
