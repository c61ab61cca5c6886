"""Which strategy of ``tf.distribute`` is in use, for all that has to know: variables, losses, metrics, optimizers.

A strategy has a replica on each rank. What runs in ``strategy.run`` is one of them; everything else is for all of them at once, and is the same
on every rank. Collective operations and the split of rows are the extension's.
"""

import contextlib
import os
import threading

from . import _tonnage as _t

_local = threading.local()
_job = []


def stack():
    """The strategies in use on this thread, the innermost last."""
    found = getattr(_local, "strategies", None)
    if found is None:
        found = _local.strategies = []
    return found


@contextlib.contextmanager
def using(strategy):
    """Lets a strategy be in use."""
    held = stack()
    held.append(strategy)
    try:
        yield strategy
    finally:
        held.pop()


def several():
    """The ranks of the strategy in use, where they are several; otherwise ``None``."""
    held = stack()
    return held[-1].world if held and held[-1].world.size > 1 else None


def joined():
    """The same where they are there, and not on paper alone."""
    held = stack()
    return several() if held and not held[-1]._is_on_paper else None


def join(world):
    """Says that this process is a rank of a job."""
    _job[:] = [world] if world.size > 1 else []


def writes(path):
    """Whether this process is the one that writes a file: of the ranks that name the same one, the lowest. All ranks ask."""
    return not _job or _job[0].is_first(os.path.abspath(path))


def gathered(variables):
    """Values of variables in their order: all ranks call this, and read those together that they hold in blocks."""
    return [variable.read_value() if variable.in_blocks else variable for variable in variables]


def holders(variables, path):
    """The ranks, where they hold some of these in blocks and all name the same file."""
    if not _job or not any(variable.in_blocks for variable in variables):
        return None
    ranks = _job[0]
    return ranks if ranks.all(writes(path) == (ranks.rank == 0)) else None


def wait():
    """Waits for all ranks: what one of them wrote is there."""
    if _job:
        _job[0].barrier()


def own_replica():
    """The same where what runs is one of the replicas."""
    return several() if _t.in_replica() else None


def count():
    """How many replicas there are where what runs is one of them; otherwise 1."""
    ranks = own_replica()
    return 1 if ranks is None else ranks.size


def share(value):
    """A replica's share of a loss: those of all replicas add up to the mean."""
    replicas = count()
    return value if replicas == 1 else value * (1.0 / replicas)


def whole(value):
    """The loss of which :func:`share` gave the share."""
    replicas = count()
    return value if replicas == 1 else value * float(replicas)


def mean(value):
    """The mean over all replicas, where what runs is one of them."""
    ranks = own_replica()
    return value if ranks is None else ranks.all_reduce(value) * (1.0 / ranks.size)


@contextlib.contextmanager
def summed(ranks, variables):
    """Lets variables that each rank adds to on its own be the sums over all ranks for a while."""
    if getattr(_local, "summed", False):
        yield
        return
    own = [(variable, variable.read_value()) for variable in variables]
    _local.summed = True
    try:
        for variable, value in own:
            variable.put(ranks.all_reduce(value))
        yield
    finally:
        _local.summed = False
        for variable, value in own:
            variable.put(value)
