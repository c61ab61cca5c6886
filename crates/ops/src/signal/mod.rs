//! Fourier transforms along the last axis, on real and imaginary parts.
//!
//! Written here rather than taken from `rustfft`: its plans hold tables as long as the signal, which they allocate and keep
//! out of any ledger's sight, and it wants real and imaginary parts interleaved, which here are two tensors. So the
//! tables are made in lent scratch, once a call for all rows (`tables`), and the passes over a row (`stages`) read both
//! parts as they lie.

pub mod fft;
pub mod ifft;
pub mod irfft;
pub mod rfft;

mod complex;
mod four;
mod half;
mod stages;
mod tables;
