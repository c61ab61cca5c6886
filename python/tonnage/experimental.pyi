"""Written by python/tools/stubs.py; change that, or the package, not this."""

from tonnage._tonnage import Tensor
from tonnage._typing import DTypeLike, TensorLike
from tonnage.data.iterator import Optional as Optional
from typing import Any

class RowPartition:
    @classmethod
    def from_value_rowids(cls, value_rowids: Any, nrows: Any = None) -> Any: ...
class dlpack:
    @staticmethod
    def from_dlpack(dlcapsule: Any) -> Tensor: ...
    @staticmethod
    def to_dlpack(tf_tensor: Any) -> Any: ...
def exported(tensor: TensorLike, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any: ...
class numpy:
    @staticmethod
    def finfo(dtype: DTypeLike) -> Any: ...
    @staticmethod
    def select(condlist: Any, choicelist: Any, default: int = 0) -> Any: ...
