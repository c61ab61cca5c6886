//! `half_tril`: the lower triangle of each square matrix with half its diagonal.
//!
//! The derivative of a Cholesky factor is this of a symmetric matrix; see `cholesky`.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves, Types};
use tonnage_core::{Attrs, Call, Emit, OpDef};

use super::matrix::{batch_axes, square};
use super::symmetrize;
use crate::OpId;
use crate::infer::{cost, inputs, no_attrs, real};

/// `x [.., n, n] -> [.., n, n]`
pub static HALF_TRIL: OpDef = OpDef {
    id: OpId::HalfTril as u16,
    name: "half_tril",
    doc: "The lower triangle of a square matrix with half its diagonal.",
    infer,
    axes: batch_axes,
    mem: Mem::Reuse(&[0]),
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| cost(0, call.inputs.iter().chain(call.inputs)),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Kernel,
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
