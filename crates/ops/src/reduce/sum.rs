//! `sum`: added up over some axes; the sum of nothing is 0.
//!
//! The tree of additions depends on the shape and the axes alone, so the bits are the same at every
//! thread count. Integers wrap around.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves};
use tonnage_core::tile::Reduction;

use crate::{OpId, emit, rules};

/// Added up over some axes; the sum of nothing is 0.
pub static SUM: OpDef = OpDef {
    id: OpId::Sum as u16,
    name: "sum",
    doc: "Added up over some axes; the sum of nothing is 0.",
    infer: super::of_number,
    axes: |call| rules::axes::reduction(call, true),
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| super::cost(call, super::of_number, 1),
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::reduction_program(call, Reduction::Sum)),
    samples: super::number_samples,
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    let wide = super::broadcast_back(e, g, call.attrs, &call.inputs[0].shape)?;
    Ok(vec![emit::dense(wide)])
}
