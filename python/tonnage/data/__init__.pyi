"""Written by python/tools/stubs.py; change that, or the package, not this."""

from tonnage.data.dataset import Dataset as Dataset, Options as Options
from tonnage.data.iterator import Iterator as Iterator
from tonnage.data.sources import TextLineDataset as TextLineDataset
from typing import Any, SupportsIndex

AUTOTUNE: int
INFINITE_CARDINALITY: int
UNKNOWN_CARDINALITY: int
class experimental:
    AUTOTUNE: int
    AutoShardPolicy: Any
    ExternalStatePolicy: Any
    INFINITE_CARDINALITY: int
    UNKNOWN_CARDINALITY: int
    @staticmethod
    def assert_cardinality(expected_cardinality: Any) -> Any: ...
    @staticmethod
    def cardinality(dataset: Dataset) -> Any: ...
    @staticmethod
    def copy_to_device(target_device: Any, source_device: str = '/cpu:0') -> Any: ...
    @staticmethod
    def get_next_as_optional(iterator: Any) -> Any: ...
    @staticmethod
    def prefetch_to_device(device: Any, buffer_size: SupportsIndex | None = None) -> Any: ...
