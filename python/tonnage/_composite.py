"""How variables of several replicas are joined: loaded when it is touched."""


class VariableAggregation:
    """How the values of several replicas become one. There is one replica."""

    NONE = "NONE"
    SUM = "SUM"
    MEAN = "MEAN"
    ONLY_FIRST_REPLICA = "ONLY_FIRST_REPLICA"


class VariableSynchronization:
    """When they do. There is one replica."""

    AUTO = "AUTO"
    NONE = "NONE"
    ON_WRITE = "ON_WRITE"
    ON_READ = "ON_READ"
