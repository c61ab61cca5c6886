//! `cumsum`: running sums along an axis, from either end, with or without the element itself.

use tonnage_core::OpDef;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves};

use super::scan::{self, ScanAttrs};
use crate::{OpId, emit, rules};

/// Running sums along an axis.
pub static CUMSUM: OpDef = OpDef {
    id: OpId::Cumsum as u16,
    name: "cumsum",
    doc: "Running sums along an axis, from either end, with or without the element itself.",
    infer: scan::infer,
    axes: scan::axes,
    mem: Mem::Reuse(&[0]),
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| rules::cost::elementwise(call, &call.inputs[..1], 1),
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: scan::samples,
};

/// An element is part of the sums behind it: they run back.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let ScanAttrs { axis, exclusive, reverse } = scan::scan(&call.call())?;
    let back = Attrs::Scan { axis, exclusive, reverse: !reverse };
    let g = call.grad()?;
    Ok(vec![emit::dense(e.apply(&CUMSUM, vec![g], back)?)])
}
