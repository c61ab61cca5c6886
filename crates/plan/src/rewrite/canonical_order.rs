//! Canonical form: operands that may change places stand in one order, and reductions are written in one
//! form. So `a + b` and `b + a` are the same node, and a long-winded function has the plan of a compact one.
//!
//! The order follows from what the operands are made of (the deepest first, constants last), not from where
//! they stand in the program. Which operands may change places says [`prim::commutes`](super::prim).
//!
//! Decision: `docs/decisions/canonical-order-of-operands.md`.

use tonnage_core::Scalar;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::graph::ValueId;
use tonnage_core::shape::{Shape, TensorType};
use tonnage_core::tile::{Close, Prim};
use tonnage_ops::shape::reshape::RESHAPE;

use super::prim::{commutes, only};
use super::rewriter::{PendingNode, Rewriter};

pub(super) fn rule(rewriter: &mut Rewriter, given: &PendingNode) -> Result<Option<ValueId>> {
    if let Some(kept) = plain_reduction(rewriter, given)? {
        return Ok(Some(kept));
    }
    let Some((prim, dtype)) = only(given) else { return Ok(None) };
    match given.inputs {
        [a, b] if commutes(prim, dtype) && rewriter.rank(*b) < rewriter.rank(*a) => {
            rewriter.apply(given.op, &[*b, *a], given.attrs.clone(), given.ty.clone()).map(Some)
        }
        [choice, a, b] if prim == Prim::Select => {
            // A choice by the opposite is the opposite choice.
            let Some(opposite) = negated(rewriter, *choice) else { return Ok(None) };
            let inputs = [opposite, *b, *a];
            rewriter.apply(given.op, &inputs, given.attrs.clone(), given.ty.clone()).map(Some)
        }
        _ => Ok(None),
    }
}

/// A reduction that keeps its axes as lengths of 1 is the plain one, viewed in that shape.
fn plain_reduction(rewriter: &mut Rewriter, given: &PendingNode) -> Result<Option<ValueId>> {
    let is_reduction = given.program.is_some_and(|p| matches!(p.close, Close::Reduce { .. }));
    let (true, Attrs::Reduce { axes, keep_dims: true }) = (is_reduction, given.attrs) else {
        return Ok(None);
    };
    let kept = given.ty.shape.iter().enumerate().filter(|(i, _)| !axes.contains(i));
    let shape: Shape = kept.map(|(_, d)| d.clone()).collect();
    let ty = TensorType { dtype: given.ty.dtype, shape };
    let attrs = Attrs::Reduce { axes: axes.clone(), keep_dims: false };
    let plain = rewriter.apply(given.op, given.inputs, attrs, ty)?;
    let attrs = Attrs::Shape(given.ty.shape.clone());
    rewriter.apply(&RESHAPE, &[plain], attrs, given.ty.clone()).map(Some)
}

/// What a boolean is the opposite of: made by `not`, or by comparing with false.
fn negated(rewriter: &Rewriter, id: ValueId) -> Option<ValueId> {
    let node = rewriter.maker(id)?;
    let tonnage_core::row::Lower::Tile(make) = node.op.lower else { return None };
    let program = rewriter.graph.with_call(node, |call| make(call, node.aux)).ok()?;
    let ty = rewriter.ty(id);
    let given = PendingNode {
        op: node.op,
        attrs: &node.attrs,
        inputs: &node.inputs,
        ty,
        program: Some(&program),
    };
    match (only(&given)?, node.inputs.as_slice()) {
        ((Prim::Not, tonnage_core::DType::Bool), [x]) => Some(*x),
        ((Prim::Eq, tonnage_core::DType::Bool), [x, f]) if rewriter.ty(*x) == ty => {
            (rewriter.constant(*f) == Some(Scalar::Bool(false))).then_some(*x)
        }
        _ => None,
    }
}
