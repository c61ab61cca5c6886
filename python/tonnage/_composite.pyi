"""Written by python/tools/stubs.py; change that, or the package, not this."""


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
