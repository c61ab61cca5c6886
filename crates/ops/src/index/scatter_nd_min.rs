//! `scatter_nd_min`: a tensor with the smaller of itself and rows at indices into several leading axes.
//!
//! NaN wins. Whoever is the least of the element and all rows that name it gets the gradient; several share it
//! evenly.

use smallvec::smallvec;
use tonnage_core::OpDef;
use tonnage_core::error::Result;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};

use super::nd;
use super::scatter_nd_add::numbers;
use super::winners::shared;
use crate::OpId;
use crate::infer::{cost, elements, number};

/// `(table, indices, rows) -> table`; how many leading axes are shared as `Attrs::Count`.
pub static SCATTER_ND_MIN: OpDef = OpDef {
    id: OpId::ScatterNdMin as u16,
    name: "scatter_nd_min",
    doc: "A tensor with the smaller of itself and rows at indices into several leading axes; NaN wins.",
    infer,
    axes: nd::scatter_axes,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[
        Save::Input(0).always(),
        Save::Input(1).always(),
        Save::Input(2).always(),
        Save::Output(0).always(),
    ]]),
    remat: Remat::Cheap,
    cost: |call| {
        let flops = call.inputs.get(2).map_or(0, elements);
        cost(flops, call.inputs.iter().chain(call.inputs.first()))
    },
    grad: Grad::Rule(shared),
    jvp: Jvp::FromGrad,
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples: || nd::samples(true, &numbers()),
};

fn infer(call: &Call) -> Result<Types> {
    let made = nd::scatter_type(call)?;
    number("scatter_nd_min", &made)?;
    Ok(smallvec![made])
}
