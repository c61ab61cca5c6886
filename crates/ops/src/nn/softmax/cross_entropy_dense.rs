//! `cross_entropy_dense`: how surprised logits are by probabilities: `sum(t * (lse - x))`, with `lse` the logarithm of the sum
//! of the powers of e. With smoothing a share of the probabilities is spread evenly over all classes.
//!
//! For the backward pass it saves logits and targets.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types};
use tonnage_core::{Attrs, Call, Emit, OpDef, Scalar, TensorType};

use super::cross_entropy::losses;
use super::cross_entropy_dense_grad::CROSS_ENTROPY_DENSE_GRAD;
use super::cross_entropy_grad::beside;
use super::log::LOG_SOFTMAX;
use super::{check_rows, computed, costs, rows_axes, rows_to_test, smoothing};
use crate::infer::{inputs, same_dtype, shape};
use crate::{OpId, emit};

/// The op's name, for errors.
pub const NAME: &str = "cross_entropy_dense";

/// `(logits [..., n], targets [..., n]) -> losses [...]`; the share that is spread as [`Attrs::Smoothing`].
pub static CROSS_ENTROPY_DENSE: OpDef = OpDef {
    id: OpId::CrossEntropyDense as u16,
    name: NAME,
    doc: "How surprised logits are by probabilities: -sum(targets * log_softmax(logits)).",
    infer,
    axes: |call| rows_axes(call, &[0, 1], false),
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Inputs.always()]]),
    remat: Remat::Costly,
    cost: |call| costs(call, 20, &infer(call).unwrap_or_default()),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || targets_to_test(),
};

fn infer(call: &Call) -> Result<Types> {
    let [x, targets] = inputs(NAME, call)?;
    smoothing(NAME, call.attrs)?;
    check_rows(NAME, x)?;
    same_dtype(NAME, x, targets)?;
    shape(NAME, &targets.shape, &x.shape, "pass a probability for every logit")?;
    Ok(smallvec![losses(x)])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let inputs = vec![call.input(0)?, call.input(1)?, call.grad()?];
    let mut grads = vec![None, None];
    if call.needs[1] {
        let (share, wide) = (smoothing(NAME, call.attrs)?, computed(call.inputs[0].dtype));
        let x = emit::cast(e, inputs[0].clone(), wide)?;
        let logs = emit::unary(e, &LOG_SOFTMAX, x)?;
        let g = beside(e, &inputs[2], wide)?;
        let g = emit::scale(e, g, share - 1.0)?;
        let made = emit::mul(e, logs, g)?;
        grads[1] = emit::dense(emit::cast(e, made, call.inputs[1].dtype)?);
    }
    if call.needs[0] {
        let made = e.apply(&CROSS_ENTROPY_DENSE_GRAD, inputs, call.attrs.clone())?;
        grads[0] = emit::dense(made);
    }
    Ok(grads)
}

/// Samples that the gradient shares.
pub(super) fn targets_to_test() -> Vec<Sample> {
    let of = |(i, (dtype, sizes)): (usize, (_, tonnage_core::Sizes))| {
        let ty = TensorType::new(dtype, &sizes[..]);
        let share = Scalar::Float(if i % 2 == 1 { 0.2 } else { 0.0 });
        let between = tonnage_core::row::Values::Between(0.0, 1.0);
        Sample::of(&[ty.clone(), ty], Attrs::Smoothing(share)).with(1, between)
    };
    rows_to_test().into_iter().enumerate().map(of).collect()
}
