"""Written by python/tools/stubs.py; change that, or the package, not this."""

from collections.abc import Callable, Mapping, Sequence
from tonnage._tonnage import Tensor
from tonnage._variable import Variable
from tonnage.keras.saving import Configured as _Configured
from typing import Any

class CosineDecay(LearningRateSchedule):
    alpha: Any
    decay_steps: Any
    initial_learning_rate: Any
    name: Any
    warmup_steps: Any
    warmup_target: Any
    def __init__(self, initial_learning_rate: float | Tensor | Variable, decay_steps: int, alpha: float = 0.0, name: str | None = 'CosineDecay', warmup_target: float | None = None, warmup_steps: int = 0) -> None: ...
    def __call__(self, step: Any) -> Any: ...
class CosineDecayRestarts(LearningRateSchedule):
    alpha: Any
    first_decay_steps: Any
    initial_learning_rate: Any
    m_mul: Any
    name: Any
    t_mul: Any
    def __init__(self, initial_learning_rate: float | Tensor | Variable, first_decay_steps: int, t_mul: float = 2.0, m_mul: float = 1.0, alpha: float = 0.0, name: str | None = 'SGDRDecay') -> None: ...
    def __call__(self, step: Any) -> Any: ...
class ExponentialDecay(LearningRateSchedule):
    decay_rate: Any
    decay_steps: Any
    initial_learning_rate: Any
    name: Any
    staircase: Any
    def __init__(self, initial_learning_rate: float | Tensor | Variable, decay_steps: int, decay_rate: float, staircase: bool = False, name: str | None = 'ExponentialDecay') -> None: ...
    def __call__(self, step: Any) -> Any: ...
class InverseTimeDecay(LearningRateSchedule):
    decay_rate: Any
    decay_steps: Any
    initial_learning_rate: Any
    name: Any
    staircase: Any
    def __init__(self, initial_learning_rate: float | Tensor | Variable, decay_steps: int, decay_rate: float, staircase: bool = False, name: str | None = 'InverseTimeDecay') -> None: ...
    def __call__(self, step: Any) -> Any: ...
class LearningRateSchedule(_Configured):
    def __call__(self, step: Any) -> Any: ...
class PiecewiseConstantDecay(LearningRateSchedule):
    boundaries: Any
    name: Any
    values: Any
    def __init__(self, boundaries: Any, values: Sequence[float], name: str | None = 'PiecewiseConstant') -> None: ...
    def __call__(self, step: Any) -> Any: ...
class PolynomialDecay(LearningRateSchedule):
    cycle: Any
    decay_steps: Any
    end_learning_rate: Any
    initial_learning_rate: Any
    name: Any
    power: Any
    def __init__(self, initial_learning_rate: float | Tensor | Variable, decay_steps: int, end_learning_rate: float = 0.0001, power: float = 1.0, cycle: bool = False, name: str | None = 'PolynomialDecay') -> None: ...
    def __call__(self, step: Any) -> Any: ...
def deserialize(config: dict[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any: ...
def serialize(schedule: Callable[..., float]) -> Any: ...
