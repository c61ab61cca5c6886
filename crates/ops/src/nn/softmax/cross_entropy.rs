//! `cross_entropy`: how surprised logits are by a label: the logarithm of the sum of their powers of e, less the logit of the
//! label. With smoothing a share of each label is spread evenly over all classes. Losses of logits of 16 bits are f32, as they are computed.
//!
//! The probabilities are never made. For the backward pass it saves the logits and the labels.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    Fails, Grad, Jvp, Lower, Mem, Remat, Sample, SampleInput, Save, Saves, Types, Values,
};
use tonnage_core::{Attrs, Call, DType, Emit, OpDef, Scalar, Shape, Sizes, TensorType};

use super::cross_entropy_grad::CROSS_ENTROPY_GRAD;
use super::{check_rows, computed, costs, rows_axes, rows_to_test, smoothing};
use crate::infer::{inputs, integer, shape};
use crate::{OpId, emit};

/// The op's name, for errors.
pub const NAME: &str = "cross_entropy";

/// `(logits [..., n], labels [...]) -> losses [...]`; the share that is spread as [`Attrs::Smoothing`].
pub static CROSS_ENTROPY: OpDef = OpDef {
    id: OpId::CrossEntropy as u16,
    name: NAME,
    doc: "How surprised logits are by a label: -log_softmax(logits)[label].",
    infer,
    axes: |call| rows_axes(call, &[0, 1], false),
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Inputs.always()]]),
    remat: Remat::Costly,
    cost: |call| costs(call, 15, &infer(call).unwrap_or_default()),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples: || labels_to_test().into_iter().map(|(sample, _)| sample).collect(),
};

/// The shape of a row's number.
pub(super) fn leading(x: &TensorType) -> Shape {
    x.shape[..x.shape.rank() - 1].iter().cloned().collect()
}

/// The type of the losses of logits.
pub(super) fn losses(x: &TensorType) -> TensorType {
    TensorType { dtype: x.dtype, shape: leading(x) }
}

/// The same where labels say what is right: those that logits were cast for would be the same losses.
pub(super) fn wide_losses(x: &TensorType) -> TensorType {
    TensorType { dtype: computed(x.dtype), shape: leading(x) }
}

fn infer(call: &Call) -> Result<Types> {
    let [x, labels] = inputs(NAME, call)?;
    smoothing(NAME, call.attrs)?;
    check_rows(NAME, x)?;
    integer(NAME, labels)?;
    shape(NAME, &labels.shape, &leading(x), "pass one label for each row of logits")?;
    Ok(smallvec![wide_losses(x)])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let inputs = vec![call.input(0)?, call.input(1)?, call.grad()?];
    let made = e.apply(&CROSS_ENTROPY_GRAD, inputs, call.attrs.clone())?;
    Ok(vec![emit::dense(made), None])
}

/// Samples, and the sizes of their logits.
pub(super) fn labels_to_test() -> Vec<(Sample, Sizes)> {
    let labels = [DType::I64, DType::U8, DType::I32];
    let of = |(i, (dtype, sizes)): (usize, (DType, Sizes))| {
        let (last, rows) = (sizes[sizes.len() - 1], &sizes[..sizes.len() - 1]);
        let share = Scalar::Float(if i % 2 == 1 { 0.2 } else { 0.0 });
        // A label of one byte points at the first classes.
        let dtype_of_labels = labels[i % 3];
        let most = last.min(200);
        let mut sample = Sample::of(
            &[TensorType::new(dtype, &sizes[..]), TensorType::new(dtype_of_labels, rows)],
            Attrs::Smoothing(share),
        );
        sample.inputs[1] = SampleInput { values: Values::Below(most), ..sample.inputs[1].clone() };
        (sample, sizes)
    };
    rows_to_test().into_iter().enumerate().map(of).collect()
}
