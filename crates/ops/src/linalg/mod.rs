//! Matrices: products, factorizations, triangular systems, and the small ops that their gradients need.
//!
//! A matrix is the last two axes; the axes before them are a batch.
//!
//! Decision: `docs/decisions/own-factorizations.md`.

pub mod cholesky;
pub mod det;
pub mod eigh;
pub mod gemm;
pub mod half_tril;
pub mod inv;
pub mod matmul;
pub mod qr;
pub mod slogdet;
pub mod solve;
pub mod svd;
pub mod symmetrize;
pub mod triangular_solve;
pub mod tril;
pub mod triu;

mod factor;
pub(crate) mod field;
mod gram;
mod householder;
mod jacobi;
mod lu;
mod matrix;
mod small;
mod staged;
mod stored;
mod substitute;
mod sweeps;
mod system;
mod triangle;
mod tridiagonal;
