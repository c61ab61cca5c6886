//! Models of files: what they give, what they take, and what is refused.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod ahead;
mod bad;
mod bounds;
mod calls;
mod folded;
mod images;
mod mutated;
mod quantized;
mod weights;
mod write;
