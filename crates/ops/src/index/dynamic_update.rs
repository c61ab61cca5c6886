//! `dynamic_update`: a tensor with a part replaced, from where another tensor says; in place where it may.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::{Data, Kernel};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values,
    no_scratch,
};
use tonnage_core::walk::LayoutWalk;
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{DType, Element, OpDef, TensorType};

use super::dynamic_slice::{self, DYNAMIC_SLICE, offset};
use crate::infer::{along, cost, inputs, no_attrs, same_dtype};
use crate::number::with_width;
use crate::parallel::GRAIN;
use crate::{emit, strided};

/// `(x, part, start [rank]) -> x`
pub static DYNAMIC_UPDATE: OpDef = OpDef {
    name: "dynamic_update",
    doc: "A tensor with a part replaced, from where another tensor says.",
    infer,
    axes,
    mem: Mem::Reuse(&[0]),
    scratch: no_scratch,
    saves: Saves::one_of(&[&[Save::Input(2).always()]]),
    remat: Remat::Cheap,
    cost: |call| cost(0, call.inputs.iter().chain(call.inputs)),
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0, 1]]),
    fails: Fails::OnData,
    lower: Lower::Slices(kernel),
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

fn kernel(k: &mut Kernel) -> Result<()> {
    with_width!(k.outputs[0].dtype, T => put::<T>(k))
}

fn put<T: Element>(k: &mut Kernel) -> Result<()> {
    let [x, part, start] = k.inputs else { return Ok(()) };
    let (part_sizes, strides) = (&part.layout.sizes, &part.layout.strides);
    let (sizes, out) = k.outputs[0].parts::<T>();
    let stride = |axis: usize| sizes[axis + 1..].iter().product::<usize>() as isize;
    let first = offset("dynamic_update", start, part_sizes, sizes, stride)?;
    if let Data::Slice(_) = x.data {
        let data = x.slice::<T>();
        for_each_chunk(k.workers, out, GRAIN, &|chunk, out| {
            strided::copy(&x.layout, data, chunk * GRAIN, out);
        })?;
    }
    let data = part.slice::<T>();
    let (n, step) = match (part_sizes.last(), strides.last()) {
        (Some(n), Some(step)) => (*n, *step),
        _ => (1, 1),
    };
    if n == 0 {
        return Ok(());
    }
    let rows = part_sizes.len().saturating_sub(1);
    let axis = |i: usize| (part_sizes[i], [strides[i], stride(i)]);
    for [from, to] in LayoutWalk::new(rows, [part.layout.offset, first as usize], axis) {
        for (i, x) in out[to..to + n].iter_mut().enumerate() {
            *x = data[(from as isize + i as isize * step) as usize];
        }
    }
    Ok(())
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
