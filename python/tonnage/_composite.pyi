"""Written by python/tools/stubs.py; change that, or the package, not this."""

from tonnage._shape import StandIn as _StandIn, TypeSpec as _TypeSpec
from typing import Any

class RaggedTensor(_StandIn):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class RaggedTensorSpec(_TypeSpec):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
class VariableAggregation:
    MEAN: str
    NONE: str
    ONLY_FIRST_REPLICA: str
    SUM: str
class VariableSynchronization:
    AUTO: str
    NONE: str
    ON_READ: str
    ON_WRITE: str
