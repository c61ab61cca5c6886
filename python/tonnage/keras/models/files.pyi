"""Written by python/tools/stubs.py; change that, or the package, not this."""

from collections.abc import Mapping
from tonnage._typing import Path
from typing import Any

def load_model(path: Path, custom_objects: Mapping[str, Any] | None = None, compile: bool = True) -> Any: ...
def save_model(model: Any, path: Path, overwrite: bool = True, include_optimizer: bool = True, zipped: Any = None, **unknown: Any) -> None: ...
