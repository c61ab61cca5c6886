"""What ranks hold in blocks: a step planned for each way to share it, on ranks that need not be there, and kept so.

The blocks, the sums and the plans are ``tonnage::optim``'s and the planner's; here is the order of things: a step is traced once, which tells whose optimizers
make a step of what, then once more for each sharding, with blocks that are only proposed.
"""

from . import _replicas
from . import _tonnage as _t
from .distribute import Strategy
from .errors import ResourceExhaustedError
from .memory import ShardedPlan, _step_around

SHARDINGS = ("replicas", "state", "gradients", "weights")


class _OnPaper(Strategy):
    """A strategy of ranks that are not there, or of those that are, for plans alone."""

    _is_on_paper = True

    def __init__(self, world):
        super().__init__()
        self.world = world


def plans(step, specs, world):
    """The plans of a step for every sharding, and the optimizers that it has."""
    paper, made = _OnPaper(world), []

    def planned(sharding):
        paper.sharding = sharding
        function, given = _step_around(step, specs, lambda f: lambda *args, **kwargs: paper.run(f, args, kwargs))
        plan = function.plan(*given)
        made.append(ShardedPlan(sharding, plan.peak, plan.sent, plan.seconds, plan))

    with _replicas.using(paper):
        planned("replicas")
        for sharding in SHARDINGS[1:] if paper._seen and world.size > 1 else ():
            seen = dict(paper._seen)
            try:
                for optimizer, (variables, dense) in seen.items():
                    optimizer.propose_blocks(world, sharding, variables, dense)
                planned(sharding)
            finally:
                for optimizer, (variables, dense) in seen.items():
                    optimizer.propose_blocks(world, "replicas", variables, dense)
    return made, paper._seen


def shard(strategy, step, specs, sharding, budget):
    """Lets the ranks of a strategy hold blocks."""
    if (sharding is None) == (budget is None):
        raise ValueError("Strategy.shard: give a sharding, one of " + ", ".join(map(repr, SHARDINGS)) + ", or a budget")
    if sharding is not None and sharding not in SHARDINGS:
        raise ValueError(f"Strategy.shard: sharding {sharding!r} is none of {', '.join(map(repr, SHARDINGS))}")
    made, seen = plans(step, specs, strategy.world)
    if budget is None:
        fitting = [plan for plan in made if plan.sharding == sharding]
        if not fitting:
            raise ValueError(f"Strategy.shard: {sharding!r} of one rank, or of a step that applies no gradients")
    else:
        most = _t.byte_count(budget)
        fitting = [plan for plan in made if plan.peak <= most]
        if not fitting:
            least = min(made, key=lambda plan: plan.peak)
            raise ResourceExhaustedError(None, None, f"Strategy.shard: no sharding of this step fits a budget of {most} bytes on {strategy.world.size} ranks; "
                                            f"{least.peak} bytes would do ({least.sharding}), or more ranks: tf.memory.plan_ranks says how many")
    chosen = min(fitting, key=lambda plan: plan.seconds)
    strategy.world.agree([("sharding", chosen.sharding)])
    strategy.sharding = chosen.sharding
    for optimizer, (variables, dense) in seen.items():
        optimizer.shard(strategy.world, chosen.sharding, variables, dense)
    return chosen
