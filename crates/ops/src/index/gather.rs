//! `gather`: rows of a table by index, along any axis.
//!
//! The gradient stays rows and indices where the axis is the first one, so that an optimizer can update
//! those rows alone; along another axis it is added into zeros.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall, SparseRows};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values};
use tonnage_core::{Attrs, Call, DType, Emit, OpDef, Scalar, TensorType};

use super::rows::{axis, gather_axes, rows_shape};
use super::scatter_add::SCATTER_ADD;
use crate::OpId;
use crate::infer::{cost, inputs};

/// `(table, indices) -> rows`; the axis as [`Attrs::Axis`], or none for axis 0.
pub static GATHER: OpDef = OpDef {
    id: OpId::Gather as u16,
    name: "gather",
    doc: "Rows of a tensor by index, along one axis.",
    infer,
    axes: gather_axes,
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
    samples,
};

/// The type rule.
pub fn infer(call: &Call) -> Result<Types> {
    let [table, indices] = inputs("gather", call)?;
    let shape = rows_shape("gather", table, indices, call.attrs)?;
    Ok(smallvec![TensorType { dtype: table.dtype, shape }])
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (indices, values) = (call.input(1)?, call.grad()?);
    let of = call.inputs[0].clone();
    let of_table = match axis("gather", call.attrs)? {
        0 => Cotangent::Sparse { of, parts: vec![SparseRows { indices, values }] },
        _ => {
            let fill = Attrs::Fill { value: Scalar::Int(0), dtype: of.dtype, shape: of.shape };
            let zeros = emit.apply(call.ops.fill, Vec::new(), fill)?;
            let inputs = vec![zeros, indices, values];
            Cotangent::Dense(emit.apply(&SCATTER_ADD, inputs, call.attrs.clone())?)
        }
    };
    Ok(vec![Some(of_table), None])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, table: &[usize], index, indices: &[usize], attrs: Attrs| {
        let below = Values::Below(table[axis("gather", &attrs).unwrap_or(0)]);
        let types = [TensorType::new(dtype, table), TensorType::new(index, indices)];
        Sample::of(&types, attrs).with(1, below)
    };
    vec![
        of(DType::F64, &[5, 3], DType::I32, &[4], Attrs::Axis(0)),
        of(DType::F64, &[5, 3], DType::I64, &[2, 3], Attrs::None),
        of(DType::F64, &[3, 4, 5], DType::I64, &[6], Attrs::Axis(1)),
        of(DType::F64, &[3, 2, 4], DType::U8, &[2, 2], Attrs::Axis(2)),
        of(DType::F32, &[7], DType::I32, &[], Attrs::Axis(0)),
        of(DType::F32, &[1025, 3], DType::U16, &[1023], Attrs::Axis(0)),
        of(DType::F32, &[40, 1024], DType::I16, &[33], Attrs::Axis(0)),
        of(DType::F16, &[6, 2], DType::I8, &[3], Attrs::Axis(0)),
        of(DType::BF16, &[2, 6], DType::U32, &[3], Attrs::Axis(1)),
        of(DType::I64, &[4, 2], DType::U64, &[3], Attrs::Axis(0)),
        of(DType::U8, &[4, 2], DType::I32, &[3], Attrs::Axis(1)),
        of(DType::Bool, &[4, 2], DType::I32, &[5], Attrs::Axis(0)),
        of(DType::F32, &[4, 0], DType::I32, &[5], Attrs::Axis(0)),
        of(DType::F32, &[4, 2], DType::I32, &[0], Attrs::Axis(0)),
        of(DType::F32, &[0, 2], DType::I32, &[0], Attrs::Axis(0)),
    ]
}
