//! Kernels of neural networks. Images are `[batch, ..., channels]`, with one to three spatial axes between.

pub mod attention;
pub mod conv;
mod float;
pub mod norm;
pub mod pool;
pub mod resize;
pub mod rotary;
mod rows;
pub mod softmax;
mod window;
