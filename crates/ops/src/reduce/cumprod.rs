//! `cumprod`: running products along an axis, from either end, with or without the element itself.
//!
//! The gradient divides by nothing, so zeros are no trouble: it is the product of what comes before an element,
//! times a recurrence over what comes behind it.

use tonnage_core::OpDef;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Values};

use super::linear_recurrence::LINEAR_RECURRENCE;
use super::scan::{self, ScanAttrs};
use crate::{OpId, emit, rules};

/// Running products along an axis.
pub static CUMPROD: OpDef = OpDef {
    id: OpId::Cumprod as u16,
    name: "cumprod",
    doc: "Running products along an axis, from either end, with or without the element itself.",
    infer: scan::infer,
    axes: scan::axes,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| rules::cost::elementwise(call, &call.inputs[..1], 1),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

/// Of y_k = x_0 ... x_k: the gradient of x_i is (x_0 ... x_(i-1)) s_i with s_i = g_i + x_(i+1) s_(i+1). Where
/// each product leaves its own element out, g stands one place further on.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let ScanAttrs { axis, exclusive, reverse } = scan::scan(&call.call())?;
    let (g, x) = (call.grad()?, call.input(0)?);
    let before = Attrs::Scan { axis, exclusive: true, reverse };
    let before = e.apply(&CUMPROD, vec![x.clone()], before)?;
    let behind = Attrs::Scan { axis, exclusive: true, reverse: !reverse };
    let g = if exclusive { emit::shift(e, g, axis, reverse)? } else { g };
    let behind = e.apply(&LINEAR_RECURRENCE, vec![x, g], behind)?;
    Ok(vec![emit::dense(emit::mul(e, before, behind)?)])
}

/// Values around 1: a product of many others would be 0 or endless.
fn samples() -> Vec<Sample> {
    let near_one = |sample: Sample| match sample.inputs[0].ty.dtype.is_float() {
        true => sample.with(0, Values::Between(0.97, 1.03)),
        false => sample,
    };
    scan::samples().into_iter().map(near_one).collect()
}
