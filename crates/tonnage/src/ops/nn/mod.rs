//! What networks are made of.

mod attention;
mod conv;
mod loss;
mod norm;
mod pool;
mod softmax;

pub use attention::Attention;
pub use norm::BatchNorm;
