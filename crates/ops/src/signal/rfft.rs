//! `rfft`: the Fourier transform of real rows along the last axis: its first `n / 2 + 1` elements, of which the others are
//! mirror images.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::{Call, DType, Dim, OpDef, Shape, TensorType};

use super::complex::{self, given, something};
use super::irfft::IRFFT;
use super::real::{bin_multiplicity, bins, with_last};
use crate::infer::{inputs, no_attrs, rank_at_least, real};
use crate::{OpId, emit};

/// `x [.., n] -> (real [.., n / 2 + 1], imaginary [.., n / 2 + 1])`
pub static RFFT: OpDef = OpDef {
    id: OpId::Rfft as u16,
    name: "rfft",
    doc: "The Fourier transform of real rows along the last axis: its first half.",
    infer,
    axes: |call| complex::rows(call, 2),
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: |call| {
        let length = call.inputs.first().and_then(|ty| ty.shape.last().cloned());
        complex::weight(call, &length.unwrap_or(Dim::Known(1)), &infer(call).unwrap_or_default())
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [x] = inputs("rfft", call)?;
    no_attrs("rfft", call)?;
    real("rfft", x)?;
    rank_at_least("rfft", x, 1, "transforms run along the last axis")?;
    something("rfft", x)?;
    let part = with_last(x, bins(&x.shape[x.shape.rank() - 1]));
    Ok(smallvec![part.clone(), part])
}

/// Back, times the length, where each element counts once and not with its mirror image.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let x = &call.inputs[0];
    let n = &x.shape[x.shape.rank() - 1];
    let part = with_last(x, bins(n));
    let often = bin_multiplicity(e, "rfft", n, x.dtype)?;
    let (re, im) = (given(e, call, 0, &part)?, given(e, call, 1, &part)?);
    let inputs = vec![emit::div(e, re, often.clone())?, emit::div(e, im, often)?];
    let length: Shape = [n.clone()].into_iter().collect();
    let inverse = e.apply(&IRFFT, inputs, Attrs::Shape(length))?;
    let count = emit::size(e, n, x.dtype)?;
    Ok(vec![emit::dense(emit::mul(e, inverse, count)?)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, sizes: &[usize]| Sample::of(&[TensorType::new(dtype, sizes)], Attrs::None);
    vec![
        of(DType::F64, &[2, 8]),
        of(DType::F64, &[3, 1]),
        of(DType::F64, &[2, 2]),
        of(DType::F64, &[15]),
        of(DType::F64, &[2, 2, 6]),
        of(DType::F64, &[17]),
        of(DType::F64, &[34]),
        of(DType::F32, &[1000]),
        of(DType::F32, &[40, 64]),
        of(DType::F32, &[0, 6]),
    ]
}
