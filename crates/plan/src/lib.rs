//! The planner: a pure function from a graph to a [`Plan`], which says in what order it runs, where every
//! buffer lies, and what the peak is. It touches no device and no clock.
//!
//! In the order that data flows: [`rewrite`](fn@rewrite) simplifies, a rule a file; [`lower`] does that, writes
//! composites out and makes every copy explicit; `fuse` joins chains of elementwise ops; `order` says when each
//! node runs; `place` walks them, gives every value its bytes (another's as a view, a dying input's, or a buffer of
//! its own), and puts the plan together, or tells what it takes at least; `view` plans views and descriptions,
//! `tile` what is elementwise, `kernel` kernels, `files` what goes to files; `region` plans branches, and `looping`
//! loops, with `rows` for what each iteration sees of an input, `copy` for what loops start from, and [`schedule`]
//! for what their gradients checkpoint; `transfer` what is spilled and brought back, `network` what goes between ranks beside the kernels, `staging` what a device's steps take of host memory; `arena` packs the buffers
//! by [`offsets`]; [`Plan`] is the result, `loops` its loops, and `explain` says it as data, `saved` what is saved
//! for the backward pass, `suggest` what could be changed and what that would save. `sort` is one loop for most that they sort. `budget` plans the same graph
//! in less memory for more time.

mod arena;
mod budget;
mod copy;
mod epilogue;
mod explain;
mod file_reads;
mod files;
mod fuse;
mod heap;
mod joined;
mod kept;
mod kernel;
mod loop_checkpoints;
mod looping;
mod loops;
mod lower;
mod network;
pub mod offsets;
mod order;
mod place;
mod plan;
mod print;
mod program;
mod region;
mod rewrite;
mod rows;
mod saved;
pub mod schedule;
mod sort;
mod staging;
mod suggest;
mod target;
mod tile;
mod totals;
mod traffic;
mod transfer;
mod view;

pub use budget::{Allowed, Fitted, Frontier, HARDLY_LONGER, Machine, Price, Segment};
pub use explain::{Explanation, LoopGradLine, Share, SourceShare, StepLine};
pub use files::{FileValuePlan, StreamedInput};
pub use kept::Kept;
pub use loops::{CheckpointPolicy, LoopGradPlan, LoopPlan, Sliced, StateFilePlan, StateSource};
pub use lower::{lower, lower_with_residuals};
pub use place::{InputSpec, PlanOptions, plan};
pub use plan::{
    At, BranchPlan, BufferId, BufferPlan, KernelCall, Lane, OutputPlan, Placed, Plan, Refusal, Run,
    Space, Step, StepMemory, Streamed, TileRead, TileRun,
};
pub use rewrite::{Rewrite, rewrite};
pub use staging::staged_range;
pub use suggest::{Change, Suggestion};
pub use target::{DescribedTarget, SharedTarget, Target, keeps_order};
pub use tile::{materialize as write_out, ready as tile_run};
