//! What networks are made of.

mod attention;
mod conv;
mod dropout;
mod embedding;
mod loss;
mod norm;
mod pool;
mod resize;
mod softmax;

pub use attention::Attention;
pub use norm::BatchNormOutput;
