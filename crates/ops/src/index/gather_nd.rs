//! `gather_nd`: rows of a tensor by indices into several leading axes.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{AxisMap, Call, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::{DType, OpDef, TensorType};

use super::nd::{self, NdAxes};
use super::scatter_nd_add::SCATTER_ND_ADD;
use crate::infer::{along, cost, inputs};
use crate::{OpId, emit};

/// `(table, indices) -> rows`; how many leading axes both share as [`Attrs::Count`].
pub static GATHER_ND: OpDef = OpDef {
    id: OpId::GatherNd as u16,
    name: "gather_nd",
    doc: "Rows of a tensor by indices into several leading axes.",
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
    samples: || nd::samples(false, &DType::ALL),
};

fn infer(call: &Call) -> Result<Types> {
    let [table, _] = inputs("gather_nd", call)?;
    Ok(smallvec![TensorType { dtype: table.dtype, shape: nd::rows_shape(call)? }])
}

fn axes(call: &Call) -> AxisMap {
    let Ok(NdAxes { batch, depth }) = nd::axes(call) else { return AxisMap::default() };
    let outer = call.inputs[1].shape.rank() - 1;
    let rank = outer + call.inputs[0].shape.rank() - batch - depth;
    let axis = |i: usize| match i {
        i if i < batch => along(&[(0, i), (1, i)]),
        i if i < outer => along(&[(1, i)]),
        i => along(&[(0, i - outer + batch + depth)]),
    };
    AxisMap { outputs: vec![(0..rank).map(axis).collect()], summed: Vec::new() }
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let zeros = emit::zeros(e, &call.inputs[0])?;
    let inputs = vec![zeros, call.input(1)?, call.grad()?];
    let made = e.apply(&SCATTER_ND_ADD, inputs, Attrs::clone(call.attrs))?;
    Ok(vec![emit::dense(made), None])
}
