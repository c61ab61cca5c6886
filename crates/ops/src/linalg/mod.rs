//! Matrices: products, factorizations, triangular systems, and the small ops that their gradients need.
//!
//! A matrix is the last two axes; the axes before them are a batch.

pub mod cholesky;
pub mod gemm;
pub mod half_tril;
pub mod matmul;
pub mod symmetrize;
pub mod triangular_solve;
pub mod tril;
pub mod triu;

mod factor;
mod matrix;
mod triangle;
