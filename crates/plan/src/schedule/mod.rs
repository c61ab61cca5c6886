//! In what order a loop is gone back through with a bounded number of checkpointed states. Pure: iterations are numbers,
//! states are places.
//!
//! A *checkpoint* holds the state before some iteration; the state before the first iteration takes one of them. The forward
//! run keeps some states: [`revolve`] says which where the number of iterations is known, [`Online`] where it
//! shows only at the end. [`BackwardSchedule`] then goes back from what was kept, running iterations again and keeping states in the checkpoints
//! that are free by then.
//!
//! Decision: `docs/decisions/loop-checkpoints.md`.

mod backward;
mod online;
pub mod revolve;

pub use backward::{BackwardAction, BackwardSchedule, LAST, SPARE, START, StatePlace, free, spare};
pub use online::Online;
