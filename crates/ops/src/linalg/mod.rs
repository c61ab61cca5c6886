//! Matrices: products through the core in `gemm`, factorizations through `faer`.

pub mod gemm;
pub mod matmul;
