//! `symmetrize`: the symmetric part (X + Xᵀ) / 2 of each square matrix.
//!
//! Both halves are halved before they are added, so that no sum overflows.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::{Attrs, Call, DType, Emit, OpDef, TensorType};

use super::matrix::{batch_axes, square};
use crate::OpId;
use crate::infer::{cost, elements, inputs, no_attrs, real};

/// `x [.., n, n] -> [.., n, n]`
pub static SYMMETRIZE: OpDef = OpDef {
    id: OpId::Symmetrize as u16,
    name: "symmetrize",
    doc: "The symmetric part of a square matrix: the mean of it and its transpose.",
    infer,
    axes: batch_axes,
    mem: Mem::Reuse(&[0]),
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        cost(call.inputs.first().map_or(0, elements), call.inputs.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [x] = inputs("symmetrize", call)?;
    no_attrs("symmetrize", call)?;
    real("symmetrize", x)?;
    square("symmetrize", x)?;
    Ok(smallvec![x.clone()])
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let even = emit.apply(&SYMMETRIZE, vec![call.grad()?], Attrs::None)?;
    Ok(vec![Some(Cotangent::Dense(even))])
}

/// Square matrices of every kind.
pub(super) fn samples() -> Vec<Sample> {
    let of = |dtype, x: &[usize]| Sample::of(&[TensorType::new(dtype, x)], Attrs::None);
    vec![
        of(DType::F64, &[3, 3]),
        of(DType::F64, &[2, 3, 4, 4]),
        of(DType::F64, &[1, 1]),
        of(DType::F32, &[1023, 3, 3]),
        of(DType::F32, &[130, 130]),
        of(DType::F32, &[0, 0]),
        of(DType::F32, &[0, 3, 3]),
    ]
}
