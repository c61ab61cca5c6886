//! `relu6`: every element, kept between 0 and 6; NaN stays NaN.
//!
//! The slope is 0 at both ends.

use smallvec::smallvec;
use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::tile::{Prim, Reg, TileProgram};

use super::relu_grad::bits_type;
use crate::tile::{Chain, RuleInput, slope};
use crate::{OpId, rules, samples};

/// Every element, kept between 0 and 6; NaN stays NaN.
pub static RELU6: OpDef = OpDef {
    id: OpId::Relu6 as u16,
    name: "relu6",
    doc: "Every element, kept between 0 and 6; NaN stays NaN.",
    infer: rules::infer::unary_number,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves { alternatives: &[&[Save::Output(0).always()], &[Save::Aux(0).always()]], aux },
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, 2),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(program),
    samples: samples::unary_number,
};

fn aux(call: &Call) -> Result<Types> {
    Ok(smallvec![bits_type(&call.inputs[0])])
}

fn program(call: &Call, bits: bool) -> Result<TileProgram> {
    super::several_with_bits(call, bits, |p, x| {
        let y = p.with(Prim::Max, x, 0);
        let y = p.with(Prim::Min, y, 6);
        (y, inside(p, y))
    })
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![match call.saves(Save::Aux(0)) {
        true => slope(e, call, 0, [RuleInput::Grad, RuleInput::Bits(0)], |p, [g, inside]| {
            p.or_zero(inside, g)
        })?,
        false => slope(e, call, 0, [RuleInput::Grad, RuleInput::Output(0)], |p, [g, y]| {
            let inside = inside(p, y);
            p.or_zero(inside, g)
        })?,
    }])
}

/// Where the slope is not 0, read from the result.
fn inside(p: &mut Chain, y: Reg) -> Reg {
    let above = p.with(Prim::Gt, y, 0);
    let below = p.with(Prim::Lt, y, 6);
    p.two(Prim::And, above, below)
}
