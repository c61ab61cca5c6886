//! The larger or the smaller of two tensors, broadcast: `maximum`, `minimum`; NaN wins.
//!
//! Where both are equal the left one gets all of the gradient, so that it is counted once. The
//! gradient needs to know which side won alone: a bit an element, or both inputs where they are
//! saved anyway.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Fails, Grad, GradRule, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::tile::{Prim, Reg, TileProgram};

use super::relu_grad::bits_type;
use crate::tile::{Chain, RuleInput, slope};
use crate::{OpId, rules, samples};

/// The larger of two tensors, broadcast; NaN wins.
pub static MAXIMUM: OpDef = row(
    OpId::Maximum,
    "maximum",
    "The larger of two tensors, broadcast; NaN wins.",
    |call, bits| program(call, bits, Prim::Max, larger),
    |e, call| grad(e, call, larger),
);

/// The smaller of two tensors, broadcast; NaN wins.
pub static MINIMUM: OpDef = row(
    OpId::Minimum,
    "minimum",
    "The smaller of two tensors, broadcast; NaN wins.",
    |call, bits| program(call, bits, Prim::Min, smaller),
    |e, call| grad(e, call, smaller),
);

/// Both inputs, or which side won.
const SAVES: Saves = Saves {
    alternatives: &[&[Save::Input(0).always(), Save::Input(1).always()], &[Save::Aux(0).always()]],
    aux,
};

/// One of the two.
const fn row(
    id: OpId,
    name: &'static str,
    doc: &'static str,
    program: fn(&Call, bool) -> Result<TileProgram>,
    grad: GradRule,
) -> OpDef {
    OpDef {
        id: id as u16,
        name,
        doc,
        infer: rules::infer::binary_number,
        axes: rules::axes::elementwise,
        mem: Mem::Reuse(&[0, 1]),
        saves: SAVES,
        remat: Remat::Cheap,
        cost: |call| super::cost(call, rules::infer::binary_number, 1),
        grad: Grad::Rule(grad),
        jvp: Jvp::FromGrad,
        fails: Fails::Never,
        lower: Lower::Tile(program),
        samples: samples::binary_number,
    }
}

fn aux(call: &Call) -> Result<Types> {
    Ok(rules::infer::binary_number(call)?.iter().map(bits_type).collect())
}

/// Whether the right one wins: it is larger.
fn larger(p: &mut Chain, a: Reg, b: Reg) -> Reg {
    p.two(Prim::Lt, a, b)
}

/// Whether the right one wins: it is smaller.
fn smaller(p: &mut Chain, a: Reg, b: Reg) -> Reg {
    p.two(Prim::Lt, b, a)
}

/// Says whether the right one wins.
type RightWins = fn(&mut Chain, Reg, Reg) -> Reg;

fn program(call: &Call, bits: bool, prim: Prim, right_wins: RightWins) -> Result<TileProgram> {
    super::pairwise_with_bits(call, bits, |p, a, b| p.two(prim, a, b), right_wins)
}

fn grad(
    e: &mut dyn Emit,
    call: &GradCall,
    right_wins: RightWins,
) -> Result<Vec<Option<Cotangent>>> {
    if call.saves(Save::Aux(0)) {
        let reads = [RuleInput::Grad, RuleInput::Bits(0)];
        return Ok(vec![
            slope(e, call, 0, reads, |p, [g, right_wins]| p.zero_or(right_wins, g))?,
            slope(e, call, 1, reads, |p, [g, right_wins]| p.or_zero(right_wins, g))?,
        ]);
    }
    let reads = [RuleInput::Grad, RuleInput::Input(0), RuleInput::Input(1)];
    Ok(vec![
        slope(e, call, 0, reads, |p, [g, a, b]| {
            let right_wins = right_wins(p, a, b);
            p.zero_or(right_wins, g)
        })?,
        slope(e, call, 1, reads, |p, [g, a, b]| {
            let right_wins = right_wins(p, a, b);
            p.or_zero(right_wins, g)
        })?,
    ])
}
