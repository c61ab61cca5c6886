//! The planner: a pure function from a graph to a [`Plan`], which says in what order it runs, where every
//! buffer lies, and what the peak is. It touches no device and no clock.
//!
//! In the order that data flows: [`rewrite`](fn@rewrite) simplifies, a rule a file; [`lower`] does that, writes
//! composites out and makes every copy explicit; `fuse` joins chains of elementwise ops; `order` says when
//! each node runs; `place` gives every value its bytes (a view's, a dying input's as `in_place` allows, or a buffer of its own) and
//! `region` does so for bodies and branches, with `copy` for what they start from; `outputs` says where
//! results lie; `arena` packs the buffers by [`offsets`]; [`Plan`] is the result, and `explain` says it as data.

mod arena;
mod budget;
mod copy;
mod explain;
mod fuse;
mod heap;
mod in_place;
mod lower;
pub mod offsets;
mod order;
mod outputs;
mod place;
mod plan;
mod print;
mod region;
mod rewrite;
mod tile;
mod trips;

pub use budget::{Fitted, Ladder, Machine, Price};
pub use explain::{Explanation, Holder, StepLine};
pub use lower::lower;
pub use place::{InputSpec, Options, plan};
pub use plan::{
    At, BufferId, BufferPlan, LoopGradPlan, LoopPlan, OutputPlan, Placed, Plan, Refusal, Run, Step,
    StepMemory, TileRead, TileRun,
};
pub use rewrite::{Rewrite, rewrite};
pub use tile::ready as tile_run;
