//! In what order a loop is walked backward with a bounded number of checkpointed states. Pure: iterations are numbers,
//! states are places.
//!
//! A *checkpoint* holds the state before some iteration; the state before the first iteration takes one of them. The
//! forward pass checkpoints some states: [`revolve`] says which where the number of iterations is known, [`Online`]
//! where it shows only at the end. [`BackwardSchedule`] then walks backward from those, recomputing iterations and
//! saving states in the checkpoints that are free by then.
//!
//! Decision: `docs/decisions/loop-checkpoints.md`.

mod backward;
mod online;
pub mod revolve;

pub use backward::{BackwardAction, BackwardSchedule, LAST, SPARE, START, StatePlace, free, spare};
pub use online::Online;
