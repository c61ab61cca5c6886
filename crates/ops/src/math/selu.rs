//! `selu`: elu with fixed numbers that keep mean and variance: 1.0507 * (x, or 1.6733 * (exp(x) -
//! 1) below 0).

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::{Prim, Reg};

use crate::tile::{Chain, RuleInput, slope};
use crate::{OpId, rules, samples};

/// elu with fixed numbers that keep mean and variance: 1.0507 * (x, or 1.6733 * (exp(x) - 1) below
/// 0).
pub static SELU: OpDef = OpDef {
    id: OpId::Selu as u16,
    name: "selu",
    doc: "elu with fixed numbers that keep mean and variance: 1.0507 * (x, or 1.6733 * (exp(x) - 1) below 0).",
    infer: rules::infer::unary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Output(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, 14),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::several(call, program)),
    samples: samples::unary_float,
};

const SCALE: f64 = 1.0507009873554805;

const ALPHA: f64 = 1.6732632423543772;

fn program(p: &mut Chain, x: Reg) -> Reg {
    let below = p.one(Prim::Expm1, x);
    let below = p.times(below, SCALE * ALPHA);
    let above = p.times(x, SCALE);
    let positive = p.with(Prim::Gt, x, 0);
    p.select(positive, above, below)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![slope(e, call, 0, [RuleInput::Grad, RuleInput::Output(0)], |p, [g, y]| {
        // Below 0 the slope is y + SCALE * ALPHA; at 0 it is that of the right side, as in TensorFlow.
        let steep = p.plus(y, SCALE * ALPHA);
        let flat = p.number(SCALE, y);
        let negative = p.with(Prim::Lt, y, 0);
        let slope = p.select(negative, steep, flat);
        p.mul(g, slope)
    })?])
}
