//! `silu`: x * sigmoid(x), also known as swish.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// x * sigmoid(x), also known as swish.
pub static SILU: OpDef = OpDef {
    id: OpId::Silu as u16,
    name: "silu",
    doc: "x * sigmoid(x), also known as swish.",
    infer: rules::infer::unary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, Prim::Silu.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::Silu)),
    samples: samples::unary_float,
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![slope(e, call, 0, [RuleInput::Grad, RuleInput::Input(0)], |p, [g, x]| {
        // s + y (1 - s), for the sigmoid s.
        let s = p.one(Prim::Sigmoid, x);
        let y = p.one(Prim::Silu, x);
        let rest = p.neg(s);
        let rest = p.plus(rest, 1);
        let slope = p.fma(y, rest, s);
        p.mul(g, slope)
    })?])
}
