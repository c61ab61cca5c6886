//! Loops and their gradients as data: what the executor follows. Part of a [`Plan`].
//!
//! Decision: `docs/decisions/spilled-loop-states.md`.

use std::sync::Arc;

use tonnage_core::layout::Layout;
use tonnage_core::looping::{Loop, LoopGrad};
use tonnage_core::shape::TensorType;
use tonnage_core::{Bytes, ValueId};

use crate::plan::{Plan, TileRun};

/// What an iteration sees of an input that is sliced.
#[derive(Debug, Clone)]
pub enum Sliced {
    /// A row in memory. Everything counts elements.
    Bytes {
        /// Where the first row's lowest element lies.
        first: isize,
        /// From one row to the next.
        stride: isize,
        /// Of a row, from its lowest element.
        layout: Layout,
        /// Bytes of an element.
        size: usize,
    },
    /// A row that each iteration computes.
    Recipe {
        /// Over the first row.
        run: Arc<TileRun>,
        /// For each of its reads, from one row to the next.
        strides: Vec<isize>,
        /// Where the row lies in the step's scratch.
        at: Bytes,
        /// Its type.
        row: TensorType,
    },
}

/// Which states a loop checkpoints for its gradient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckpointPolicy {
    /// None.
    Nothing,
    /// Those before these iterations, in rows of the checkpoints in that order.
    These(Vec<u64>),
    /// As [`crate::schedule::Online`] says, with that number of checkpoints.
    Online {
        /// The first state's included.
        max_checkpoints: u64,
    },
    /// Those before every iteration but the first, in a file.
    File(StateFilePlan),
}

/// A file of a loop's states, a row each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFilePlan {
    /// The value that stands for it: the number of iterations, as the loop hands it over.
    pub name: ValueId,
    /// Bytes of a state.
    pub state: Bytes,
    /// Where each carried value lies in it.
    pub parts: Vec<Bytes>,
    /// States at most; `None` where only the data know.
    pub rows: Option<u64>,
}

impl StateFilePlan {
    /// How long it is; `None` where only the data know.
    pub fn bytes(&self) -> Option<Bytes> {
        self.state.checked_mul(self.rows?)
    }
}

/// A loop.
#[derive(Debug, Clone)]
pub struct LoopPlan {
    /// What it is told.
    pub spec: Loop,
    /// The condition, where it has one; its only output is one boolean.
    pub condition: Option<Plan>,
    /// The body.
    pub body: Plan,
    /// What an iteration sees of the sliced inputs.
    pub sliced: Vec<Sliced>,
    /// For each carried value, where its second copy lies in the step's scratch; `None` where the body
    /// updates it in place.
    pub second: Vec<Option<Bytes>>,
    /// Where the condition's boolean lies in the scratch.
    pub answer: Bytes,
    /// Where the arenas of condition and body start in the scratch.
    pub inner: Bytes,
    /// States that are saved for a gradient.
    pub checkpoint_policy: CheckpointPolicy,
}

/// Where a part of the first or the last state of a loop is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateSource {
    /// In the bytes of the node's input of that number, from that element on.
    There {
        /// Which.
        input: usize,
        /// The first element.
        first: usize,
    },
    /// There, but not close together: it is copied to the scratch first.
    Copied {
        /// Which.
        input: usize,
        /// Where to.
        to: Bytes,
    },
    /// In the scratch, where the loop that is run once more leaves it.
    Made(Bytes),
}

/// The gradient of a loop.
#[derive(Debug, Clone)]
pub struct LoopGradPlan {
    /// What it is told.
    pub spec: LoopGrad,
    /// The loop, run forwards between checkpoints.
    pub forward: LoopPlan,
    /// One step back.
    pub step: Plan,
    /// What a step back sees of the inputs that it takes rows of.
    pub seeds: Vec<Sliced>,
    /// Parts of the first state, and of the last.
    pub state_sources: [Vec<StateSource>; 2],
    /// States that are checkpointed at once, the first one included.
    pub max_checkpoints: u64,
    /// Rows of the checkpoints.
    pub rows: usize,
    /// For each carried value, where its checkpoints lie in the scratch; `None` where the bytes that were
    /// handed over are taken.
    pub checkpoints: Vec<Option<Bytes>>,
    /// States on their way that there is room for.
    pub spare: usize,
    /// Where they start in the scratch.
    pub spare_at: Bytes,
    /// Bytes of one of them.
    pub state: Bytes,
    /// Where each carried value lies in it.
    pub parts: Vec<Bytes>,
    /// For each value that is carried backwards, where its second copy lies in the scratch; `None` where
    /// the step updates it in place.
    pub second: Vec<Option<Bytes>>,
    /// Where the step's arena starts in the scratch.
    pub inner: Bytes,
    /// Iterations that will be recomputed, where their number is known.
    pub recomputed_iterations: Option<u64>,
    /// The file of its states, of a loop that spills.
    pub file: Option<StateFilePlan>,
    /// Whether the loop, in the same plan, has written it.
    pub written: bool,
}
