"""``tf.distribute`` of one replica: the default strategy, which runs what it is given as it is.

There is one process and one replica, so sums over replicas are the values themselves.
"""

import contextlib as _contextlib

from ._nest import map_structure as _map_structure
from ._variable import Variable as _Variable


class ReduceOp:
    """How the values of replicas become one."""

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation):
        """As variables are joined."""
        return ReduceOp.MEAN if aggregation == "MEAN" else ReduceOp.SUM


class DistributedValues:
    """Values of several replicas. With one replica there are none: values are tensors."""

    def __init__(self, values):
        raise NotImplementedError("tf.distribute: there is one replica, whose values are plain tensors")


class DistributedDataset:
    """A dataset of several replicas. With one replica there are none: see :meth:`Strategy.experimental_distribute_dataset`."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("tf.distribute: there is one replica, whose dataset is a plain one")


class DistributedIterator:
    """An iterator of several replicas. With one replica there are none."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("tf.distribute: there is one replica, whose iterator is a plain one")


class ReplicaContext:
    """Where the replica's computations run."""

    num_replicas_in_sync = 1
    replica_id_in_sync_group = 0

    def __init__(self, strategy):
        self.strategy = strategy

    def all_reduce(self, reduce_op, value, options=None):
        """The values of all replicas as one: the value itself."""
        return value

    def merge_call(self, merge_fn, args=(), kwargs=None):
        """Calls a function once for all replicas."""
        return merge_fn(self.strategy, *args, **(kwargs or {}))


class StrategyExtended:
    """What optimizers ask of a strategy."""

    def update(self, var, fn, args=(), kwargs=None, group=True):
        """Updates a variable on every replica."""
        return fn(var, *args, **(kwargs or {}))

    def colocate_vars_with(self, colocate_with_variable):
        """Variables made inside of ``with`` are where that one is: where tensors of this thread go."""
        return _contextlib.nullcontext()

    def variable_created_in_scope(self, v):
        """Whether a variable was made under this strategy: all are."""
        return isinstance(v, _Variable)

    def reduce_to(self, reduce_op, value, destinations, options=None):
        """The values of all replicas as one: the value itself."""
        return value


class Strategy:
    """The strategy of one replica."""

    def __init__(self):
        self.extended = StrategyExtended()

    num_replicas_in_sync = 1

    def scope(self):
        """Variables made inside of ``with`` belong to the strategy."""
        return _contextlib.nullcontext(self)

    def run(self, fn, args=(), kwargs=None, options=None):
        """What a function returns on every replica."""
        return fn(*args, **(kwargs or {}))

    def reduce(self, reduce_op, value, axis):
        """The values of all replicas as one; with an axis, its elements too."""
        if axis is None:
            return value
        from . import math

        whole = {ReduceOp.SUM: math.reduce_sum, ReduceOp.MEAN: math.reduce_mean}[reduce_op]
        return _map_structure(lambda v: whole(v, axis), value)

    def experimental_distribute_dataset(self, dataset, options=None):
        """The dataset of this replica: all of it."""
        return dataset

    def experimental_local_results(self, value):
        """The values of this process's replicas."""
        return (value,)


class TPUStrategy(Strategy):
    """TensorFlow's strategy for TPUs, which there are none of here."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("tf.distribute.TPUStrategy: there are no TPUs here")


class MultiWorkerMirroredStrategy(Strategy):
    """TensorFlow's strategy for several machines, which is not there."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("tf.distribute.MultiWorkerMirroredStrategy: there is one process and one replica")


_default = Strategy()
_context = ReplicaContext(_default)


def get_strategy():
    """The strategy in use: that of one replica."""
    return _default


def has_strategy():
    """Whether another strategy than the default is in use."""
    return False


def get_replica_context():
    """Where the replica's computations run."""
    return _context


def in_cross_replica_context():
    """Whether what runs is for all replicas at once."""
    return False


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
