//! Broadcasts that an elementwise op does by itself, or that can wait until it is done: it works on the
//! narrow tensor instead of the broadcast one.
//!
//! `x + broadcast_to(row, shape)` is `x + row`, `x * fill(2, shape)` is `x * 2`, new axes of length 1 in
//! front are no new axes, and `exp(broadcast_to(row, shape))` is `broadcast_to(exp(row), shape)`. Elements
//! meet the same elements, so the bits stay. What a kernel reads stays as it lay: there a broadcast result
//! would have strides of 0 where it had none.

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::graph::ValueId;
use tonnage_core::row::Call;
use tonnage_core::shape::{Shape, TensorType};
use tonnage_core::tile::{Close, Form};
use tonnage_ops::shape::broadcast_to::BROADCAST_TO;
use tonnage_ops::shape::fill::FILL;
use tonnage_ops::shape::reshape::RESHAPE;

use super::rewriter::{PendingNode, Rewriter};

pub(super) fn rule(rewriter: &mut Rewriter, given: &PendingNode) -> Result<Option<ValueId>> {
    let Some(program) = given.program else { return Ok(None) };
    let plain = program.close == Close::Store
        && program.loads.iter().all(|form| matches!(form, Form::Elements(_)));
    if !plain {
        return Ok(None);
    }
    let mut inputs: SmallVec<[ValueId; 3]> = SmallVec::new();
    for id in given.inputs {
        inputs.push(narrower(rewriter, *id)?.unwrap_or(*id));
    }
    if inputs.as_slice() == given.inputs {
        return Ok(None);
    }
    let types: SmallVec<[TensorType; 3]> =
        inputs.iter().map(|id| rewriter.ty(*id).clone()).collect();
    let call = Call { op: given.op.name, inputs: &types, attrs: given.attrs, regions: &[] };
    let Some(ty) = (given.op.infer)(&call).ok().and_then(|mut made| made.pop()) else {
        return Ok(None);
    };
    if ty == *given.ty {
        return rewriter.apply(given.op, &inputs, given.attrs.clone(), ty).map(Some);
    }
    let smaller = ty.shape.elements() != given.ty.shape.elements();
    let broadcasts = ty.shape.broadcast(&given.ty.shape, given.op.name);
    let fits = ty.dtype == given.ty.dtype && broadcasts.is_ok_and(|shape| shape == given.ty.shape);
    if !smaller || !fits || rewriter.strict {
        return Ok(None);
    }
    let narrow = rewriter.apply(given.op, &inputs, given.attrs.clone(), ty)?;
    let attrs = Attrs::Shape(given.ty.shape.clone());
    rewriter.apply(&BROADCAST_TO, &[narrow], attrs, given.ty.clone()).map(Some)
}

/// What a value is broadcast from.
fn narrower(rewriter: &mut Rewriter, id: ValueId) -> Result<Option<ValueId>> {
    let Some(node) = rewriter.maker(id) else { return Ok(None) };
    let below = node.inputs.first().copied();
    if node.op == &BROADCAST_TO {
        return Ok(below);
    }
    if node.op == &RESHAPE {
        let own = &rewriter.ty(id).shape;
        let new = |below: &ValueId| {
            let from = &rewriter.ty(*below).shape;
            let new = own.rank().checked_sub(from.rank()).filter(|new| *new > 0);
            new.is_some_and(|new| own[..new].iter().all(|d| d.is(1)) && own[new..] == **from)
        };
        return Ok(below.filter(new));
    }
    let Attrs::Fill { value, dtype, ref shape } = node.attrs else { return Ok(None) };
    if node.op != &FILL || shape.rank() == 0 {
        return Ok(None);
    }
    let ty = TensorType { dtype, shape: Shape::scalar() };
    rewriter.fill(value, &ty).map(Some)
}
