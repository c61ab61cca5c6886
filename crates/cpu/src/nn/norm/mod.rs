//! Kernels of normalization: `layer` and its gradient of rows, `group` and its gradient of images (`images`: how they
//! are cut).
//!
//! Variances are computed from differences to the mean, never from differences of squares.

pub mod group;
pub mod group_grad;
mod images;
pub mod layer;
pub mod layer_grad;

use tonnage_core::Dim;

/// The product of some dims, at their most.
fn most(dims: &[Dim]) -> usize {
    dims.iter().map(|dim| dim.most().unwrap_or(0)).fold(1, usize::saturating_mul)
}
