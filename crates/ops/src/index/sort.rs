//! `sort`: each row of the last axis in order, up or down.
//!
//! NaN counts as larger than everything, so it stands at the end, or first where the largest comes first.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisOf, Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types,
};
use tonnage_core::{DType, OpDef, Shape, TensorType};

use super::along::{leading_axes, one_output};
use super::argsort::{ARGSORT, descending};
use super::put_along_axis::PUT_ALONG_AXIS;
use crate::infer::{cost, elements, inputs, rank_at_least};
use crate::{OpId, emit};

/// `x [.., n] -> [.., n]`; whether the largest comes first as [`Attrs::Descending`].
pub static SORT: OpDef = OpDef {
    id: OpId::Sort as u16,
    name: "sort",
    doc: "Each row of the last axis in order; NaN counts as larger than everything.",
    infer,
    axes: |call| one_output(leading_axes(call.inputs[0].shape.rank(), 1, AxisOf::Mixed)),
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Costly,
    cost: |call| {
        let flops = call.inputs.first().map_or(0, elements).saturating_mul(20);
        cost(flops, call.inputs.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || samples(&DType::ALL),
};

fn infer(call: &Call) -> Result<Types> {
    let [x] = inputs("sort", call)?;
    descending(call)?;
    rank_at_least("sort", x, 1, "it sorts along the last axis")?;
    Ok(smallvec![x.clone()])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let places = e.apply(&ARGSORT, vec![call.input(0)?], call.attrs.clone())?;
    let length: Shape = call.inputs[0].shape.last().cloned().into_iter().collect();
    let put = e.apply(&PUT_ALONG_AXIS, vec![places, call.grad()?], Attrs::Shape(length))?;
    Ok(vec![emit::dense(put)])
}

/// Rows of every kind.
pub(super) fn samples(dtypes: &[DType]) -> Vec<Sample> {
    let of = |dtype, shape: &[usize], descending| {
        Sample::of(&[TensorType::new(dtype, shape)], Attrs::Descending(descending))
    };
    let mut all: Vec<Sample> = dtypes.iter().map(|d| of(*d, &[2, 9], false)).collect();
    all.extend([
        of(DType::F32, &[1], false),
        of(DType::F32, &[7], true),
        of(DType::I32, &[3, 2, 5], true),
        of(DType::F64, &[4, 30], true),
        of(DType::F32, &[2, 1025], false),
        of(DType::F32, &[0], false),
        of(DType::F32, &[0, 3], true),
        of(DType::F32, &[3, 0], false),
    ]);
    all
}
