"""Written by python/tools/stubs.py; change that, or the package, not this."""

from tonnage.train.checkpoint import (
    Checkpoint as Checkpoint, list_variables as list_variables, load_checkpoint as load_checkpoint, load_variable as load_variable
)
from tonnage.train.manager import (
    CheckpointManager as CheckpointManager, get_checkpoint_state as get_checkpoint_state, latest_checkpoint as latest_checkpoint
)

class experimental:
    ...
