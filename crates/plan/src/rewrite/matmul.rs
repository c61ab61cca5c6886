//! Transposes into the attributes of a product, which reads either operand as its transpose without a copy.
//!
//! The kernel transposes the operand's layout, just as the transpose did, so it reads the same elements at
//! the same strides and the bits stay. What is gained is that equal products are seen to be equal. A
//! transpose of the *result* is left alone: it is a view and takes nothing, and the product with its
//! operands swapped may add up in another order where it has few rows.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::graph::ValueId;
use tonnage_ops::linalg::matmul::MATMUL;
use tonnage_ops::shape::transpose::TRANSPOSE;

use super::rewriter::{PendingNode, Rewriter};

pub(super) fn rule(rewriter: &mut Rewriter, given: &PendingNode) -> Result<Option<ValueId>> {
    let (true, Attrs::Matmul { transpose_a, transpose_b }, [a, b]) =
        (given.op == &MATMUL, given.attrs, given.inputs)
    else {
        return Ok(None);
    };
    let (below_a, below_b) = (transposed(rewriter, *a), transposed(rewriter, *b));
    if below_a.is_none() && below_b.is_none() {
        return Ok(None);
    }
    let attrs = Attrs::Matmul {
        transpose_a: *transpose_a != below_a.is_some(),
        transpose_b: *transpose_b != below_b.is_some(),
    };
    let inputs = [below_a.unwrap_or(*a), below_b.unwrap_or(*b)];
    rewriter.apply(&MATMUL, &inputs, attrs, given.ty.clone()).map(Some)
}

/// What a value is the transpose of, over its last two axes alone.
fn transposed(rewriter: &Rewriter, id: ValueId) -> Option<ValueId> {
    let node = rewriter.made_by(id, &TRANSPOSE)?;
    let Attrs::Order(order) = &node.attrs else { return None };
    let rank = order.len();
    let only_last = rank >= 2
        && order[..rank - 2].iter().copied().eq(0..rank - 2)
        && order[rank - 2..] == [rank - 1, rank - 2];
    only_last.then(|| node.inputs[0])
}
