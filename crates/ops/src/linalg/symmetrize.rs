//! `symmetrize`: the symmetric part (X + Xᵀ) / 2 of each square matrix.
//!
//! Both halves are halved before they are added, so that no sum overflows.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types, no_scratch};
use tonnage_core::{Attrs, Call, DType, Emit, OpDef, TensorType, Workers};

use super::matrix::{batch_axes, dims, each_matrix, square};
use crate::infer::{cost, elements, inputs, no_attrs, real};
use crate::number::{Real, with_real};
use crate::parallel::strides;

/// `x [.., n, n] -> [.., n, n]`
pub static SYMMETRIZE: OpDef = OpDef {
    name: "symmetrize",
    doc: "The symmetric part of a square matrix: the mean of it and its transpose.",
    infer,
    axes: batch_axes,
    mem: Mem::Reuse(&[0]),
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        cost(call.inputs.first().map_or(0, elements), call.inputs.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
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

fn kernel(k: &mut Kernel) -> Result<()> {
    let (_, _, n) = dims("symmetrize", &k.outputs[0].sizes)?;
    with_real!("symmetrize", k.outputs[0].dtype, T => {
        let workers = k.workers;
        each_matrix::<T>("symmetrize", k, 0, &|_, matrix| {
            if lower(matrix, n, workers).is_err() {
                return; // as all other matrices do
            }
            for i in strides(workers, 0..n, n).flatten() {
                for j in 0..i {
                    matrix[j * n + i] = matrix[i * n + j];
                }
            }
        })
    })
}

/// Rows and columns of a square.
const SQUARE: usize = 32;

/// Puts the symmetric part into the lower triangle.
///
/// # Errors
/// Where the work is stopped.
pub(super) fn lower<T: Real>(matrix: &mut [T], n: usize, workers: &dyn Workers) -> Result<()> {
    // In squares, so that what is read down columns stays in cache.
    for rows in (0..n).step_by(SQUARE) {
        if rows > 0 {
            workers.check()?;
        }
        for columns in (0..=rows).step_by(SQUARE) {
            for i in rows..n.min(rows + SQUARE) {
                for j in columns..i.min(columns + SQUARE) {
                    matrix[i * n + j] = matrix[i * n + j] * T::HALF + matrix[j * n + i] * T::HALF;
                }
            }
        }
    }
    Ok(())
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
