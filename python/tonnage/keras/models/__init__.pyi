"""Written by python/tools/stubs.py; change that, or the package, not this."""

from collections.abc import Mapping
from tonnage.keras.models.files import load_model as load_model, save_model as save_model
from tonnage.keras.models.model import Model as Model, Model as _Model
from tonnage.keras.models.sequential import Sequential as Sequential
from typing import Any

def clone_model(model: Any, input_tensors: Any = None, clone_function: Any = None) -> Any: ...
def model_from_json(json_string: Any, custom_objects: Mapping[str, Any] | None = None) -> Any: ...
Functional = _Model
