//! `divide_no_nan`: the quotient of two tensors, broadcast, and 0 where the divisor is 0.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::{Prim, Reg};

use crate::tile::{Chain, RuleInput, slope};
use crate::{OpId, rules, samples};

/// The quotient of two tensors, broadcast, and 0 where the divisor is 0.
pub static DIVIDE_NO_NAN: OpDef = OpDef {
    id: OpId::DivideNoNan as u16,
    name: "divide_no_nan",
    doc: "The quotient of two tensors, broadcast, and 0 where the divisor is 0.",
    infer: rules::infer::binary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0, 1]),
    saves: Saves::one_of(&[&[Save::Input(1).always(), Save::Output(0).needed_by(1)]]),
    remat: Remat::Cheap,
    cost: |call| super::cost(call, rules::infer::binary_float, Prim::Div.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::pairwise(call, quotient)),
    samples: || samples::binary_float((0.3, 2.0), (0.2, 2.0)),
};

fn quotient(p: &mut Chain, a: Reg, b: Reg) -> Reg {
    let quotient = p.div(a, b);
    let nothing = p.with(Prim::Eq, b, 0);
    p.zero_or(nothing, quotient)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![
        slope(e, call, 0, [RuleInput::Grad, RuleInput::Input(1)], |p, [g, b]| quotient(p, g, b))?,
        slope(
            e,
            call,
            1,
            [RuleInput::Grad, RuleInput::Input(1), RuleInput::Output(0)],
            |p, [g, b, y]| {
                let part = p.mul(g, y);
                let part = quotient(p, part, b);
                p.neg(part)
            },
        )?,
    ])
}
