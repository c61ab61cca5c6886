//! What of a model ranks hold in blocks, instead of each holding all of it.
//!
//! Each more takes less memory, and more time on most networks; none changes a bit. A budget takes the quickest that fits.
//!
//! Decision: `docs/decisions/sharding-is-a-lever.md`.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tonnage_core::{Bytes, Result, World};

use crate::optim::Optimizer;
use crate::tape::Gradient;
use crate::variable::{Blocks, Variable};

/// What ranks hold in blocks, each one of them.
///
/// Of variables whose gradient is rows of a table, and of those with fewer elements than there are ranks, every rank holds all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharding {
    /// Nothing: gradients are added up on all ranks, and each makes the same step.
    Replicas,
    /// The optimizer's state: each rank steps its blocks, and new parameters are gathered.
    State,
    /// Gradients too: each rank gets its blocks of the sums alone.
    Gradients,
    /// Parameters too: they are gathered before their use, and again in the backward pass where a budget asks for it.
    Weights,
}

impl Sharding {
    /// All of them, from nothing on.
    pub const ALL: [Sharding; 4] =
        [Sharding::Replicas, Sharding::State, Sharding::Gradients, Sharding::Weights];
}

impl fmt::Display for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Sharding::Replicas => "replicas",
            Sharding::State => "state sharded",
            Sharding::Gradients => "gradients too",
            Sharding::Weights => "weights too",
        })
    }
}

/// A step with that sharding, as it is planned for one rank.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ShardedPlan {
    /// What ranks hold in blocks.
    pub sharding: Sharding,
    /// What a step takes of a rank; where that is not within the budget, the least budget that would do, with what data hold.
    pub peak: Bytes,
    /// Whether that is within the budget.
    pub fits: bool,
    /// Bytes that a rank sends to others in a step.
    pub sent: Bytes,
    /// Seconds that a step is expected to take, by the figures of [`machine`](crate::machine).
    pub seconds: f64,
}

/// Which variables ranks hold in blocks now, or would.
pub(super) struct Shards {
    pub world: World,
    state: Mutex<ShardsState>,
}

struct ShardsState {
    now: Sharding,
    /// Which gradients can be added up in blocks, in the order of the variables.
    dense: Vec<bool>,
    /// The blocks of each variable, by its number: programs that are traced for one sharding know them by these.
    blocks: HashMap<u64, Blocks>,
}

impl Shards {
    pub fn new(world: World) -> Shards {
        let (dense, blocks) = (Vec::new(), HashMap::new());
        let state = Mutex::new(ShardsState { now: Sharding::Replicas, dense, blocks });
        Shards { world, state }
    }

    fn state(&self) -> MutexGuard<'_, ShardsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now(&self) -> Sharding {
        self.state().now
    }

    /// Remembers which of the variables have gradients that can be added up in blocks.
    pub fn see(&self, variables: &[Variable], gradients: &[Gradient]) {
        let all = variables.iter().zip(gradients);
        let dense = all.map(|(variable, gradient)| {
            matches!(gradient, Gradient::Dense(_)) && variable.has_blocks_for(&self.world)
        });
        self.state().dense = dense.collect();
    }

    /// Whether the gradient of a variable is added up in blocks.
    pub fn cuts_gradient(&self, number: usize) -> bool {
        let state = self.state();
        state.now >= Sharding::Gradients && state.dense.get(number) == Some(&true)
    }

    /// What is traced from here on is sharded so; nothing is cut yet.
    pub fn propose(&self, sharding: Sharding, variables: &[Variable], optimizer: &Optimizer) {
        let mut state = self.state();
        let ShardsState { now, dense, blocks } = &mut *state;
        *now = sharding;
        optimizer.propose_blocks(&self.world, sharding, variables, dense, blocks);
    }

    /// Keeps the blocks of this rank alone.
    pub fn cut(&self, variables: &[Variable], optimizer: &Optimizer) -> Result<()> {
        optimizer.cut_blocks(variables)
    }

    /// The shardings that there are: those that change no bit, from what is cut already on.
    pub fn all(
        &self,
        variables: &[Variable],
        optimizer: &Optimizer,
        has_scale: bool,
    ) -> Vec<Sharding> {
        let is_cut = |variable: &Variable| variable.is_cut();
        let first = if variables.iter().any(is_cut) {
            Sharding::Weights
        } else if variables.iter().any(|v| optimizer.state_like(v).iter().any(is_cut)) {
            Sharding::State
        } else {
            Sharding::Replicas
        };
        let last = match (self.world.size() > 1 && optimizer.steps_blocks(), has_scale) {
            (false, _) => Sharding::Replicas,
            // Whether a step is made depends on all gradients, and all ranks have to say the same.
            (true, true) => Sharding::State,
            (true, false) => Sharding::Weights,
        };
        Sharding::ALL.into_iter().filter(|s| *s >= first && *s <= last.max(first)).collect()
    }
}
