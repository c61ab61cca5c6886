//! Kernels of random numbers that need an unknown number of random words for an element (`gamma`, `poisson`), or their
//! input besides (`categorical`). Others are recipes of a key.

pub mod categorical;
mod draw;
mod each;
pub mod gamma;
pub mod poisson;
