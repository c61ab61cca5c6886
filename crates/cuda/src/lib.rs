//! How an NVIDIA GPU runs the ops of Tonnage.
//!
//! Kernels are text: CUDA C that is generated for tile programs, over headers in `kernels/` that hold the same formulas as the CPU's.
//! They are compiled when they are first needed, on the machine that runs them.
//!
//! Nothing of CUDA is needed to build this crate, and no driver to start a program that has it: libraries are loaded when a device is
//! asked for.

pub mod cache;
pub mod direct;
pub mod driver;
pub mod emit;
pub mod headers;
pub mod parts;
pub mod product;
pub mod slots;
pub mod target;
