//! Kernels on matrices: products (`gemm` is the matmul core), factorizations, triangular systems, and the small ops
//! that their gradients need.
//!
//! Decision: `docs/decisions/own-factorizations.md`.

pub mod cholesky;
pub mod det;
pub mod eigh;
mod factor;
pub(crate) mod field;
pub mod gemm;
mod gram;
pub mod half_tril;
mod householder;
mod jacobi;
mod lu;
pub mod matmul;
pub mod matmul_integer;
mod matrix;
pub mod qr;
pub mod slogdet;
mod small;
pub mod solve;
mod staged;
mod stored;
mod substitute;
pub mod svd;
mod sweeps;
pub mod symmetrize;
pub mod triangular_solve;
mod tridiagonal;
