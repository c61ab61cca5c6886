//! The ops of Tonnage: what each computes, and the kernels that compute it.

pub mod linalg;
