//! `gelu_tanh`: gelu by a hyperbolic tangent: x * sigmoid(2 * sqrt(2 / pi) * (x + 0.044715 * x^3)).

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;

use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// gelu by a hyperbolic tangent: x * sigmoid(2 * sqrt(2 / pi) * (x + 0.044715 * x^3)).
pub static GELU_TANH: OpDef = OpDef {
    id: OpId::GeluTanh as u16,
    name: "gelu_tanh",
    doc: "gelu by a hyperbolic tangent: x * sigmoid(2 * sqrt(2 / pi) * (x + 0.044715 * x^3)).",
    infer: rules::infer::unary_float,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, Prim::GeluTanh.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::GeluTanh)),
    samples: samples::unary_float,
};

/// 2 sqrt(2 / pi).
const K: f64 = 1.5957691216057308;

const CUBIC: f64 = 0.044715;

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![slope(e, call, 0, [RuleInput::Grad, RuleInput::Input(0)], |p, [g, x]| {
        // s + x s (1 - s) t', for the sigmoid s of t = K (x + 0.044715 x^3).
        let square = p.one(Prim::Square, x);
        let inner = p.times(square, K * CUBIC);
        let inner = p.plus(inner, K);
        let t = p.mul(x, inner);
        let s = p.one(Prim::Sigmoid, t);
        let steep = p.times(square, 3.0 * K * CUBIC);
        let steep = p.plus(steep, K);
        let steep = p.mul(x, steep);
        let rest = p.neg(s);
        let rest = p.plus(rest, 1);
        let both = p.mul(s, rest);
        let slope = p.fma(steep, both, s);
        p.mul(g, slope)
    })?])
}
