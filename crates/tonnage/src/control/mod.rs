//! Control flow on tensors: branches and loops that become part of a graph, or run now.
//!
//! `region` traces bodies and branches; `branch` is [`cond`] and [`switch`]; `options` is [`Loop`], the options of
//! loops; `looping` makes every loop, and `scan` says what each kind of loop is made of; `check` refuses what
//! cannot be a loop; `eager` runs what writes variables where nothing is traced.
//!
//! Decision: `docs/decisions/regions-write-nothing.md`.

mod branch;
mod check;
mod eager;
mod looping;
mod options;
mod region;
mod scan;

pub use branch::{cond, switch};
pub use options::Loop;
pub use scan::{LoopBound, fori_loop, map_fn, scan, while_loop};
