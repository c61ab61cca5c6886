"""Written by python/tools/stubs.py; change that, or the package, not this."""

from collections.abc import Sequence
from tonnage._typing import DTypeLike, Named
from tonnage.keras.layers.base import Layer as _Layer, Layer
from tonnage.keras.mixed_precision import DTypePolicy
from typing import Any

class GRUCell(_Cell):
    recurrent_activation: Any
    reset_after: Any
    def __init__(self, units: int, activation: Named = 'tanh', recurrent_activation: Named = 'sigmoid', use_bias: bool = True, kernel_initializer: Named = 'glorot_uniform', recurrent_initializer: Named = 'orthogonal', bias_initializer: Named = 'zeros', reset_after: bool = True, **kwargs: Any) -> None: ...
    def call(self, inputs: Any, states: Any, training: Any = None) -> Any: ...
    gates: int
class LSTMCell(_Cell):
    recurrent_activation: Any
    unit_forget_bias: Any
    def __init__(self, units: int, activation: Named = 'tanh', recurrent_activation: Named = 'sigmoid', use_bias: bool = True, kernel_initializer: Named = 'glorot_uniform', recurrent_initializer: Named = 'orthogonal', bias_initializer: Named = 'zeros', unit_forget_bias: bool = True, **kwargs: Any) -> None: ...
    def call(self, inputs: Any, states: Any, training: Any = None) -> Any: ...
    gates: int
    states: int
class SimpleRNNCell(_Cell):
    def call(self, inputs: Any, states: Any, training: Any = None) -> Any: ...
class StackedRNNCells(_Layer):
    cells: Any
    output_size: Any
    state_size: Any
    def __init__(self, cells: Sequence[Layer], **kwargs: Any) -> None: ...
    def build(self, input_shape: Any) -> None: ...
    def call(self, inputs: Any, states: Any, training: Any = None) -> Any: ...
    def get_initial_state(self, batch_size: int | None = None, dtype: DTypeLike | DTypePolicy | None = None) -> Any: ...
class _Cell(_Layer):
    activation: Any
    bias: Any
    dropout: Any
    kernel: Any
    output_size: Any
    recurrent_dropout: Any
    recurrent_kernel: Any
    state_size: Any
    units: Any
    use_bias: Any
    def __init__(self, units: int, activation: Named = 'tanh', use_bias: bool = True, kernel_initializer: Named = 'glorot_uniform', recurrent_initializer: Named = 'orthogonal', bias_initializer: Named = 'zeros', kernel_regularizer: Named | None = None, recurrent_regularizer: Named | None = None, bias_regularizer: Named | None = None, kernel_constraint: Named | None = None, recurrent_constraint: Named | None = None, bias_constraint: Named | None = None, dropout: float = 0.0, recurrent_dropout: float = 0.0, **kwargs: Any) -> None: ...
    def begin(self, inputs: Any, states: Any, training: Any) -> Any: ...
    def build(self, input_shape: Any) -> None: ...
    def end(self) -> Any: ...
    gates: int
    def get_initial_state(self, batch_size: int | None = None, dtype: DTypeLike | DTypePolicy | None = None) -> Any: ...
    states: int
