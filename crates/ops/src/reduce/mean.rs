//! `mean`: the mean over some axes; the mean of nothing is NaN.
//!
//! The sum is divided before it is rounded to the dtype: that of 16-bit floats does not overflow.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves};
use tonnage_core::tile::Reduction;

use crate::{OpId, emit, rules};

/// The mean over some axes; the mean of nothing is NaN.
pub static MEAN: OpDef = OpDef {
    id: OpId::Mean as u16,
    name: "mean",
    doc: "The mean over some axes; the mean of nothing is NaN.",
    infer: super::of_float,
    axes: |call| rules::axes::reduction(call, false),
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| super::cost(call, super::of_float, 1),
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::reduction_program(call, Reduction::Mean)),
    samples: super::float_samples,
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (axes, _) = super::reduced(&call.call())?;
    let (g, shape) = (call.grad()?, &call.inputs[0].shape);
    // Divided while it is small.
    let count = emit::size(e, &super::count(shape, axes), g.ty().dtype.compute())?;
    let share = emit::div(e, g, count)?;
    let share = emit::cast(e, share, call.inputs[0].dtype)?;
    Ok(vec![emit::dense(super::broadcast_back(e, share, call.attrs, shape)?)])
}
