//! Attention in tiles: scores of a block of queries with a block of keys are made, weighed and used while they are in
//! cache.
//!
//! `forward` is the kernel of the op, `grad` that of its gradient for queries, keys and values; `block` is what the two
//! share.

mod block;
pub mod forward;
pub mod grad;
