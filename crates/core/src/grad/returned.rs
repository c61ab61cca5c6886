//! How a graph of gradients returns them.

use serde::Serialize;

/// What a graph of gradients returns for one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Returned {
    /// Nothing: the gradient is zero.
    Nothing,
    /// One tensor.
    Dense,
    /// This many pairs of indices and values, which add up.
    Rows(usize),
}
