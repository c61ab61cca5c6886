"""What TensorFlow has besides dense tensors, and how variables of several replicas are joined: loaded when it is touched."""

from ._shape import StandIn, TypeSpec


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


class RaggedTensor(StandIn):
    """TensorFlow's ragged tensors, which are not there: the class is for ``isinstance``, and making one is an error."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("tf.RaggedTensor: rows of one length alone; pad them, and keep a mask")


class RaggedTensorSpec(TypeSpec):
    """The spec of a ragged tensor, which there are none of."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("tf.RaggedTensorSpec: rows of one length alone; pad them, and keep a mask")
