//! Training: the loop over data, with a budget, checkpoints, and what it takes known beforehand.

mod checkpoint;
mod fit;

pub use checkpoint::{Checkpoints, Position};
pub use fit::{Evaluation, Fit, Go, History, Progress, evaluate};
