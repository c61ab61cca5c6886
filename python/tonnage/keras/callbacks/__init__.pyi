"""Written by python/tools/stubs.py; change that, or the package, not this."""

from tonnage.keras.callbacks.base import (
    Callback as Callback, CallbackList as CallbackList, History as History, LambdaCallback as LambdaCallback
)
from tonnage.keras.callbacks.files import (
    BackupAndRestore as BackupAndRestore, CSVLogger as CSVLogger, ModelCheckpoint as ModelCheckpoint
)
from tonnage.keras.callbacks.progress import ProgbarLogger as ProgbarLogger
from tonnage.keras.callbacks.rates import (
    EarlyStopping as EarlyStopping, LearningRateScheduler as LearningRateScheduler, ReduceLROnPlateau as ReduceLROnPlateau,
    TerminateOnNaN as TerminateOnNaN
)

