//! `tril`: the lower triangle of each matrix, with zeros above the diagonal.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types, no_scratch};
use tonnage_core::{Attrs, Call, DType, Emit, OpDef, TensorType};

use super::matrix::{batch_axes, dims, each_matrix, matrices};
use crate::infer::{cost, inputs, no_attrs};
use crate::number::with_width;

/// `x [.., n, m] -> [.., n, m]`
pub static TRIL: OpDef = OpDef {
    name: "tril",
    doc: "The lower triangle of a matrix, zeros above the diagonal.",
    infer,
    axes: batch_axes,
    mem: Mem::Reuse(&[0]),
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| cost(0, call.inputs.iter().chain(call.inputs)),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [x] = inputs("tril", call)?;
    no_attrs("tril", call)?;
    matrices("tril", x)?;
    Ok(smallvec![x.clone()])
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let below = emit.apply(&TRIL, vec![call.grad()?], Attrs::None)?;
    Ok(vec![Some(Cotangent::Dense(below))])
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let (_, _, columns) = dims("tril", &k.outputs[0].sizes)?;
    // All zero bits are zero, or false, in every dtype.
    with_width!(k.outputs[0].dtype, T => each_matrix::<T>("tril", k, 0, &|_, matrix| {
        for (i, row) in matrix.chunks_mut(columns).enumerate() {
            row[columns.min(i + 1)..].fill(0);
        }
    }))
}

fn samples() -> Vec<Sample> {
    let of = |dtype, x: &[usize]| Sample::of(&[TensorType::new(dtype, x)], Attrs::None);
    vec![
        of(DType::F64, &[3, 3]),
        of(DType::F64, &[2, 3, 4, 2]),
        of(DType::F64, &[2, 5]),
        of(DType::F32, &[3, 1025]),
        of(DType::F32, &[1023, 3]),
        of(DType::F32, &[130, 12, 12]),
        of(DType::F16, &[3, 3]),
        of(DType::BF16, &[3, 3]),
        of(DType::I64, &[3, 3]),
        of(DType::U8, &[3, 3]),
        of(DType::Bool, &[3, 3]),
        of(DType::F32, &[0, 3]),
        of(DType::F32, &[2, 3, 0]),
    ]
}
