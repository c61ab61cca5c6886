//! What an elementwise op says in one word: the only primitive that it computes.
//!
//! Rules speak of primitives and not of rows, so a new row that computes one of them is known to them.

use tonnage_core::DType;
use tonnage_core::row::Mem;
use tonnage_core::tile::{Close, Form, Prim};

use super::rewriter::PendingNode;

/// The one primitive that a node computes on all its inputs, in their order and in their own dtype, and
/// that dtype (of `Select`: that of the two values).
pub(super) fn only(given: &PendingNode) -> Option<(Prim, DType)> {
    let program = given.program?;
    let ([instr], [(reg, Form::Elements(_))]) =
        (program.code.as_slice(), program.stores.as_slice())
    else {
        return None;
    };
    let count = program.loads.len();
    let in_order = instr.args.len() == count
        && instr.args.iter().enumerate().all(|(i, reg)| usize::from(*reg) == i);
    let Some(Form::Elements(dtype)) = program.loads.last().copied() else { return None };
    let same =
        program.loads.iter().enumerate().all(|(i, form)| {
            *form == Form::Elements(dtype) || (instr.prim == Prim::Select && i == 0)
        });
    let plain = program.close == Close::Store
        && usize::from(*reg) == count
        && in_order
        && same
        && !matches!(given.op.mem, Mem::Update(_));
    plain.then_some((instr.prim, dtype))
}

/// Whether operands may change places without a change of bits. Of two NaNs either may come out of a sum or
/// a product, here as on any machine; of a maximum of two zeros the second comes out, so that of floats is
/// left as it is.
pub(super) fn commutes(prim: Prim, dtype: DType) -> bool {
    match prim {
        Prim::Add | Prim::Mul | Prim::Eq | Prim::Ne | Prim::And | Prim::Or | Prim::Xor => true,
        Prim::Max | Prim::Min => !dtype.is_float(),
        _ => false,
    }
}
