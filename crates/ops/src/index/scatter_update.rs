//! `scatter_update`: a table with rows put in the place of others.
//!
//! Where an index repeats, the last row in the order of the indices stays, at any number of threads.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::{Attrs, Call, Emit, OpDef, Scalar};

use super::gather_last::GATHER_LAST;
use super::rows::{scatter_axes, scatter_type};
use super::scatter_add;
use crate::OpId;
use crate::infer::cost;

/// `(table, indices, rows) -> table`; the axis as [`Attrs::Axis`], or none for axis 0.
pub static SCATTER_UPDATE: OpDef = OpDef {
    id: OpId::ScatterUpdate as u16,
    name: "scatter_update",
    doc: "A tensor with rows replaced at indices along one axis; the last of equal indices stays.",
    infer: |call| -> Result<Types> { Ok(smallvec![scatter_type("scatter_update", call)?]) },
    axes: scatter_axes,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(1).always()]]),
    remat: Remat::Cheap,
    cost: |call: &Call| cost(0, call.inputs.iter().chain(call.inputs)),
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0, 2]]),
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples: scatter_add::samples,
};

pub(crate) fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (g, indices) = (call.grad()?, call.input(1)?);
    let mut grads = vec![None, None, None];
    if call.needs[2] {
        // A row that was overwritten by a later one has no part in the result.
        let picked = vec![g.clone(), indices.clone()];
        let rows = emit.apply(&GATHER_LAST, picked, call.attrs.clone())?;
        grads[2] = Some(Cotangent::Dense(rows));
    }
    if call.needs[0] {
        let of = call.inputs[2].clone();
        let fill = Attrs::Fill { value: Scalar::Int(0), dtype: of.dtype, shape: of.shape };
        let zeros = emit.apply(call.ops.fill, Vec::new(), fill)?;
        let cleared = emit.apply(&SCATTER_UPDATE, vec![g, indices, zeros], call.attrs.clone())?;
        grads[0] = Some(Cotangent::Dense(cleared));
    }
    Ok(grads)
}
