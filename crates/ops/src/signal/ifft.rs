//! `ifft`: the inverse of `fft`: element `j` is the mean of `x[k] e^(2 pi i j k / n)`.
//!
//! Lengths of small primes take passes alone, others some more; any length has a transform.

use tonnage_core::OpDef;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves};

use super::complex::{self, run};
use super::fft::FFT;
use crate::number::with_real;

/// `(real [.., n], imaginary [.., n]) -> (real [.., n], imaginary [.., n])`
pub static IFFT: OpDef = OpDef {
    name: "ifft",
    doc: "The inverse of the Fourier transform along the last axis, on real and imaginary parts.",
    infer: complex::infer,
    axes: complex::axes,
    mem: Mem::Alloc,
    scratch: complex::scratch,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: complex::weigh,
    grad: Grad::Rule(|e, call| complex::grad(e, call, &FFT, true)),
    jvp: Jvp::Linear(&[&[0, 1]]),
    fails: Fails::Never,
    lower: Lower::Slices(|k| with_real!("ifft", k.inputs[0].dtype, T => run::<T>(k, true))),
    samples: complex::samples,
};
