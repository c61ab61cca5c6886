//! Ops of neural networks.

pub mod softmax;
