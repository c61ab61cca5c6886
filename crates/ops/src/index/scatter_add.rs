//! `scatter_add`: a table with rows added at indices.
//!
//! Rows at equal indices add up in the order of the indices, at any number of threads; integers wrap.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values};
use tonnage_core::{Attrs, Call, DType, Emit, OpDef, TensorType};

use super::gather::GATHER;
use super::rows::{axis, rows_shape, scatter_axes, scatter_type};
use crate::OpId;
use crate::infer::{cost, elements, number};

/// `(table, indices, rows) -> table`; the axis as [`Attrs::Axis`], or none for axis 0.
pub static SCATTER_ADD: OpDef = OpDef {
    id: OpId::ScatterAdd as u16,
    name: "scatter_add",
    doc: "A tensor with rows added at indices along one axis; equal indices add up.",
    infer,
    axes: scatter_axes,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(1).always()]]),
    remat: Remat::Cheap,
    cost: |call| {
        cost(call.inputs.get(2).map_or(0, elements), call.inputs.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0, 2]]),
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let table = scatter_type("scatter_add", call)?;
    number("scatter_add", &table)?;
    Ok(smallvec![table])
}

pub(crate) fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    let rows = match call.needs[2] {
        true => {
            let picked = vec![g.clone(), call.input(1)?];
            Some(Cotangent::Dense(emit.apply(&GATHER, picked, call.attrs.clone())?))
        }
        false => None,
    };
    Ok(vec![Some(Cotangent::Dense(g)), None, rows])
}

/// Shared with the other scatters: tables, index dtypes and shapes of every kind.
pub(crate) fn samples() -> Vec<Sample> {
    let of = |dtype, table: &[usize], index, indices: &[usize], attrs: Attrs| {
        let below = Values::Below(table[axis("scatter", &attrs).unwrap_or(0)]);
        let (table, indices) = (TensorType::new(dtype, table), TensorType::new(index, indices));
        let rows = rows_shape("scatter", &table, &indices, &attrs).unwrap_or_default();
        let rows = TensorType::new(dtype, rows);
        Sample::of(&[table, indices, rows], attrs).with(1, below)
    };
    vec![
        of(DType::F64, &[5, 3], DType::I32, &[7], Attrs::None),
        of(DType::F64, &[5, 2, 2], DType::I64, &[2, 3], Attrs::Axis(0)),
        of(DType::F64, &[3, 4, 2], DType::I64, &[6], Attrs::Axis(1)),
        of(DType::F32, &[7], DType::I32, &[], Attrs::None),
        of(DType::F32, &[1025, 3], DType::U16, &[1023], Attrs::None),
        of(DType::F32, &[9, 1024], DType::I16, &[33], Attrs::None),
        of(DType::F32, &[2, 1024, 9], DType::I16, &[1025], Attrs::Axis(1)),
        of(DType::F16, &[6, 2], DType::I8, &[9], Attrs::None),
        of(DType::BF16, &[2, 6], DType::U32, &[3], Attrs::Axis(1)),
        of(DType::I64, &[4, 2], DType::U64, &[9], Attrs::None),
        of(DType::I8, &[4, 2], DType::U8, &[3], Attrs::None),
        of(DType::F32, &[4, 0], DType::I32, &[5], Attrs::None),
        of(DType::F32, &[4, 2], DType::I32, &[0], Attrs::None),
        of(DType::F32, &[0, 2], DType::I32, &[0], Attrs::None),
    ]
}
