//! `ifft`: the inverse of `fft`: element `j` is the mean of `x[k] e^(2 pi i j k / n)`.
//!
//! Any length has a transform.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves};

use super::complex;
use super::fft::FFT;
use crate::OpId;

/// `(real [.., n], imaginary [.., n]) -> (real [.., n], imaginary [.., n])`
pub static IFFT: OpDef = OpDef {
    id: OpId::Ifft as u16,
    name: "ifft",
    doc: "The inverse of the Fourier transform along the last axis, on real and imaginary parts.",
    infer: complex::infer,
    axes: complex::axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: complex::weigh,
    grad: Grad::Rule(|e, call| complex::grad(e, call, &FFT, true)),
    jvp: Jvp::Linear(&[&[0, 1]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: complex::samples,
};
