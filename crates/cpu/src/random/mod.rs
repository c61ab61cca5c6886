//! Kernels of random numbers that need an unknown number of random words for an element (`gamma`, `poisson`), or their
//! input besides (`categorical`), or that have a seed which is computed (`seeded`). Others are recipes of a key.

pub mod categorical;
mod draw;
mod each;
pub mod gamma;
pub mod poisson;
pub mod seeded;
