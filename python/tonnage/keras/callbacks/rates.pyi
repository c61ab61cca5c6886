"""Written by python/tools/stubs.py; change that, or the package, not this."""

from collections.abc import Callable
from tonnage.keras.callbacks.base import Callback as _Callback
from typing import Any

class EarlyStopping(_Watching):
    baseline: Any
    best: Any
    best_epoch: Any
    best_weights: Any
    patience: Any
    restore_best_weights: Any
    start_from_epoch: Any
    stopped_epoch: Any
    verbose: Any
    wait: Any
    def __init__(self, monitor: str = 'val_loss', min_delta: float = 0, patience: int = 0, verbose: int | str | bool = 0, mode: str = 'auto', baseline: float | None = None, restore_best_weights: bool = False, start_from_epoch: int = 0) -> None: ...
    def on_epoch_end(self, epoch: Any, logs: Any = None) -> Any: ...
    def on_train_begin(self, logs: Any = None) -> Any: ...
    def on_train_end(self, logs: Any = None) -> Any: ...
class LearningRateScheduler(_Callback):
    schedule: Any
    verbose: Any
    def __init__(self, schedule: Callable[..., float], verbose: int | str | bool = 0) -> None: ...
    def on_epoch_begin(self, epoch: Any, logs: Any = None) -> Any: ...
    def on_epoch_end(self, epoch: Any, logs: Any = None) -> Any: ...
class ReduceLROnPlateau(_Watching):
    best: Any
    cooldown: Any
    cooldown_counter: Any
    factor: Any
    min_lr: Any
    patience: Any
    verbose: Any
    wait: Any
    def __init__(self, monitor: str = 'val_loss', factor: float = 0.1, patience: int = 10, verbose: int | str | bool = 0, mode: str = 'auto', min_delta: float = 0.0001, cooldown: int = 0, min_lr: float = 0.0) -> None: ...
    def on_epoch_end(self, epoch: Any, logs: Any = None) -> Any: ...
    def on_train_begin(self, logs: Any = None) -> Any: ...
class TerminateOnNaN(_Callback):
    def on_batch_end(self, batch: Any, logs: Any = None) -> Any: ...
class _Watching(_Callback):
    min_delta: Any
    mode: Any
    monitor: Any
    def __init__(self, monitor: Any, mode: Any, min_delta: float) -> None: ...
