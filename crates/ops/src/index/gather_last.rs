//! `gather_last`: rows of a table by index, where of equal indices only the last gets the row and the
//! others get zeros. The transpose of `scatter_update`, and its gradient.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types,
};
use tonnage_core::{Attrs, Call, Emit, OpDef, Scalar, TensorType};

use super::rows::{axis, rows_shape};
use super::scatter_add;
use super::scatter_update::SCATTER_UPDATE;
use crate::OpId;
use crate::infer::{along, cost, inputs, number};

/// `(table, indices) -> rows`; the axis as [`Attrs::Axis`], or none for axis 0.
pub static GATHER_LAST: OpDef = OpDef {
    id: OpId::GatherLast as u16,
    name: "gather_last",
    doc: "Rows of a tensor by index; of equal indices the last gets the row, the others zeros.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Input(1).always()]]),
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(0, made.iter().chain(&made).chain(call.inputs.get(1)))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples: || {
        let tables_and_indices = |mut sample: Sample| {
            sample.inputs.truncate(2);
            sample
        };
        scatter_add::samples().into_iter().map(tables_and_indices).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [table, indices] = inputs("gather_last", call)?;
    number("gather_last", table)?;
    let shape = rows_shape("gather_last", table, indices, call.attrs)?;
    Ok(smallvec![TensorType { dtype: table.dtype, shape }])
}

/// The axes of the indices cannot be cut: which of equal ones is the last takes them all.
fn axes(call: &Call) -> AxisMap {
    let at = axis("gather_last", call.attrs).unwrap_or(0);
    let (rank, between) = (call.inputs[0].shape.rank(), call.inputs[1].shape.rank());
    let axes = (0..at)
        .map(|a| along(&[(0, a)]))
        .chain((0..between).map(|_| AxisOf::Mixed))
        .chain((at + 1..rank).map(|a| along(&[(0, a)])))
        .collect();
    AxisMap { outputs: vec![axes], summed: Vec::new() }
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let of = call.inputs[0].clone();
    let fill = Attrs::Fill { value: Scalar::Int(0), dtype: of.dtype, shape: of.shape };
    let zeros = emit.apply(call.ops.fill, Vec::new(), fill)?;
    let rows = vec![zeros, call.input(1)?, call.grad()?];
    let table = emit.apply(&SCATTER_UPDATE, rows, call.attrs.clone())?;
    Ok(vec![Some(Cotangent::Dense(table)), None])
}
