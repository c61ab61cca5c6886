//! Kernels of convolutions over one to three spatial axes, channels last: `conv`, its transpose and the gradient of its
//! filters.
//!
//! Each is a matrix product whose operands are written into packing space window by window, a few kilobytes at a time
//! (`windows`, `filter`): im2col without its tensor, since the columns of an image's windows never exist as a whole.
//! Filters of one channel each (`depthwise`) have loops of their own: there is nothing to multiply a matrix with.

mod band;
mod classes;
mod depthwise;
mod depthwise_filter;
mod filter;
pub mod filter_grad;
pub mod forward;
mod operand;
mod slide;
pub mod transpose;
mod widen;
mod windows;
