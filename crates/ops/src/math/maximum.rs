//! `maximum`: the larger of two tensors, broadcast; NaN wins.
//!
//! Where both are equal the left one gets all of the gradient, so that it is counted once. The
//! gradient needs to know which side won alone: a bit an element, or both inputs where they are
//! saved anyway.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    Call, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types, no_scratch,
};
use tonnage_core::tile::{Prim, TileProgram};

use super::relu_grad::bits_type;
use crate::tile::{RuleInput, slope};
use crate::{rules, samples};

/// The larger of two tensors, broadcast; NaN wins.
pub static MAXIMUM: OpDef = OpDef {
    name: "maximum",
    doc: "The larger of two tensors, broadcast; NaN wins.",
    infer: rules::infer::binary_number,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0, 1]),
    scratch: no_scratch,
    saves: Saves {
        alternatives: &[
            &[Save::Input(0).always(), Save::Input(1).always()],
            &[Save::Aux(0).always()],
        ],
        aux,
    },
    remat: Remat::Cheap,
    cost: |call| super::cost(call, rules::infer::binary_number, 1),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Tile(program),
    samples: samples::binary_number,
};

fn aux(call: &Call) -> Result<Types> {
    Ok(rules::infer::binary_number(call)?.iter().map(bits_type).collect())
}

fn program(call: &Call, bits: bool) -> Result<TileProgram> {
    super::pairwise_with_bits(
        call,
        bits,
        |p, a, b| p.two(Prim::Max, a, b),
        |p, a, b| p.two(Prim::Lt, a, b),
    )
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
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
            let right_wins = p.two(Prim::Lt, a, b);
            p.zero_or(right_wins, g)
        })?,
        slope(e, call, 1, reads, |p, [g, a, b]| {
            let right_wins = p.two(Prim::Lt, a, b);
            p.or_zero(right_wins, g)
        })?,
    ])
}
