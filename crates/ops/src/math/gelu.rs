//! `gelu`: x times the share of the normal distribution below x.
//!
//! The exact one; `gelu_tanh` is the approximation that some models were trained with.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// x times the share of the normal distribution below x.
pub static GELU: OpDef = OpDef {
    id: OpId::Gelu as u16,
    name: "gelu",
    doc: "x times the share of the normal distribution below x.",
    infer: rules::infer::unary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, Prim::Gelu.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::Gelu)),
    samples: samples::unary_float,
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![slope(e, call, 0, [RuleInput::Grad, RuleInput::Input(0)], |p, [g, x]| {
        // The share itself, and x times the density.
        let scaled = p.times(x, -FRAC_1_SQRT_2);
        let share = p.one(Prim::Erfc, scaled);
        let share = p.times(share, 0.5);
        let square = p.one(Prim::Square, x);
        let square = p.times(square, -0.5);
        let density = p.one(Prim::Exp, square);
        let density = p.times(density, 0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2);
        let slope = p.fma(x, density, share);
        p.mul(g, slope)
    })?])
}
