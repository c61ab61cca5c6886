//! In what order a loop is gone back through with a bounded number of kept states. Pure: rounds are numbers,
//! states are places.
//!
//! A *slot* holds the state before some round; the state before the first round takes one of them. The forward
//! run keeps some states: [`revolve`] says which where the number of rounds is known, [`Online`] where it
//! shows only at the end. [`Back`] then goes back from what was kept, running rounds again and keeping states in the slots
//! that are free by then.
//!
//! Decision: `docs/decisions/loop-checkpoints.md`.

mod back;
mod online;
pub mod revolve;

pub use back::{Action, Back, LAST, Place, SPARE, START, free, spare};
pub use online::Online;
