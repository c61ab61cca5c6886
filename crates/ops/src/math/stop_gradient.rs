//! `stop_gradient`: the same values; no gradient goes through.

use tonnage_core::OpDef;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall, JvpCall};
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Saves};

use super::identity;
use crate::{OpId, rules, samples};

/// The same values; no gradient goes through.
pub static STOP_GRADIENT: OpDef = OpDef {
    id: OpId::StopGradient as u16,
    name: "stop_gradient",
    doc: "The same values, without a copy; no gradient goes through.",
    infer: identity::infer,
    axes: rules::axes::elementwise,
    mem: Mem::View(0),
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: rules::cost::free,
    grad: Grad::Rule(grad),
    jvp: Jvp::Rule(jvp),
    fails: Fails::Never,
    lower: Lower::View(view),
    samples: || samples::unary_any(),
};

fn view(_: &Call, layout: &Layout) -> Option<Layout> {
    Some(layout.clone())
}

// A rule that says zero, not a `Stop`: asking for this gradient is no mistake.
fn grad(_: &mut dyn Emit, _: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![None])
}

fn jvp(_: &mut dyn Emit, _: &JvpCall) -> Result<Vec<Option<Value>>> {
    Ok(vec![None])
}
