//! `fft`: the Fourier transform along the last axis: element `k` is the sum of `x[j] e^(-2 pi i j k / n)`.
//!
//! Any length has a transform.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves};

use super::complex;
use super::ifft::IFFT;
use crate::OpId;

/// `(real [.., n], imaginary [.., n]) -> (real [.., n], imaginary [.., n])`
pub static FFT: OpDef = OpDef {
    id: OpId::Fft as u16,
    name: "fft",
    doc: "The Fourier transform along the last axis, on real and imaginary parts.",
    infer: complex::infer,
    axes: complex::axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: complex::weigh,
    grad: Grad::Rule(|e, call| complex::grad(e, call, &IFFT, false)),
    jvp: Jvp::Linear(&[&[0, 1]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: complex::samples,
};
