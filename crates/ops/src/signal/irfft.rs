//! `irfft`: real rows from the first half of their Fourier transform: the inverse of `rfft`.
//!
//! Half a transform belongs to an even length and to an odd one, so the length is given. Elements that are their own mirror
//! images have no imaginary part: it is not looked at.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::{Call, DType, Dim, OpDef, Shape, TensorType};

use super::complex::{self, parts};
use super::real::{bin_multiplicity, bins, with_last};
use super::rfft::RFFT;
use crate::infer::{bad_attrs, shape};
use crate::{OpId, emit};

/// `(real [.., n / 2 + 1], imaginary [.., n / 2 + 1]) -> [.., n]`; n as [`Attrs::Shape`] of one axis.
pub static IRFFT: OpDef = OpDef {
    id: OpId::Irfft as u16,
    name: "irfft",
    doc: "Real rows from the first half of their Fourier transform.",
    infer,
    axes: |call| complex::rows(call, 1),
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: |call| match length(call.attrs) {
        Ok(length) => complex::weight(call, length, &infer(call).unwrap_or_default()),
        Err(_) => Default::default(),
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0, 1]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

/// How many numbers come out.
pub fn length(attrs: &Attrs) -> Result<&Dim> {
    match attrs {
        Attrs::Shape(shape) => match &shape[..] {
            [n] if !n.is(0) => Ok(n),
            _ => Err(bad_attrs("irfft", attrs, "the length of a row, at least 1")),
        },
        _ => Err(bad_attrs("irfft", attrs, "the length of a row")),
    }
}

fn infer(call: &Call) -> Result<Types> {
    let n = length(call.attrs)?;
    let part = parts("irfft", call)?;
    let made = with_last(part, n.clone());
    let help = "half a transform has one element more than half as many as the row";
    shape("irfft", &part.shape, &with_last(part, bins(n)).shape, help)?;
    Ok(smallvec![made])
}

/// The transform of the gradient, where each element counts with its mirror image, over the length.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (n, dtype) = (length(call.attrs)?, call.inputs[0].dtype);
    let often = bin_multiplicity(e, "irfft", n, dtype)?;
    let made = e.emit(&RFFT, vec![call.grad()?], Attrs::None, Vec::new(), false)?;
    let count = emit::size(e, n, dtype)?;
    let share = emit::div(e, often, count)?;
    made.into_iter().map(|x| Ok(emit::dense(emit::mul(e, x, share.clone())?))).collect()
}

fn samples() -> Vec<Sample> {
    let of = |dtype, rows: &[usize], n: usize| {
        let ty = TensorType::new(dtype, [rows, &[n / 2 + 1]].concat());
        Sample::of(&[ty.clone(), ty], Attrs::Shape(Shape::from([n])))
    };
    vec![
        of(DType::F64, &[2], 8),
        of(DType::F64, &[3], 1),
        of(DType::F64, &[2], 2),
        of(DType::F64, &[], 15),
        of(DType::F64, &[2, 2], 6),
        of(DType::F64, &[], 17),
        of(DType::F64, &[], 34),
        of(DType::F32, &[], 1000),
        of(DType::F32, &[40], 64),
        of(DType::F32, &[0], 6),
    ]
}
