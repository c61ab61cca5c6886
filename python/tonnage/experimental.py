"""``tf.experimental``: tensors to and from other frameworks, and values that may be missing."""

from . import _tonnage as _t
from .data.iterator import Optional  # noqa: F401


class dlpack:
    """DLPack: one framework's tensor as another's."""

    @staticmethod
    def to_dlpack(tf_tensor):
        """A capsule for another framework."""
        return _t.to_tensor(tf_tensor, None, None).__dlpack__()

    @staticmethod
    def from_dlpack(dlcapsule):
        """A tensor of another framework's, or of a capsule: its bytes copied into the ledger's.

        A tensor of another framework can be changed by it at any time; planned memory is nobody else's.
        """
        import numpy as np

        if not hasattr(dlcapsule, "__dlpack__"):
            dlcapsule = _Capsule(dlcapsule)
        return _t.to_tensor(np.from_dlpack(dlcapsule), None, None)


class RowPartition:
    """How rows of a ragged tensor follow each other. There are none: Keras asks for it to take rows out of sparse arrays."""

    @classmethod
    def from_value_rowids(cls, value_rowids, nrows=None):
        """An error."""
        raise NotImplementedError("rows cannot be taken out of a sparse tensor: give `fit`, `evaluate` and `predict` dense arrays "
                                  "(tf.sparse.to_dense), or whole batches to `train_on_batch`, `test_on_batch` and `predict_on_batch`")


class numpy:
    """What TensorFlow has under NumPy's names: the few that have no name of TensorFlow's own."""

    @staticmethod
    def finfo(dtype):
        """The limits of a dtype of floats."""
        import numpy as np

        name = _t.DType(dtype).name
        if name == "bfloat16":
            import ml_dtypes

            return ml_dtypes.finfo(name)
        return np.finfo(name)

    @staticmethod
    def select(condlist, choicelist, default=0):
        """Of several tensors the elements of the first whose condition holds."""
        from ._index import where

        if len(condlist) != len(choicelist):
            raise ValueError(f"condlist must have length equal to choicelist ({len(condlist)} vs {len(choicelist)})")
        made = default
        for condition, choice in reversed(list(zip(condlist, choicelist))):
            made = where(condition, choice, made)
        return made


class _Capsule:
    """A capsule as an object that gives it, which is what NumPy takes."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **kwargs):
        return self._capsule

    def __dlpack_device__(self):
        return (1, 0)


# DLPack's numbers for kinds of devices; what it has no name for is an extension's.
_KINDS = {"CPU": 1, "GPU": 2, "SIM": 12}
_HOST = (_KINDS["CPU"], 0)


def _device_of(tensor):
    """What ``Tensor.__dlpack_device__`` gives: a kind and a number."""
    _, kind, number = _t.parse_device(tensor.device)
    return _KINDS[kind], number


def exported(tensor, stream=None, max_version=None, dl_device=None, copy=None):
    """What ``Tensor.__dlpack__`` gives: its bytes where they lie, if the other side can be told that they are read-only (from
    version 1 of the protocol on), and a copy that it may write otherwise. Values of a device are copied where host memory is asked for."""
    import numpy as np

    own, wanted = _device_of(tensor), None if dl_device is None else tuple(dl_device)
    if wanted not in (None, _HOST):
        raise BufferError(f"there is no way to device {wanted}: tensors are given away in host memory, {_HOST}")
    if own != _HOST and (wanted is None or copy is False):
        raise BufferError(f"the tensor lies on {tensor.device}, whose memory others cannot read; copy it to the host first, with x.cpu()")
    array = np.asarray(tensor.numpy())
    if max_version is None or tuple(max_version) < (1, 0) or copy:
        return np.array(array, copy=True).__dlpack__()
    return array.__dlpack__(max_version=max_version)


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
