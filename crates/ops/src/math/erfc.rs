//! `erfc`: 1 less the error function, with all its digits far out on the positive side.

use std::f64::consts::FRAC_2_SQRT_PI;

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// 1 less the error function, with all its digits far out on the positive side.
pub static ERFC: OpDef = OpDef {
    id: OpId::Erfc as u16,
    name: "erfc",
    doc: "1 less the error function, with all its digits far out on the positive side.",
    infer: rules::infer::unary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, Prim::Erfc.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::Erfc)),
    samples: samples::unary_float,
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![slope(e, call, 0, [RuleInput::Grad, RuleInput::Input(0)], |p, [g, x]| {
        let square = p.one(Prim::Square, x);
        let square = p.neg(square);
        let bell = p.one(Prim::Exp, square);
        let slope = p.times(bell, -FRAC_2_SQRT_PI);
        p.mul(g, slope)
    })?])
}
