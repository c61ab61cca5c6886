"""``tf.test``: what programs ask about GPUs before they start."""

from . import config as _config
from ._notices import ignores as _ignores


@_ignores("tf.test.is_gpu_available", "cuda_only", "min_cuda_compute_capability")
def is_gpu_available(cuda_only=False, min_cuda_compute_capability=None):
    """Whether there is a GPU that programs may use.

    >>> tf.test.is_gpu_available() == bool(tf.config.list_logical_devices("GPU"))
    True
    """
    return bool(_config.list_logical_devices("GPU"))


def gpu_device_name():
    """The name of the first GPU that programs may use; an empty one where there is none."""
    found = _config.list_logical_devices("GPU")
    return found[0].name if found else ""


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
