//! `rfft`: the Fourier transform of real rows along the last axis: its first `n / 2 + 1` elements, of which the others are
//! mirror images.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::{Bytes, Call, DType, Dim, OpDef, Shape, TensorType};

use super::complex::{self, given, something};
use super::irfft::IRFFT;
use super::real::{RealFft, bin_multiplicity, bins, scratch_of, with_last};
use crate::emit;
use crate::infer::{inputs, no_attrs, rank_at_least, real};
use crate::linalg::field::Field;
use crate::number::with_real;

/// `x [.., n] -> (real [.., n / 2 + 1], imaginary [.., n / 2 + 1])`
pub static RFFT: OpDef = OpDef {
    name: "rfft",
    doc: "The Fourier transform of real rows along the last axis: its first half.",
    infer,
    axes: |call| complex::rows(call, 2),
    mem: Mem::Alloc,
    scratch,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: |call| {
        let length = call.inputs.first().and_then(|ty| ty.shape.last().cloned());
        complex::weight(call, &length.unwrap_or(Dim::Known(1)), &infer(call).unwrap_or_default())
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Slices(|k| with_real!("rfft", k.inputs[0].dtype, T => kernel::<T>(k))),
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

fn scratch(call: &Call, threads: usize) -> Bytes {
    let Some(ty) = call.inputs.first() else { return Bytes::ZERO };
    let n = ty.shape.last().and_then(|dim| dim.most()).unwrap_or(0);
    scratch_of(n, ty.dtype, threads)
}

fn kernel<T: Field>(k: &mut Kernel) -> Result<()> {
    let x = &k.inputs[0];
    let n = x.layout.sizes.last().copied().unwrap_or(0);
    let [re, im] = &mut *k.outputs else {
        return Err(bad_argument("rfft", "the kernel was lent no two outputs", "report this"));
    };
    let (re, im) = (re.slice::<T>(), im.slice::<T>());
    if re.is_empty() {
        return Ok(());
    }
    let mut rest = &mut *k.scratch;
    let half = RealFft::<T>::of(n, 1.0, &mut rest, k.workers)?;
    let size = half.group() * (n / 2 + 1);
    let rows = re.chunks_mut(size).zip(im.chunks_mut(size)).enumerate();
    half.for_each_group(rows, rest, k.workers, &|(number, (re, im)), group| {
        half.forward(x, number * half.group(), [re, im], group)
    })
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
