//! What a loop is told, in the words that the loop, its gradient, the planner and the executor share.
//!
//! One loop serves them all: carried values change from iteration to iteration, sliced inputs give each iteration a
//! row, the rest is loop-invariant and only read; each iteration may also write a row of a stacked output. `while_loop`, `fori_loop`,
//! `scan` and `map_fn` differ in nothing but these numbers.
//!
//! Decision: `docs/decisions/loop-checkpoints.md`.

use std::ops::Range;

use serde::Serialize;

use crate::dim::{Dim, Symbol};
use crate::heap::{Heap, Seen};
use crate::loop_checkpoints::default_max_checkpoints;
use crate::recipe::Key;
use crate::shape::{Shape, TensorType};

/// States that the gradient of a loop stores where nothing says how many iterations there may be.
pub const MAX_CHECKPOINTS_UNKNOWN: u64 = 64;

/// How many iterations a loop takes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub enum Iterations {
    /// As long as the condition holds, up to a limit.
    While {
        /// Stop after this many iterations, whatever the condition says.
        most: Option<u64>,
    },
    /// This many; there is no condition.
    Times(Dim),
}

/// What a loop is told. Its inputs are the carried values, the sliced ones, and what it only reads; its
/// outputs are the carried values and the stacked ones.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Loop {
    /// Inputs that the body changes.
    pub carried: usize,
    /// Inputs of which every iteration sees one row. Only where the number of iterations is known.
    pub sliced: usize,
    /// Outputs of which every iteration writes one row. Only where the number of iterations is known.
    pub stacked: usize,
    /// How many iterations.
    pub iterations: Iterations,
    /// Whether rows are taken and written from the last to the first.
    pub reverse: bool,
    /// Carried states that a gradient stores at once, the first one included; `None`: as many as
    /// [`default_max_checkpoints`] says.
    pub max_checkpoints: Option<usize>,
    /// Whether a gradient has the states of all iterations, in a file: none are held in memory, and none is recomputed.
    pub spills: bool,
    /// What random ops in its iterations are made of, so that an iteration that is recomputed draws the same.
    pub key: Key,
    /// Carried values that lie in a variable's own bytes, which are written in place. The planner's word:
    /// in a graph as it is traced there are none.
    pub updates: Vec<usize>,
}

impl Loop {
    /// Whether its regions begin with a condition.
    pub fn has_condition(&self) -> bool {
        matches!(self.iterations, Iterations::While { .. })
    }

    /// The condition and the body among an op's regions, if both are there.
    pub fn regions<'r, R>(&self, regions: &'r [R]) -> Option<(Option<&'r R>, &'r R)> {
        match self.has_condition() {
            true => Some((Some(regions.first()?), regions.get(1)?)),
            false => Some((None, regions.first()?)),
        }
    }

    /// Where the sliced inputs are.
    pub fn sliced_inputs(&self) -> Range<usize> {
        self.carried..self.carried.saturating_add(self.sliced)
    }

    /// The number of iterations, where it is a number.
    pub fn known_iterations(&self) -> Option<u64> {
        match &self.iterations {
            Iterations::Times(dim) => dim.known().map(|n| n as u64),
            Iterations::While { .. } => None,
        }
    }

    /// The most iterations that there can be, where that is a number.
    pub fn max_iterations(&self) -> Option<u64> {
        match &self.iterations {
            Iterations::Times(_) => self.known_iterations(),
            Iterations::While { most } => *most,
        }
    }

    /// The row of an iteration, of `iterations` in all.
    pub fn row(&self, iteration: u64, iterations: u64) -> u64 {
        if self.reverse { iterations - 1 - iteration } else { iteration }
    }

    /// Carried states that a gradient stores at once, the first one included, for this many iterations; for
    /// an unknown number where that is `None`.
    pub fn max_checkpoints(&self, iterations: Option<u64>) -> u64 {
        match (self.max_checkpoints, iterations) {
            (Some(max_checkpoints), _) => (max_checkpoints as u64).max(1),
            (None, Some(iterations)) => default_max_checkpoints(iterations),
            (None, None) => match self.iterations {
                Iterations::While { most: Some(most) } => {
                    default_max_checkpoints(most).min(MAX_CHECKPOINTS_UNKNOWN)
                }
                _ => MAX_CHECKPOINTS_UNKNOWN,
            },
        }
    }

    /// How many states are stored besides the first one: rows of each checkpoint.
    pub fn checkpoint_rows(&self) -> Dim {
        match &self.iterations {
            Iterations::Times(dim) => Dim::checkpoints(dim, self.max_checkpoints),
            Iterations::While { .. } => {
                Dim::Known(self.max_checkpoints(None).saturating_sub(1) as usize)
            }
        }
    }

    /// The type of the checkpoints of a carried value.
    pub fn checkpoint(&self, carried: &TensorType) -> TensorType {
        stacked(carried, self.checkpoint_rows())
    }

    /// The same with symbols replaced where `find` knows better.
    #[must_use]
    pub fn substitute(&self, find: &dyn Fn(&Symbol) -> Option<Dim>) -> Loop {
        let iterations = match &self.iterations {
            Iterations::Times(dim) => Iterations::Times(dim.substitute(find)),
            other => other.clone(),
        };
        Loop { iterations, ..self.clone() }
    }
}

/// What the gradient of a loop is told.
///
/// Its inputs are those of the loop; where the loop handed its checkpoints over, the carried values that it
/// ended with, the checkpoints of each, and, if only the data know it, the number of iterations (of a loop that spills:
/// that number and no checkpoints); then what each
/// iteration back takes a row of (gradients of stacked outputs), and what is carried backwards (gradients of carried
/// values, sums). Its outputs are what was carried backwards, and the stacked ones (gradients of sliced inputs).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct LoopGrad {
    /// The loop, which stacks nothing when it is recomputed.
    pub of: Loop,
    /// Whether checkpoints come in. Otherwise the loop is run once more to make them.
    pub handed: bool,
    /// Inputs of which every iteration of the backward pass takes a row.
    pub seeds: usize,
    /// Values that are carried backwards.
    pub back: usize,
    /// Outputs of which every iteration of the backward pass writes a row.
    pub stacked: usize,
}

impl LoopGrad {
    /// Whether the number of iterations is handed over: where only the data know it, and where it stands for the
    /// file of the states.
    fn hands_iterations(&self) -> bool {
        self.handed && (self.of.has_condition() || self.of.spills)
    }

    /// How many inputs come with what the loop hands over.
    fn handed_inputs(&self) -> usize {
        let each = match (self.handed, self.of.spills) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => 2,
        };
        self.of.carried.saturating_mul(each).saturating_add(usize::from(self.hands_iterations()))
    }

    /// How many of the inputs are the loop's own; `None` where there are too few.
    pub fn of_loop(&self, inputs: usize) -> Option<usize> {
        let rest = self.handed_inputs().checked_add(self.seeds)?.checked_add(self.back)?;
        let own = inputs.checked_sub(rest)?;
        (own >= self.of.carried.checked_add(self.of.sliced)?).then_some(own)
    }

    /// Where, among the inputs, each part is.
    pub fn inputs(&self, inputs: usize) -> Option<GradInputs> {
        let own = self.of_loop(inputs)?;
        let carried = if self.handed { self.of.carried } else { 0 };
        let checkpoints = if self.of.spills { 0 } else { carried };
        let first_seed = own + self.handed_inputs();
        let first_back = first_seed + self.seeds;
        Some(GradInputs {
            own: 0..own,
            ends: own..own + carried,
            checkpoints: own + carried..own + carried + checkpoints,
            iterations: self.hands_iterations().then_some(own + carried + checkpoints),
            seeds: first_seed..first_back,
            back: first_back..first_back + self.back,
        })
    }

    /// The same with symbols replaced where `find` knows better.
    #[must_use]
    pub fn substitute(&self, find: &dyn Fn(&Symbol) -> Option<Dim>) -> LoopGrad {
        LoopGrad { of: self.of.substitute(find), ..self.clone() }
    }
}

/// Where the inputs of a loop's gradient are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GradInputs {
    /// Those of the loop.
    pub own: Range<usize>,
    /// The carried values that the loop ended with.
    pub ends: Range<usize>,
    /// The checkpoints of each carried value.
    pub checkpoints: Range<usize>,
    /// The number of iterations that were run.
    pub iterations: Option<usize>,
    /// What each iteration of the backward pass takes a row of.
    pub seeds: Range<usize>,
    /// What is carried backwards.
    pub back: Range<usize>,
}

/// The type of `count` values of a type, stacked along a new first axis.
pub fn stacked(row: &TensorType, count: Dim) -> TensorType {
    let shape: Shape = std::iter::once(count).chain(row.shape.iter().cloned()).collect();
    TensorType { dtype: row.dtype, shape }
}

/// The type of a row.
pub fn row_of(whole: &TensorType) -> Option<TensorType> {
    let shape = whole.shape.get(1..)?.iter().cloned().collect();
    Some(TensorType { dtype: whole.dtype, shape })
}

impl Heap for Loop {
    fn heap(&self, seen: &mut Seen) -> usize {
        let iterations = match &self.iterations {
            Iterations::Times(dim) => dim.heap(seen),
            Iterations::While { .. } => 0,
        };
        iterations + self.updates.heap(seen)
    }
}
