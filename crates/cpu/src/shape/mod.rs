//! Kernels of the ops that move elements. Most ops on shapes are views and recipes, and have none.

pub mod bitcast;
pub mod concat;
pub mod diag;
pub mod fold_padding;
pub mod lengths;
pub mod pad;
pub mod place;
pub mod roll;
mod window;
