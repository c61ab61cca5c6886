"""Written by python/tools/stubs.py; change that, or the package, not this."""

from tonnage.data.dataset import Dataset as _Dataset
from typing import Any, SupportsIndex

class TextLineDataset(_Dataset):
    def __init__(self, filenames: Any, compression_type: Any = None, buffer_size: SupportsIndex | None = None, num_parallel_reads: Any = None, name: str | None = None) -> None: ...
