//! Ops of neural networks.

pub mod max_pool;
pub mod max_pool_grad;
pub mod max_pool_pick;
pub mod softmax;

mod window;
