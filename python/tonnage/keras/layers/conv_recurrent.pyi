"""Written by python/tools/stubs.py; change that, or the package, not this."""

from tonnage._typing import Ints, Named
from tonnage.keras.layers.recurrent import RNN as _RNN
from typing import Any

class ConvLSTM1D(_ConvLSTM):
    rank: int
class ConvLSTM2D(_ConvLSTM):
    rank: int
class ConvLSTM3D(_ConvLSTM):
    rank: int
class _ConvLSTM(_RNN):
    data_format: Any
    filters: Any
    def __init__(self, filters: int, kernel_size: Ints, strides: Ints = 1, padding: Any = 'valid', data_format: str | None = None, dilation_rate: Ints = 1, activation: Named = 'tanh', recurrent_activation: Named = 'sigmoid', use_bias: bool = True, kernel_initializer: Named = 'glorot_uniform', recurrent_initializer: Named = 'orthogonal', bias_initializer: Named = 'zeros', unit_forget_bias: bool = True, kernel_regularizer: Named | None = None, recurrent_regularizer: Named | None = None, bias_regularizer: Named | None = None, kernel_constraint: Named | None = None, recurrent_constraint: Named | None = None, bias_constraint: Named | None = None, dropout: float = 0.0, recurrent_dropout: float = 0.0, return_sequences: bool = False, return_state: bool = False, go_backwards: bool = False, stateful: bool = False, **kwargs: Any) -> None: ...
    def build(self, input_shape: Any) -> None: ...
    def call(self, inputs: Any, initial_state: Any = None, mask: Any = None, training: Any = None) -> Any: ...
    rank: Any
