"""What is done beside training: at the start and the end of training, of epochs, of batches."""

from .base import Callback, CallbackList, History, LambdaCallback  # noqa: F401
from .files import BackupAndRestore, CSVLogger, ModelCheckpoint  # noqa: F401
from .progress import ProgbarLogger  # noqa: F401
from .rates import EarlyStopping, LearningRateScheduler, ReduceLROnPlateau, TerminateOnNaN  # noqa: F401
