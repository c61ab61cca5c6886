//! `half_tril`: the lower triangle of each square matrix with half its diagonal.
//!
//! The derivative of a Cholesky factor is this of a symmetric matrix; see `cholesky`.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves, Types, no_scratch};
use tonnage_core::{Attrs, Call, Emit, OpDef};

use super::matrix::{batch_axes, dims, each_matrix, square};
use super::symmetrize;
use crate::infer::{cost, inputs, no_attrs, real};
use crate::number::{Number, Real, with_real};
use crate::parallel::strides;

/// `x [.., n, n] -> [.., n, n]`
pub static HALF_TRIL: OpDef = OpDef {
    name: "half_tril",
    doc: "The lower triangle of a square matrix with half its diagonal.",
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
    samples: symmetrize::samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [x] = inputs("half_tril", call)?;
    no_attrs("half_tril", call)?;
    real("half_tril", x)?;
    square("half_tril", x)?;
    Ok(smallvec![x.clone()])
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let below = emit.apply(&HALF_TRIL, vec![call.grad()?], Attrs::None)?;
    Ok(vec![Some(Cotangent::Dense(below))])
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let (_, _, n) = dims("half_tril", &k.outputs[0].sizes)?;
    with_real!("half_tril", k.outputs[0].dtype, T => {
        let workers = k.workers;
        each_matrix::<T>("half_tril", k, 0, &|_, matrix| {
            for i in strides(workers, 0..n, n).flatten() {
                let row = &mut matrix[i * n..(i + 1) * n];
                row[i] *= T::HALF;
                row[i + 1..].fill(T::ZERO);
            }
        })
    })
}
