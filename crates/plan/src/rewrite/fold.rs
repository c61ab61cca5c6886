//! Constant folding: an elementwise function of fills is a fill, and so is a view of one.
//!
//! A fill is a description of a few bytes, and what is folded is a fill again: no constant ever grows out of a
//! recipe. A reduction of a fill to one number is that number, and a small one to several, too. The numbers are those
//! of the kernels, bit for bit, since the kernels' own programs compute them ([`Target::uniform`](crate::Target::uniform)).

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::graph::ValueId;
use tonnage_core::row::Lower;
use tonnage_core::tile::Close;
use tonnage_core::{Scalar, Shape};
use tonnage_ops::shape::fill::FILL;
use tonnage_ops::shape::lengths::LENGTHS;
use tonnage_ops::tile::element;

use super::rewriter::{PendingNode, Rewriter};

pub(super) fn rule(rewriter: &mut Rewriter, given: &PendingNode) -> Result<Option<ValueId>> {
    if given.op == &FILL {
        return normal(rewriter, given);
    }
    if let (true, Attrs::Lengths { of, dtype }) = (given.op == &LENGTHS, given.attrs) {
        return match uniform_lengths(of).filter(|length| length.fits(*dtype)) {
            Some(length) => rewriter.fill(element(length, *dtype), given.ty).map(Some),
            None => Ok(None),
        };
    }
    let values: Option<SmallVec<[Scalar; 3]>> =
        given.inputs.iter().map(|id| rewriter.constant(*id)).collect();
    let Some(values) = values.filter(|values| !values.is_empty()) else { return Ok(None) };
    let value = match (given.op.lower, given.program) {
        (Lower::View(_), _) if rewriter.dtype(given.inputs[0]) == given.ty.dtype => Some(values[0]),
        (Lower::Tile(_), Some(program)) => {
            let domain = match program.close {
                Close::Store => Some(SmallVec::new()),
                Close::Reduce { .. } => rewriter.ty(given.inputs[0]).shape.sizes(),
            };
            domain.and_then(|domain| rewriter.target.uniform(program, &domain, &values))
        }
        _ => None,
    };
    value.map(|value| rewriter.fill(value, given.ty)).transpose()
}

/// Lengths that are known and all the same: what a mean divides by, once its open dims have sizes.
fn uniform_lengths(of: &Shape) -> Option<Scalar> {
    let first = of.first()?.known()?;
    of.iter().all(|dim| dim.is(first)).then(|| Scalar::from(first))
}

/// The same element is the same scalar: 2 and 2.0 are one f32.
fn normal(rewriter: &mut Rewriter, given: &PendingNode) -> Result<Option<ValueId>> {
    let Attrs::Fill { value, dtype, .. } = given.attrs else { return Ok(None) };
    match element(*value, *dtype) {
        same if same == *value => Ok(None),
        value => rewriter.fill(value, given.ty).map(Some),
    }
}
