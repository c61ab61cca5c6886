//! The gradient of `cross_entropy` for its logits: probabilities, which are recomputed, less the labels; each row times the
//! gradient of its loss. May take over the logits' bytes.

use smallvec::smallvec;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types};
use tonnage_core::{Attrs, Call, DType, Dim, OpDef, Shape, TensorType};

use super::cross_entropy::{labels_to_test, leading, wide_losses};
use super::plain::SOFTMAX;
use super::{check_rows, computed, costs, rows_axes, smoothing};
use crate::derive::by_formula;
use crate::index::put_along_axis::PUT_ALONG_AXIS;
use crate::infer::{inputs, integer, same_dtype, shape};
use crate::{OpId, emit};

/// The op's name, for errors.
pub const NAME: &str = "cross_entropy_grad";

/// `(logits, labels, g) -> gradient of the logits`; the share that is spread as [`Attrs::Smoothing`].
pub static CROSS_ENTROPY_GRAD: OpDef = OpDef {
    id: OpId::CrossEntropyGrad as u16,
    name: NAME,
    doc: "The gradient of cross_entropy for its logits.",
    infer,
    axes: |call| rows_axes(call, &[0, 1, 2], true),
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Inputs.always()]]),
    remat: Remat::Costly,
    cost: |call| costs(call, 15, &call.inputs[..1]),
    grad: Grad::Rule(|e, call| by_formula(e, call, formula)),
    jvp: Jvp::FromGrad,
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples: || {
        let sample = |(mut sample, _): (Sample, _)| {
            let g = wide_losses(&sample.inputs[0].ty);
            sample.inputs.extend(Sample::of(&[g], Attrs::None).inputs);
            sample
        };
        labels_to_test().into_iter().map(sample).collect()
    },
};

/// Refuses gradients that are not of these losses.
pub(super) fn check_grad(op: &'static str, expected: &TensorType, g: &TensorType) -> Result<()> {
    same_dtype(op, g, expected)?;
    shape(op, &g.shape, &expected.shape, "pass one number for each row of logits")
}

fn infer(call: &Call) -> Result<Types> {
    let [x, labels, g] = inputs(NAME, call)?;
    smoothing(NAME, call.attrs)?;
    check_rows(NAME, x)?;
    integer(NAME, labels)?;
    shape(NAME, &labels.shape, &leading(x), "pass one label for each row of logits")?;
    check_grad(NAME, &wide_losses(x), g)?;
    Ok(smallvec![x.clone()])
}

/// A number of each row, beside its elements.
pub(super) fn beside(e: &mut dyn Emit, x: &Value, wide: DType) -> Result<Value> {
    let x = emit::cast(e, x.clone(), wide)?;
    let to: Shape = x.ty().shape.iter().cloned().chain([Dim::Known(1)]).collect();
    emit::reshape(e, x, &to)
}

/// Probabilities, in what they are computed in, times a number of each row.
pub(super) fn shares(e: &mut dyn Emit, x: &Value, by: Value) -> Result<Value> {
    let x = emit::cast(e, x.clone(), by.ty().dtype)?;
    let probabilities = emit::unary(e, &SOFTMAX, x)?;
    emit::mul(e, probabilities, by)
}

fn formula(e: &mut dyn Emit, attrs: &Attrs, inputs: Vec<Value>) -> Result<Vec<Value>> {
    let share = smoothing(NAME, attrs)?;
    let [x, labels, g] = &inputs[..] else { return Ok(Vec::new()) };
    let (ty, wide) = (x.ty().clone(), computed(x.ty().dtype));
    let g = beside(e, g, wide)?;
    let mut made = shares(e, x, g.clone())?;
    let label = beside(e, labels, labels.ty().dtype)?;
    let certain = emit::scale(e, g.clone(), 1.0 - share)?;
    let last = Attrs::Shape(ty.shape[ty.shape.rank() - 1..].iter().cloned().collect());
    let put = e.apply(&PUT_ALONG_AXIS, vec![label, certain], last)?;
    made = emit::sub(e, made, put)?;
    let count = emit::size(e, &ty.shape[ty.shape.rank() - 1], wide)?;
    let spread = emit::scale(e, g, share)?;
    let spread = emit::div(e, spread, count)?;
    let made = emit::sub(e, made, spread)?;
    Ok(vec![emit::cast(e, made, ty.dtype)?])
}
