//! `sign`: -1, 0 or 1; zeros keep their sign and NaN stays NaN.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves};
use tonnage_core::tile::Prim;

use crate::{OpId, emit, rules, samples};

/// -1, 0 or 1; zeros keep their sign and NaN stays NaN.
pub static SIGN: OpDef = OpDef {
    id: OpId::Sign as u16,
    name: "sign",
    doc: "-1, 0 or 1; zeros keep their sign and NaN stays NaN.",
    infer: rules::infer::unary_number,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, Prim::Sign.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Rule(super::flat_jvp),
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::one(call, Prim::Sign)),
    samples: samples::unary_number,
};

// Zeros, a recipe without bytes, and not `None`: to TensorFlow the sign depends on its input, where `floor` and its kin do
// not, and a source that looks unconnected would be left out of an update that decays it.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![emit::dense(emit::zeros(e, &call.inputs[0])?)])
}
