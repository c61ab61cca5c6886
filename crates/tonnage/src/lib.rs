//! What users import: tensors whose every byte is planned and accounted for.

#[allow(dead_code, reason = "for `Tensor`, which is made and read through it")]
mod convert;
#[allow(dead_code, reason = "for `Tensor`, which prints through it")]
mod display;

pub use convert::{Native, Nested};
