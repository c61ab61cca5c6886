//! Logits of 16 bits that are cast before their loss is taken, as they lie: the loss computes in f32 either way, and so does its gradient,
//! which is rounded once where it is made. So the logits exist once, in 16 bits.
//!
//! The bits stay: the cast is exact, losses are f32 in both forms, and the gradient is the same number before the same rounding.

use tonnage_core::error::Result;
use tonnage_core::graph::ValueId;
use tonnage_ops::math::cast::CAST;
use tonnage_ops::nn::softmax::cross_entropy::CROSS_ENTROPY;
use tonnage_ops::nn::softmax::cross_entropy_grad::CROSS_ENTROPY_GRAD;

use super::rewriter::{PendingNode, Rewriter};

pub(super) fn rule(rewriter: &mut Rewriter, given: &PendingNode) -> Result<Option<ValueId>> {
    let (op, inputs, attrs) = match given.inputs {
        [logits, labels] if given.op == &CROSS_ENTROPY => {
            let Some(logits) = narrow(rewriter, *logits) else { return Ok(None) };
            (&CROSS_ENTROPY, vec![logits, *labels], given.attrs.clone())
        }
        [made] if given.op == &CAST => {
            let Some(node) = rewriter.made_by(*made, &CROSS_ENTROPY_GRAD) else { return Ok(None) };
            let [logits, labels, g] = node.inputs[..] else { return Ok(None) };
            let narrow = narrow(rewriter, logits);
            let Some(logits) = narrow.filter(|id| rewriter.dtype(*id) == given.ty.dtype) else {
                return Ok(None);
            };
            (&CROSS_ENTROPY_GRAD, vec![logits, labels, g], node.attrs.clone())
        }
        _ => return Ok(None),
    };
    rewriter.apply(op, &inputs, attrs, given.ty.clone()).map(Some)
}

/// What a value is a cast of, to what kernels compute it in.
fn narrow(rewriter: &Rewriter, id: ValueId) -> Option<ValueId> {
    let [from] = rewriter.made_by(id, &CAST)?.inputs[..] else { return None };
    let (dtype, wide) = (rewriter.dtype(from), rewriter.dtype(id));
    (dtype.is_float() && dtype != wide && dtype.compute() == wide).then_some(from)
}
