"""``tf.data``: data as streams of elements, made as they are needed.

Rows of tensors (``from_tensor_slices``) are handled by their numbers: shuffling, repeating, skipping move numbers, and a batch is one
slice or one gather. Threads make elements ahead of time where asked to (``map(num_parallel_calls=...)``, ``prefetch``).
"""

import atexit as _atexit
from types import SimpleNamespace as _SimpleNamespace

from .. import _tonnage as _t
from .._notices import ignores as _ignores

from .dataset import AUTO_SHARD as _AUTO_SHARD
from .dataset import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset, Options
from .iterator import Iterator
from .sources import TextLineDataset

__all__ = ["AUTOTUNE", "INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "Dataset", "Iterator", "Options", "TextLineDataset",
           "experimental"]

# Threads that make elements may be in the middle of a function of the user.
_atexit.register(_t.end_callbacks)


class experimental:
    """What TensorFlow keeps under ``experimental``."""

    AUTOTUNE = AUTOTUNE
    INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = INFINITE_CARDINALITY, UNKNOWN_CARDINALITY

    # How a dataset is split among workers, of whom there is one; and what becomes of state outside of one that is sent elsewhere: none is.
    AutoShardPolicy = _AUTO_SHARD
    ExternalStatePolicy = _SimpleNamespace(WARN=0, IGNORE=1, FAIL=2)

    @staticmethod
    def assert_cardinality(expected_cardinality):
        """For ``Dataset.apply``: says how many elements there are."""
        return lambda dataset: dataset._like(dataset._pipeline.with_count(int(expected_cardinality)))

    @staticmethod
    def cardinality(dataset):
        """How many elements a dataset has."""
        return dataset.cardinality()

    @staticmethod
    @_ignores("tf.data.experimental.copy_to_device", "source_device")
    def copy_to_device(target_device, source_device="/cpu:0"):
        """For ``Dataset.apply``: elements on a device, the next one being copied while this one is used."""
        return experimental.prefetch_to_device(target_device, 1)

    @staticmethod
    def get_next_as_optional(iterator):
        """The next element of an iterator, or nothing at the end."""
        return iterator.get_next_as_optional()

    @staticmethod
    def prefetch_to_device(device, buffer_size=None):
        """For ``Dataset.apply``: elements on a device, so many of them before they are asked for; one, where that is left to us. They are made by
        a thread, and copied beside what the device does for those before."""
        count = 1 if buffer_size in (None, AUTOTUNE) else int(buffer_size)
        if count < 1:
            raise ValueError(f"`buffer_size` must be positive or tf.data.AUTOTUNE. Received: {count}")
        return lambda dataset: dataset._like(dataset._pipeline.to_device(str(device), count))


def __getattr__(name):
    from .._missing import missing

    raise missing(__name__, name, globals())
