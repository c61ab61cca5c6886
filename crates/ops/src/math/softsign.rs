//! `softsign`: x / (1 + |x|).

use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::{Prim, Reg};
use tonnage_core::{DType, OpDef};

use crate::tile::{Chain, RuleInput, slope};
use crate::{OpId, rules, samples};

/// x / (1 + |x|).
pub static SOFTSIGN: OpDef = OpDef {
    id: OpId::Softsign as u16,
    name: "softsign",
    doc: "x / (1 + |x|).",
    infer: rules::infer::unary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Output(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, 6),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::several(call, program)),
    samples: samples::unary_float,
};

fn program(p: &mut Chain, x: Reg) -> Reg {
    // An infinity becomes the largest number: over itself it would be NaN.
    let most = if p.dtype(x) == DType::F64 { f64::MAX } else { f32::MAX.into() };
    let x = p.with(Prim::Min, x, most);
    let x = p.with(Prim::Max, x, -most);
    let size = p.one(Prim::Abs, x);
    let below = p.plus(size, 1);
    p.div(x, below)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![slope(e, call, 0, [RuleInput::Grad, RuleInput::Output(0)], |p, [g, y]| {
        // (1 - |y|)^2
        let size = p.one(Prim::Abs, y);
        let rest = p.neg(size);
        let rest = p.plus(rest, 1);
        let slope = p.one(Prim::Square, rest);
        p.mul(g, slope)
    })?])
}
