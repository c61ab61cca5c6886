//! The gradient of `cross_entropy_dense` for its logits: probabilities, which are recomputed, times the sum of the targets,
//! less the targets; each row times the gradient of its loss. May take over the logits' bytes.

use smallvec::smallvec;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types};
use tonnage_core::{Attrs, Call, OpDef};

use super::cross_entropy::losses;
use super::cross_entropy_dense::targets_to_test;
use super::cross_entropy_grad::{beside, check_grad, shares};
use super::{check_rows, computed, costs, rows_axes, smoothing};
use crate::derive::by_formula;
use crate::infer::{inputs, same_dtype, shape};
use crate::{OpId, emit};

/// The op's name, for errors.
pub const NAME: &str = "cross_entropy_dense_grad";

/// `(logits, targets, g) -> gradient of the logits`; the share that is spread as [`Attrs::Smoothing`].
pub static CROSS_ENTROPY_DENSE_GRAD: OpDef = OpDef {
    id: OpId::CrossEntropyDenseGrad as u16,
    name: NAME,
    doc: "The gradient of cross_entropy_dense for its logits.",
    infer,
    axes: |call| rows_axes(call, &[0, 1, 2], true),
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Inputs.always()]]),
    remat: Remat::Costly,
    cost: |call| costs(call, 15, &call.inputs[..1]),
    grad: Grad::Rule(|e, call| by_formula(e, call, formula)),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || {
        let sample = |mut sample: Sample| {
            let g = losses(&sample.inputs[0].ty);
            sample.inputs.extend(Sample::of(&[g], Attrs::None).inputs);
            sample
        };
        targets_to_test().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [x, targets, g] = inputs(NAME, call)?;
    smoothing(NAME, call.attrs)?;
    check_rows(NAME, x)?;
    same_dtype(NAME, x, targets)?;
    shape(NAME, &targets.shape, &x.shape, "pass a probability for every logit")?;
    check_grad(NAME, &losses(x), g)?;
    Ok(smallvec![x.clone()])
}

fn formula(e: &mut dyn Emit, attrs: &Attrs, inputs: Vec<Value>) -> Result<Vec<Value>> {
    let share = smoothing(NAME, attrs)?;
    let [x, targets, g] = &inputs[..] else { return Ok(Vec::new()) };
    let (ty, wide) = (x.ty().clone(), computed(x.ty().dtype));
    let last = ty.shape.rank() - 1;
    let g = beside(e, g, wide)?;
    let count = emit::size(e, &ty.shape[last], wide)?;
    let even = emit::number(e, share, wide)?;
    let even = emit::div(e, even, count)?;
    let targets = emit::cast(e, targets.clone(), wide)?;
    let targets = emit::scale(e, targets, 1.0 - share)?;
    let targets = emit::add(e, targets, even)?;
    let sum = emit::sum(e, targets.clone(), smallvec![last], true)?;
    let by = emit::mul(e, g.clone(), sum)?;
    let made = shares(e, x, by)?;
    let less = emit::mul(e, targets, g)?;
    let made = emit::sub(e, made, less)?;
    Ok(vec![emit::cast(e, made, ty.dtype)?])
}
