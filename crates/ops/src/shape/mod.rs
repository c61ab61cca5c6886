//! Ops that move axes and make tensors from nothing: views and recipes, mostly.

pub mod broadcast_to;
pub mod fill;
pub mod place;
pub mod range;
pub mod reshape;
pub mod size;
pub mod slice;
pub mod transpose;
