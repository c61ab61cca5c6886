"""``tf.train``: checkpoints. The state of any objects (modules, models, optimizers, variables, nested) in one file."""

from .checkpoint import Checkpoint, list_variables, load_checkpoint, load_variable
from .manager import CheckpointManager, get_checkpoint_state, latest_checkpoint

__all__ = ["Checkpoint", "CheckpointManager", "experimental", "get_checkpoint_state", "latest_checkpoint", "list_variables",
           "load_checkpoint", "load_variable"]


class experimental:
    """What TensorFlow keeps under ``experimental``."""


def __getattr__(name):
    from .._missing import missing

    raise missing(__name__, name, globals())
