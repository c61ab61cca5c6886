//! Picking elements and rows by index or by mask, and putting them back.
//!
//! An index counts from 0; a negative one is out of range, never counted from the back. Every op checks
//! all its indices before it writes anything, so a call that fails leaves an output that it was to
//! write in place as it was.

pub mod boolean_mask;
pub mod gather;
pub mod gather_last;
pub mod mask_scatter;
pub mod put_along_axis;
pub mod rows_to_dense;
pub mod scatter_add;
pub mod scatter_update;
pub mod take_along_axis;
pub mod top_k;

mod along;
pub(crate) mod indices;
mod mask;
pub(crate) mod rows;
