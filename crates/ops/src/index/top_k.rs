//! `top_k`: the k largest elements of each row of the last axis, largest first, and where they stand.
//!
//! NaN counts as larger than everything, so that it shows; of equal elements (0 and -0 are equal, and so are NaNs) the
//! one with the lower index comes first.

use smallvec::smallvec;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types,
};
use tonnage_core::{Attrs, Call, DType, Dim, Emit, OpDef, TensorType};

use super::along::leading_axes;
use super::put_along_axis::PUT_ALONG_AXIS;
use crate::OpId;
use crate::infer::{bad_attrs, cost, elements, inputs, joined, number, rank_at_least};

/// `x [.., n] -> (values [.., k], indices i32 [.., k])`; k as [`Attrs::Count`].
pub static TOP_K: OpDef = OpDef {
    id: OpId::TopK as u16,
    name: "top_k",
    doc: "The k largest elements of each row of the last axis, largest first, and their indices.",
    infer,
    axes: |call| {
        let axes = leading_axes(call.inputs[0].shape.rank(), 1, AxisOf::Mixed);
        AxisMap { outputs: vec![axes.clone(), axes], summed: Vec::new() }
    },
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Output(1).always()]]),
    remat: Remat::Costly,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(call.inputs.first().map_or(0, elements), made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [x] = inputs("top_k", call)?;
    let Attrs::Count(k) = call.attrs else {
        return Err(bad_attrs("top_k", call.attrs, "how many to keep"));
    };
    number("top_k", x)?;
    rank_at_least("top_k", x, 1, "it ranks along the last axis")?;
    let (leading, last) = x.shape.split_at(x.shape.rank() - 1);
    if let Some(n) = last[0].known() {
        fits(*k, n)?;
    }
    let shape = joined(&[leading, &[Dim::Known(*k)]]);
    Ok(smallvec![TensorType::new(x.dtype, &shape), TensorType::new(DType::I32, shape)])
}

/// Refuses more than there are.
pub fn fits(k: usize, n: usize) -> Result<()> {
    if k > n {
        let what = format!("k is {k}, but the last axis has {n} elements");
        return Err(bad_argument("top_k", what, "pass a k that is at most that"));
    }
    if i32::try_from(n).is_err() {
        let what = format!("the last axis has {n} elements, and indices are i32");
        return Err(bad_argument("top_k", what, "cut it into parts of less than 2^31"));
    }
    Ok(())
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let last = call.inputs[0].shape.last().cloned();
    let length = Attrs::Shape(last.into_iter().collect());
    let put = emit.apply(&PUT_ALONG_AXIS, vec![call.output(1)?, call.grad()?], length)?;
    Ok(vec![Some(Cotangent::Dense(put))])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, x: &[usize], k| Sample::of(&[TensorType::new(dtype, x)], Attrs::Count(k));
    vec![
        of(DType::F64, &[3, 7], 3),
        of(DType::F64, &[2, 2, 5], 5),
        of(DType::F32, &[9], 1),
        of(DType::F32, &[4, 1023], 17),
        of(DType::F32, &[2, 1024], 1024),
        of(DType::F32, &[1025, 4], 2),
        of(DType::F16, &[2, 9], 4),
        of(DType::BF16, &[2, 9], 4),
        of(DType::I64, &[2, 30], 9),
        of(DType::I8, &[40], 12),
        of(DType::U8, &[3, 8], 3),
        of(DType::U32, &[3, 8], 3),
        of(DType::F32, &[3, 4], 0),
        of(DType::F32, &[0, 4], 2),
        of(DType::F32, &[3, 0], 0),
    ]
}
