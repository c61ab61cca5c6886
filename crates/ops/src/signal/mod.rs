//! Fourier transforms along the last axis, on real and imaginary parts.

pub mod complex;
pub mod fft;
pub mod ifft;
pub mod irfft;
pub mod real;
pub mod rfft;
