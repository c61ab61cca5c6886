//! `scatter_nd_add`: a tensor with rows added at indices into several leading axes; indices may repeat.

use smallvec::smallvec;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::{DType, OpDef};

use super::gather_nd::GATHER_ND;
use super::nd;
use crate::infer::{cost, elements, number};
use crate::{OpId, emit};

/// `(table, indices, rows) -> table`; how many leading axes are shared as `Attrs::Count`.
pub static SCATTER_ND_ADD: OpDef = OpDef {
    id: OpId::ScatterNdAdd as u16,
    name: "scatter_nd_add",
    doc: "A tensor with rows added at indices into several leading axes; indices may repeat.",
    infer,
    axes: nd::scatter_axes,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(1).needed_by(2)]]),
    remat: Remat::Cheap,
    cost: |call| {
        let flops = call.inputs.get(2).map_or(0, elements);
        cost(flops, call.inputs.iter().chain(call.inputs.first()))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0, 2]]),
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples: || nd::samples(true, &numbers()),
};

/// Every dtype but bool.
pub(super) fn numbers() -> Vec<DType> {
    DType::ALL.into_iter().filter(|d| *d != DType::Bool).collect()
}

fn infer(call: &Call) -> Result<Types> {
    let made = nd::scatter_type(call)?;
    number("scatter_nd_add", &made)?;
    Ok(smallvec![made])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    let of_rows = match call.needs[2] {
        true => {
            let picked = vec![g.clone(), call.input(1)?];
            emit::dense(e.apply(&GATHER_ND, picked, call.attrs.clone())?)
        }
        false => None,
    };
    Ok(vec![emit::dense(g), None, of_rows])
}
