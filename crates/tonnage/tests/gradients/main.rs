//! Gradients: tapes, derivatives of functions, through loops, effects, rows and factorizations, and what is recomputed for them.

#[path = "../common/mod.rs"]
mod common;

mod data_sizes;
mod effect_gradients;
mod factors;
mod infinite_slopes;
mod large_logits;
mod loop_captures;
mod loop_gradients;
mod loop_residuals;
mod recompute;
mod sparse;
mod tape;
mod transforms;
