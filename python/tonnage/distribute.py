"""``tf.distribute``: a program on several ranks, which ``mpirun`` or the like starts. Each rank is a process with one replica.

Without a launcher there is one rank, and everything works as it is. Ranks, sums and the split of rows are the extension's ``World`` and ``Pipeline``.

>>> strategy = tf.distribute.MultiWorkerMirroredStrategy()
>>> with strategy.scope():
...     weight = tf.Variable(2.0)
>>> strategy.num_replicas_in_sync  # `mpirun -n 4` makes it 4
1
>>> float(strategy.reduce("SUM", strategy.run(lambda x: x * weight, (3.0,)), axis=None))
6.0
"""

import contextlib as _contextlib
import json as _json
import os as _os
from types import SimpleNamespace as _SimpleNamespace

from . import _replicas
from . import _tonnage as _t
from ._nest import map_structure as _map_structure
from ._notices import ignores as _ignores
from ._shape import IndexedSlices as _IndexedSlices
from ._variable import Variable as _Variable


class ReduceOp:
    """How the values of replicas become one."""

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation):
        """As variables are joined."""
        return ReduceOp.MEAN if aggregation == "MEAN" else ReduceOp.SUM


def _is_mean(reduce_op):
    named = str(getattr(reduce_op, "name", reduce_op)).upper()
    if named not in (ReduceOp.SUM, ReduceOp.MEAN):
        raise ValueError(f"reduce_op must be tf.distribute.ReduceOp.SUM or MEAN. Received: {reduce_op}")
    return named == ReduceOp.MEAN


def _joined(world, reduce_op, value):
    """A value of each rank as one, nested as it is."""
    divisor = world.size if _is_mean(reduce_op) else 1

    def one(leaf):
        if isinstance(leaf, _IndexedSlices):
            leaf = leaf.__tf_tensor__()
        if divisor == 1:
            return world.all_reduce(leaf)
        return world.all_reduce(leaf) / float(divisor)

    return value if world.size == 1 else _map_structure(one, value)


class DistributedValues:
    """Values of several replicas of one process. There is one replica in each process: values are plain tensors."""

    def __init__(self, values):
        raise NotImplementedError("tf.distribute: a process has one replica, whose values are plain tensors")


class DistributedDataset:
    """A dataset of several replicas of one process: see :meth:`Strategy.experimental_distribute_dataset`."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("tf.distribute: a process has one replica, whose dataset is a plain one")


class DistributedIterator:
    """An iterator of several replicas of one process."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("tf.distribute: a process has one replica, whose iterator is a plain one")


class ReplicaContext:
    """Where a replica's computations run."""

    def __init__(self, strategy):
        self.strategy = strategy

    @property
    def num_replicas_in_sync(self):
        """How many replicas there are."""
        return self.strategy.num_replicas_in_sync

    @property
    def replica_id_in_sync_group(self):
        """The number of this replica, from 0: its rank."""
        return self.strategy.world.rank

    @_ignores("ReplicaContext.all_reduce", "options")
    def all_reduce(self, reduce_op, value, options=None):
        """The values of all replicas as one, on each of them; added in rank order."""
        return _joined(self.strategy.world, reduce_op, value)

    @_ignores("ReplicaContext.all_gather", "options")
    def all_gather(self, value, axis, options=None):
        """The values of all replicas, joined along an axis, on each of them."""
        return _map_structure(lambda leaf: self.strategy.world.gather(leaf, int(axis)), value)

    def merge_call(self, merge_fn, args=(), kwargs=None):
        """Calls a function once for all replicas."""
        return merge_fn(self.strategy, *args, **(kwargs or {}))


class StrategyExtended:
    """What optimizers ask of a strategy."""

    def __init__(self, strategy):
        self._strategy = strategy

    def update(self, var, fn, args=(), kwargs=None, group=True):
        """Updates a variable on every replica."""
        return fn(var, *args, **(kwargs or {}))

    def colocate_vars_with(self, colocate_with_variable):
        """Variables made inside of ``with`` are where that one is: where tensors of this thread go."""
        return _contextlib.nullcontext()

    def variable_created_in_scope(self, v):
        """Whether a variable was made under this strategy: all are."""
        return isinstance(v, _Variable)

    @_ignores("StrategyExtended.reduce_to", "options")
    def reduce_to(self, reduce_op, value, destinations, options=None):
        """The values of all replicas as one."""
        return _joined(self._strategy.world, reduce_op, value)

    @_ignores("StrategyExtended.batch_reduce_to", "options")
    def batch_reduce_to(self, reduce_op, value_destination_pairs, options=None):
        """The same for several values."""
        return [_joined(self._strategy.world, reduce_op, value) for value, _ in value_destination_pairs]


class InputContext:
    """What a rank is told that makes its dataset itself."""

    def __init__(self, num_input_pipelines=1, input_pipeline_id=0, num_replicas_in_sync=1):
        self.num_input_pipelines, self.input_pipeline_id = num_input_pipelines, input_pipeline_id
        self.num_replicas_in_sync = num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size):
        """The rows of a replica, of a batch of all of them."""
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(f"The `global_batch_size` {global_batch_size} is not divisible by `num_replicas_in_sync` "
                             f"{self.num_replicas_in_sync}")
        return global_batch_size // self.num_replicas_in_sync


class Strategy:
    """The strategy of one replica."""

    def __init__(self):
        self.world = _t.World.alone()
        self.extended = StrategyExtended(self)
        self._seen = {}  # optimizers that made a step, each with its variables, and whether their gradients are whole tensors

    cluster_resolver, _is_on_paper = None, False

    sharding = "replicas"
    """What ranks hold in blocks: ``"replicas"`` (nothing), ``"state"`` of optimizers, ``"gradients"`` too, ``"weights"`` too."""

    def shard(self, step, *specs, sharding=None, budget=None):
        """Lets ranks hold blocks of what ``step`` trains, before it is called first: as ``sharding`` says, or the quickest that fits a budget in bytes. No bit
        of the results changes. ``step`` is what :meth:`run` calls, and ``specs`` its arguments or their types; gives the plan of it, one of
        :func:`tf.memory.plan_ranks`.

        Reading a variable that ranks hold in blocks is an operation of all of them; ``tf.train.Checkpoint`` is one.
        """
        from ._sharding import shard

        return shard(self, step, specs, sharding, budget)

    @property
    def num_replicas_in_sync(self):
        """How many replicas there are: one on each rank."""
        return self.world.size

    def scope(self):
        """Variables made inside of ``with`` belong to the strategy: they begin as those of rank 0."""
        return _replicas.using(self)

    @_ignores("Strategy.run", "options")
    def run(self, fn, args=(), kwargs=None, options=None):
        """What a function returns on every replica. Random numbers inside are each replica's own."""
        if _t.in_replica() and self.world.size > 1:
            raise RuntimeError("strategy.run cannot be called inside of a replica: it is for all of them")
        if _t.is_tracing():
            from .autograph import converted

            fn = converted(fn)
        with _replicas.using(self):
            return self.world.replica(fn, tuple(args), kwargs or None)

    def reduce(self, reduce_op, value, axis):
        """The values of all replicas as one; with an axis, its elements too."""
        if axis is None:
            return _joined(self.world, reduce_op, value)

        def whole(leaf):
            leaf = _t.to_tensor(leaf, None, None)
            axes = axis if isinstance(axis, (list, tuple)) else [axis]
            total = _joined(self.world, ReduceOp.SUM, _t.reduce_sum(leaf, list(axes), False))
            if not _is_mean(reduce_op):
                return total
            rows = 1
            for one in axes:
                rows *= leaf.lengths[one]
            return total / _t.cast(_joined(self.world, ReduceOp.SUM, _t.to_tensor(rows, "int64", None)), total.dtype)

        return _map_structure(whole, value)

    def gather(self, value, axis):
        """The values of all replicas, joined along an axis in rank order; their lengths along it may differ."""
        return _map_structure(lambda leaf: self.world.gather(leaf, int(axis)), value)

    @_ignores("Strategy.experimental_distribute_dataset", "options")
    def experimental_distribute_dataset(self, dataset, options=None):
        """The rows of this replica: of each batch its part. No row is on two replicas, and none is lost; where the last batch has fewer rows than
        there are replicas, some have a batch without rows.

        ``tf.data.Options().experimental_distribute.auto_shard_policy`` may be ``OFF``: each replica goes through all rows then, in batches as
        large as its part would be.
        """
        return dataset if self.world.size == 1 or dataset._is_of_rank else dataset._of_rank(self.world)

    @_ignores("Strategy.distribute_datasets_from_function", "options")
    def distribute_datasets_from_function(self, dataset_fn, options=None):
        """The dataset that a function makes for this replica, which it is told of by an :class:`InputContext`."""
        made = dataset_fn(InputContext(self.world.size, self.world.rank, self.world.size))
        made._is_of_rank = True
        return made

    def experimental_distribute_values_from_function(self, value_fn):
        """What a function makes for this replica."""
        return value_fn(_SimpleNamespace(replica_id_in_sync_group=self.world.rank, num_replicas_in_sync=self.world.size))

    def experimental_local_results(self, value):
        """The values of this process's replicas."""
        return (value,)


class OneDeviceStrategy(Strategy):
    """One replica on a device: variables that are made in its scope are there."""

    def __init__(self, device="cpu:0"):
        super().__init__()
        self._device = str(device)
        _t.parse_device(self._device)

    @_contextlib.contextmanager
    def scope(self):
        """Variables and tensors made inside of ``with`` are on the device."""
        from .config import device

        with device(self._device), _replicas.using(self):
            yield self

    def run(self, fn, args=(), kwargs=None, options=None):
        """What a function returns on the device. While a function is traced that is where its variables are."""
        from .config import device

        with _contextlib.nullcontext() if _t.is_tracing() else device(self._device):
            return super().run(fn, args, kwargs, options)


class MirroredStrategy(Strategy):
    """A replica on each device of this process, of which there is one. Several are processes here: see
    :class:`MultiWorkerMirroredStrategy`."""

    @_ignores("MirroredStrategy", "cross_device_ops")
    def __init__(self, devices=None, cross_device_ops=None):
        if devices is not None and len(devices) > 1:
            raise NotImplementedError(f"tf.distribute.MirroredStrategy of {len(devices)} devices: a process has one replica; start one for "
                                      "each device with mpirun, and use MultiWorkerMirroredStrategy")
        super().__init__()


class ClusterSpec:
    """The processes of a job."""

    def __init__(self, ranks):
        self._jobs = {"worker": [f"rank {rank}" for rank in range(ranks)]}

    jobs = property(lambda self: list(self._jobs))

    def as_dict(self):
        """The processes by their kind."""
        return {name: list(tasks) for name, tasks in self._jobs.items()}

    def num_tasks(self, job_name):
        """How many there are of a kind."""
        return len(self._jobs[job_name])


class ClusterResolver:
    """Which of the processes of a job this one is: a worker, by its rank."""

    task_type, environment = "worker", ""

    def __init__(self, world):
        self._world = world

    @property
    def task_id(self):
        """The rank of this process."""
        return self._world.rank

    def cluster_spec(self):
        """The processes of the job."""
        return ClusterSpec(self._world.size)

    def num_accelerators(self, *args, **kwargs):
        """How many devices each process computes on."""
        return {"CPU": 1}


class cluster_resolver:
    """Which process of a job is which, by TensorFlow's name."""

    ClusterResolver = ClusterResolver


class CommunicationOptions:
    """How ranks talk to each other: how long one waits for another before all end, in seconds."""

    @_ignores("CommunicationOptions", "bytes_per_pack", "implementation")
    def __init__(self, bytes_per_pack=0, timeout_seconds=None, implementation="AUTO"):
        self.timeout_seconds = timeout_seconds


class MultiWorkerMirroredStrategy(Strategy):
    """A replica on each rank of the job: ``mpirun -n 4 python train.py`` makes four. Variables are the same on all of them, gradients are added up in
    rank order, so that ``n`` ranks give the bits of one process that goes through their parts one after another.

    ``communication_options.timeout_seconds`` ends all ranks where one waits longer for another.
    """

    @_ignores("MultiWorkerMirroredStrategy", "cluster_resolver")
    def __init__(self, cluster_resolver=None, communication_options=None):
        super().__init__()
        self.world = _t.World.join()
        started = _workers_of_config(_os.environ.get("TF_CONFIG"))
        if started is not None and started != self.world.size:
            raise ValueError(f"TF_CONFIG names {started} workers, and {self.world.size} were started: start them with `mpirun -n {started}`, which "
                             "tells each who the others are")
        self.cluster_resolver = ClusterResolver(self.world)
        if communication_options is not None:
            self.world.set_timeout(communication_options.timeout_seconds)
        self.world.agree([])
        _replicas.join(self.world)


def _workers_of_config(text):
    """How many workers TensorFlow's variable names; ``None`` where it names none."""
    cluster = _json.loads(text).get("cluster", {}) if text else {}
    named = [*cluster.get("chief", ()), *cluster.get("worker", ())]
    return len(named) or None


class TPUStrategy(Strategy):
    """TensorFlow's strategy for TPUs, which there are none of here."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("tf.distribute.TPUStrategy: there are no TPUs here")


class experimental:
    """What TensorFlow keeps under ``experimental``."""

    CommunicationOptions, MultiWorkerMirroredStrategy = CommunicationOptions, MultiWorkerMirroredStrategy
    CommunicationImplementation = CollectiveCommunication = _SimpleNamespace(AUTO="AUTO", RING="RING", NCCL="NCCL")


_default = Strategy()
_default_context = ReplicaContext(_default)


def get_strategy():
    """The strategy in use; that of one replica where there is none."""
    held = _replicas.stack()
    return held[-1] if held else _default


def has_strategy():
    """Whether another strategy than the default is in use."""
    return get_strategy() is not _default


def get_replica_context():
    """Where the replica's computations run; ``None`` in the scope of a strategy, which is for all replicas."""
    strategy = get_strategy()
    if strategy is _default:
        return _default_context
    return ReplicaContext(strategy) if _t.in_replica() else None


def in_cross_replica_context():
    """Whether what runs is for all replicas at once."""
    return get_replica_context() is None


def __getattr__(name):
    from ._missing import missing

    raise missing(__name__, name, globals())
