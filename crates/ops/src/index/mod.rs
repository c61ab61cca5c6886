//! Picking elements and rows by index or by mask, and putting them back.
//!
//! An index counts from 0; a negative one is out of range, never counted from the back. Every op checks
//! all its indices before it writes anything, so a call that fails leaves an output that it was to
//! write in place as it was.

pub mod along;
pub mod argsort;
pub mod bincount;
pub mod boolean_mask;
pub mod dynamic_slice;
pub mod dynamic_update;
pub mod first_of;
pub mod gather;
pub mod gather_last;
pub mod gather_nd;
pub mod histogram;
pub mod mask_scatter;
pub mod nd;
pub mod nonzero;
pub mod put_along_axis;
pub mod rows;
pub mod rows_to_dense;
pub mod scatter_add;
pub mod scatter_nd_add;
pub mod scatter_nd_max;
pub mod scatter_nd_min;
pub mod scatter_nd_update;
pub mod scatter_update;
pub mod searchsorted;
pub mod sort;
pub mod take_along_axis;
pub mod top_k;
pub mod unique;
pub mod winners;
