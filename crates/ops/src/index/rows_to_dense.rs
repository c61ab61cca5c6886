//! `rows_to_dense`: zeros of a table's shape with rows added at indices: a gradient that was rows, made
//! whole.
//!
//! It is `scatter_add` into zeros. It is an op of its own so that whoever lists ops (a report of what
//! allocates, a plan, the ledger) shows where rows became a whole table, and how many bytes that took.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values,
};
use tonnage_core::{Call, DType, Emit, OpDef, Shape, TensorType};

use super::gather::GATHER;
use super::rows::rows_shape;
use crate::OpId;
use crate::infer::{bad_attrs, cost, elements, inputs, number, shape};

/// `(indices, rows) -> table`; the table's shape as [`Attrs::Shape`].
pub static ROWS_TO_DENSE: OpDef = OpDef {
    id: OpId::RowsToDense as u16,
    name: "rows_to_dense",
    doc: "Zeros of a table's shape with rows added at indices along the first axis.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(call.inputs.get(1).map_or(0, elements), made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[1]]),
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples,
};

fn whole(call: &Call) -> Result<Shape> {
    match call.attrs {
        Attrs::Shape(shape) => Ok(shape.clone()),
        other => Err(bad_attrs("rows_to_dense", other, "the table's shape")),
    }
}

fn infer(call: &Call) -> Result<Types> {
    let op = "rows_to_dense";
    let [indices, rows] = inputs(op, call)?;
    number(op, rows)?;
    let table = TensorType { dtype: rows.dtype, shape: whole(call)? };
    let needed = rows_shape(op, &table, indices, &Attrs::None)?;
    let help = "rows must have the shape of the indices in place of the table's first axis";
    shape(op, &rows.shape, &needed, help)?;
    Ok(smallvec![table])
}

/// The axes of a row cannot be cut, since the attributes say the whole shape; rows of several calls add up.
fn axes(call: &Call) -> AxisMap {
    let rank = whole(call).map_or(0, |shape| shape.rank());
    let rows = call.inputs.first().map_or(0, |indices| indices.shape.rank());
    let summed = (0..rows).map(|axis| smallvec![(0, axis), (1, axis)]).collect();
    AxisMap { outputs: vec![vec![AxisOf::Mixed; rank]], summed }
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let picked = emit.apply(&GATHER, vec![call.grad()?, call.input(0)?], Attrs::Axis(0))?;
    Ok(vec![None, Some(Cotangent::Dense(picked))])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, table: &[usize], index, indices: &[usize]| {
        let types = [
            TensorType::new(index, indices),
            TensorType::new(dtype, [indices, &table[1..]].concat()),
        ];
        Sample::of(&types, Attrs::Shape(table.into())).with(0, Values::Below(table[0]))
    };
    vec![
        of(DType::F64, &[5, 3], DType::I32, &[7]),
        of(DType::F64, &[5, 2, 2], DType::I64, &[2, 3]),
        of(DType::F32, &[7], DType::I32, &[]),
        of(DType::F32, &[1025, 3], DType::U16, &[1023]),
        of(DType::F16, &[6, 2], DType::I8, &[9]),
        of(DType::I64, &[4, 2], DType::U64, &[9]),
        of(DType::F32, &[4, 0], DType::I32, &[5]),
        of(DType::F32, &[4, 2], DType::I32, &[0]),
        of(DType::F32, &[0, 2], DType::I32, &[0]),
    ]
}
