//! Kernels of scans along one axis, and of `argmax` and `argmin`. Reductions over any axes are tile programs.

pub mod arg;
pub mod linear_recurrence;
pub mod scan;
