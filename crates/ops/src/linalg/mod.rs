//! Linear algebra.

pub mod gemm;
