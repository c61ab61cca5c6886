//! The headers that the text of every kernel stands behind.

/// Names and texts, in the order in which they stand.
pub const HEADERS: &[(&str, &str)] = &[("tile.cuh", include_str!("../kernels/tile.cuh"))];
