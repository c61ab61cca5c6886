//! Ops of neural networks. Images are `[batch, ..., channels]`, with one to three spatial axes between.

pub mod attention;
pub mod conv;
pub mod norm;
pub mod pool;
pub mod resize;
pub mod rotary;
pub mod softmax;
pub mod window;
