//! Matrices: products, factorizations, triangular systems, and the small ops that their gradients need.
//!
//! A matrix is the last two axes; the axes before them are a batch.

pub mod cholesky;
pub mod det;
pub mod eigh;
pub mod half_tril;
pub mod inv;
pub mod matmul;
pub mod matmul_integer;
pub mod matrix;
pub mod qr;
mod size;
pub mod slogdet;
pub mod solve;
pub mod svd;
pub mod symmetrize;
pub mod system;
mod triangle;
pub mod triangular_solve;
pub mod tril;
pub mod triu;

pub use size::Size;
