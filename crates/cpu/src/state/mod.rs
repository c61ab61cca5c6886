//! Kernels that update rows of variables, in place. Other updates are tile programs.

pub mod assign_add_rows;
pub mod assign_rows;
