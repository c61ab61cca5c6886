//! `dynamic_update`: a tensor with a part replaced, from where another tensor says; in place where it may.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values,
};
use tonnage_core::{DType, OpDef, TensorType};

use super::dynamic_slice::{self, DYNAMIC_SLICE};
use crate::infer::{along, cost, inputs, no_attrs, same_dtype};
use crate::{OpId, emit};

/// `(x, part, start [rank]) -> x`
pub static DYNAMIC_UPDATE: OpDef = OpDef {
    id: OpId::DynamicUpdate as u16,
    name: "dynamic_update",
    doc: "A tensor with a part replaced, from where another tensor says.",
    infer,
    axes,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(2).always()]]),
    remat: Remat::Cheap,
    cost: |call| cost(0, call.inputs.iter().chain(call.inputs)),
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0, 1]]),
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [x, part, start] = inputs("dynamic_update", call)?;
    no_attrs("dynamic_update", call)?;
    same_dtype("dynamic_update", x, part)?;
    dynamic_slice::check("dynamic_update", x, start, &part.shape)?;
    Ok(smallvec![x.clone()])
}

/// An axis that is replaced whole runs along.
fn axes(call: &Call) -> AxisMap {
    let [x, part, ..] = call.inputs else { return AxisMap::default() };
    let axis = |i: usize| match part.shape.get(i) == x.shape.get(i) {
        true => along(&[(0, i), (1, i)]),
        false => AxisOf::Mixed,
    };
    AxisMap { outputs: vec![(0..x.shape.rank()).map(axis).collect()], summed: Vec::new() }
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (g, start) = (call.grad()?, call.input(2)?);
    let of_part = match call.needs[1] {
        true => {
            let shape = Attrs::Shape(call.inputs[1].shape.clone());
            emit::dense(e.apply(&DYNAMIC_SLICE, vec![g.clone(), start.clone()], shape)?)
        }
        false => None,
    };
    let of_x = match call.needs[0] {
        true => {
            let zeros = emit::zeros(e, &call.inputs[1])?;
            emit::dense(e.apply(&DYNAMIC_UPDATE, vec![g, zeros, start], Attrs::None)?)
        }
        false => None,
    };
    Ok(vec![of_x, of_part, None])
}

fn samples() -> Vec<Sample> {
    let of = |(dtype, whole, part, index, below): (DType, &[usize], &[usize], DType, usize)| {
        let types = [
            TensorType::new(dtype, whole),
            TensorType::new(dtype, part),
            TensorType::new(index, [whole.len()]),
        ];
        Sample::of(&types, Attrs::None).with(2, Values::Below(below))
    };
    dynamic_slice::parts().into_iter().map(of).collect()
}
