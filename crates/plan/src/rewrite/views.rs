//! Views that change nothing, and views of views.
//!
//! Each is exact: the same elements in the same order, so the bits stay.
//!
//! * A transpose in the order that is there, a reshape or a broadcast to the shape that is there, a slice of
//!   the whole: the value itself. So is `place` of a part that is the whole.
//! * A transpose of a transpose, a slice of a slice, a broadcast of a broadcast: one of them.
//! * A reshape of a reshape: one, where no kernel reads it. The first may have to copy a strided tensor,
//!   which then lies close together; without it a kernel could read strides, and the order of additions in a
//!   product may depend on those.
//! * `stop_gradient`: gradients are taken by now.
//! * `identity` of a result that has bytes of its own anyway. Of an argument or of a view it stays: the copy
//!   is what was asked for.

use tonnage_core::attrs::{Attrs, AxisSlice};
use tonnage_core::error::Result;
use tonnage_core::graph::ValueId;
use tonnage_core::row::Mem;
use tonnage_core::shape::{Shape, Sizes};
use tonnage_ops::math::identity::IDENTITY;
use tonnage_ops::math::stop_gradient::STOP_GRADIENT;
use tonnage_ops::shape::broadcast_to::BROADCAST_TO;
use tonnage_ops::shape::place::PLACE;
use tonnage_ops::shape::reshape::RESHAPE;
use tonnage_ops::shape::slice::SLICE;
use tonnage_ops::shape::transpose::TRANSPOSE;

use super::rewriter::{PendingNode, Rewriter};

pub(super) fn rule(rewriter: &mut Rewriter, given: &PendingNode) -> Result<Option<ValueId>> {
    let [x] = given.inputs else { return Ok(None) };
    let x = *x;
    let unchanged = match given.attrs {
        Attrs::Order(order) if given.op == &TRANSPOSE => order.iter().copied().eq(0..order.len()),
        Attrs::Shape(to) if given.op == &RESHAPE || given.op == &BROADCAST_TO => {
            *to == rewriter.ty(x).shape
        }
        Attrs::Slices(slices) if given.op == &SLICE => is_whole(slices, &rewriter.ty(x).shape),
        Attrs::Place { slices, shape } if given.op == &PLACE => is_whole(slices, shape),
        _ => given.op == &STOP_GRADIENT || (given.op == &IDENTITY && has_own_bytes(rewriter, x)),
    };
    if unchanged {
        return Ok(Some(x));
    }
    let Some(inner) = rewriter.made_by(x, given.op) else { return Ok(None) };
    let below = inner.inputs.first().copied();
    let attrs = match (&inner.attrs, given.attrs) {
        (Attrs::Order(first), Attrs::Order(then)) if given.op == &TRANSPOSE => {
            Attrs::Order(then.iter().map(|axis| first[*axis]).collect::<Sizes>())
        }
        (Attrs::Shape(_), Attrs::Shape(to)) if given.op == &BROADCAST_TO => {
            Attrs::Shape(to.clone())
        }
        (Attrs::Shape(_), Attrs::Shape(to)) if given.op == &RESHAPE && !rewriter.strict => {
            Attrs::Shape(to.clone())
        }
        (Attrs::Slices(first), Attrs::Slices(then)) if given.op == &SLICE => {
            let joined: Option<Vec<AxisSlice>> =
                first.iter().zip(then).map(|(a, b)| joined(a, b)).collect();
            let Some(joined) = joined else { return Ok(None) };
            Attrs::Slices(joined)
        }
        _ => return Ok(None),
    };
    below.map(|below| rewriter.apply(given.op, &[below], attrs, given.ty.clone())).transpose()
}

fn is_whole(slices: &[AxisSlice], shape: &Shape) -> bool {
    slices.len() == shape.rank()
        && slices.iter().zip(shape.iter()).all(|(s, d)| s.start.is(0) && s.step == 1 && s.len == *d)
}

/// A part of a part, where all is known.
fn joined(first: &AxisSlice, then: &AxisSlice) -> Option<AxisSlice> {
    let (a, b) = (first.known()?, then.known()?);
    let start = a.start as isize + b.start as isize * a.step;
    // A part of nothing may start anywhere.
    let start = if b.len == 0 { 0 } else { usize::try_from(start).ok()? };
    Some(AxisSlice {
        start: start.into(),
        len: then.len.clone(),
        step: a.step.checked_mul(b.step)?,
    })
}

/// Made by an op that writes its result somewhere new, close together.
fn has_own_bytes(rewriter: &Rewriter, id: ValueId) -> bool {
    rewriter.maker(id).is_some_and(|node| {
        matches!(node.op.mem, Mem::Alloc | Mem::Reuse(_) | Mem::Recipe | Mem::Regions)
    })
}
