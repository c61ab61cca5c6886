//! `xlogy`: the left times the logarithm of the right, broadcast, and 0 where the left is 0.
//!
//! The slopes are 0 there too.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::{Prim, Reg};

use crate::tile::{Chain, RuleInput, slope};
use crate::{OpId, rules, samples};

/// The left times the logarithm of the right, broadcast, and 0 where the left is 0.
pub static XLOGY: OpDef = OpDef {
    id: OpId::Xlogy as u16,
    name: "xlogy",
    doc: "The left times the logarithm of the right, broadcast, and 0 where the left is 0.",
    infer: rules::infer::binary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0, 1]),
    saves: Saves::one_of(&[&[Save::Input(0).always(), Save::Input(1).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost(call, rules::infer::binary_float, Prim::Log.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| {
        super::pairwise(call, |p, a, b| {
            let log = p.one(Prim::Log, b);
            let product = p.mul(a, log);
            unless_zero(p, a, product)
        })
    }),
    samples: || samples::binary_float((0.3, 2.0), (0.2, 2.0)),
};

fn unless_zero(p: &mut Chain, a: Reg, value: Reg) -> Reg {
    let nothing = p.with(Prim::Eq, a, 0);
    p.zero_or(nothing, value)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![
        slope(
            e,
            call,
            0,
            [RuleInput::Grad, RuleInput::Input(0), RuleInput::Input(1)],
            |p, [g, a, b]| {
                let log = p.one(Prim::Log, b);
                let slope = unless_zero(p, a, log);
                p.mul(g, slope)
            },
        )?,
        slope(
            e,
            call,
            1,
            [RuleInput::Grad, RuleInput::Input(0), RuleInput::Input(1)],
            |p, [g, a, b]| {
                let share = p.div(a, b);
                let slope = unless_zero(p, a, share);
                p.mul(g, slope)
            },
        )?,
    ])
}
